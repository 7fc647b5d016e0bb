/* The measuring child: a loop over requests, one line of JSON each, answered in one line.
 *
 *   {"do":"problem","slot":S,"ref":R,"shape":T,"check":[[rows,seqs,past],[..]],"time":[[..],..],"cold":BYTES}  -> {"ok":true}
 *   {"do":"check","slot":S,"object":PATH,"kernel":NAME}                -> {"ok":true,"hash":"16 hex"}
 *   {"do":"time","slot":S,"object":PATH,"kernel":NAME,"size":I,"n":N}  -> {"ok":true,"us":[..]}
 *   {"do":"drop","slot":S,"all":false}                                 -> {"ok":true}
 * A failure is {"ok":false,"why":"one line"}. The child ends with its input, and dies with its parent. */
#define _GNU_SOURCE
#include "measure.h"
#include "trial.h"
#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { CHECKS = 2, RING = 256, MOST_SAMPLES = 64, MOST_CALLS = 2000, LOADED = 16 };
#define SAMPLE_US 300.0       /* a sample of a small kernel is many calls */
#define LONG_US 20e3          /* a call that long needs none before it to warm up */

/* Cases of one size that calls walk in turn, so that weights are cold as in a model. */
struct ring {
    struct trial_case *t;     /* owned: [n] */
    int n, next;
};

struct problem {
    const struct op_ref *ref;  /* NULL: the slot is empty */
    struct q_shape shape;
    struct ref_size check[CHECKS];
    struct trial_truth truth[CHECKS];
    struct ring ring[MEASURE_SIZES];
    int n_rings;
};

/* A candidate that is loaded. The oldest gives way. */
struct loaded {
    void *library;
    char object[4096], kernel[160];
    trial_fn fn;
};

/* When a member began and ended its part, in microseconds. */
struct span {
    double begin, end;
};

struct worker {
    struct q_team *team;
    int parts;
    struct span *span;        /* owned: [parts] */
    struct problem slot[MEASURE_SLOTS];
    struct loaded loaded[LOADED];
    int next;
};

/* --- a problem --------------------------------------------------------------------------------------------------------- */

static void forget_truths(struct problem *p)
{
    for (int i = 0; i < CHECKS; i++) trial_truth_free(&p->truth[i]);
}

static void forget(struct problem *p)
{
    forget_truths(p);
    for (int i = 0; i < p->n_rings; i++) {
        for (int j = 0; j < p->ring[i].n; j++) trial_free(&p->ring[i].t[j]);
        free(p->ring[i].t);
    }
    memset(p, 0, sizeof *p);
}

static int number(const cJSON *list, int i)
{
    const cJSON *item = cJSON_GetArrayItem(list, i);
    return cJSON_IsNumber(item) ? item->valueint : 0;
}

static struct ref_size size_of(const struct worker *w, const cJSON *list, int plain)
{
    return (struct ref_size){ number(list, 0), number(list, 1), number(list, 2), w->parts, plain };
}

static unsigned long long seed_of(int i) { return 0x5EED0001ull + 7919ull * (unsigned)i; }

/* As many cases as fill `cold` bytes; one where a case alone is larger. */
static int make_ring(struct problem *p, struct ring *r, const struct ref_size *size, double cold, struct q_err *e)
{
    double have = 0;
    int rc = Q_OK;
    r->t = calloc(RING, sizeof *r->t);
    if (!r->t) return q_fail(e, Q_EMEM, "no memory for a ring of cases");
    while (!rc && r->n < RING && (r->n == 0 || have < cold)) {
        rc = trial_make(&r->t[r->n], p->ref, &p->shape, size, seed_of(CHECKS + r->n), e);
        if (!rc) have += (double)ref_case_bytes(r->t[r->n++].c);
    }
    return rc;
}

static int do_problem(struct worker *w, struct problem *p, const cJSON *q, struct q_err *e)
{
    const char *ref = cJSON_GetStringValue(cJSON_GetObjectItem(q, "ref")), *shape = cJSON_GetStringValue(cJSON_GetObjectItem(q, "shape"));
    const cJSON *check = cJSON_GetObjectItem(q, "check"), *time = cJSON_GetObjectItem(q, "time"), *item;
    double cold = cJSON_GetNumberValue(cJSON_GetObjectItem(q, "cold"));
    forget(p);
    p->ref = ref ? ref_find(ref) : NULL;
    if (!p->ref || !shape) return q_fail(e, Q_EINTERNAL, "no templates/OP/ref.c checks '%s'", ref ? ref : "");
    int rc = shape_parse(&p->shape, shape, e);
    for (int i = 0; i < CHECKS && !rc; i++) {
        p->check[i] = size_of(w, cJSON_GetArrayItem(check, i), 0);
        rc = trial_truth_make(&p->truth[i], p->ref, &p->shape, &p->check[i], seed_of(i), e);
    }
    cJSON_ArrayForEach(item, time) {
        struct ref_size size = size_of(w, item, 1);
        if (rc || p->n_rings == MEASURE_SIZES) break;
        /* The first size is the one that counts; a quarter of the ring guards the others. */
        rc = make_ring(p, &p->ring[p->n_rings], &size, p->n_rings ? cold / 4 : cold, e);
        p->n_rings++;
    }
    if (rc) forget(p);
    return rc;
}

static int do_drop(struct problem *p, const cJSON *q)
{
    if (cJSON_IsTrue(cJSON_GetObjectItem(q, "all"))) forget(p);
    else forget_truths(p);
    return Q_OK;
}

/* --- a candidate ------------------------------------------------------------------------------------------------------- */

static struct loaded *find_loaded(struct worker *w, const char *object, const char *kernel)
{
    for (int i = 0; i < LOADED; i++)
        if (w->loaded[i].fn && !strcmp(w->loaded[i].object, object) && !strcmp(w->loaded[i].kernel, kernel)) return &w->loaded[i];
    return NULL;
}

static void unload(struct loaded *l)
{
    if (l->library) dlclose(l->library);
    memset(l, 0, sizeof *l);
}

static int load(struct worker *w, const cJSON *q, trial_fn *fn, struct q_err *e)
{
    const char *object = cJSON_GetStringValue(cJSON_GetObjectItem(q, "object")), *kernel = cJSON_GetStringValue(cJSON_GetObjectItem(q, "kernel"));
    if (!object || !kernel) return q_fail(e, Q_EINTERNAL, "a candidate without a name");
    struct loaded *l = find_loaded(w, object, kernel);
    if (l) return *fn = l->fn, Q_OK;
    l = &w->loaded[w->next];
    w->next = (w->next + 1) % LOADED;
    unload(l);
    l->library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (l->library) *(void **)&l->fn = dlsym(l->library, kernel);
    if (!l->fn) return q_fail(e, Q_EINTERNAL, "%s", dlerror());
    snprintf(l->object, sizeof l->object, "%s", object);
    snprintf(l->kernel, sizeof l->kernel, "%s", kernel);
    *fn = l->fn;
    return Q_OK;
}

static int check_case(struct worker *w, struct problem *p, trial_fn fn, int i, unsigned long long *hash, struct q_err *e)
{
    struct q_err why = { 0 };
    unsigned long long h[2] = { 0 };
    for (int again = 0; again < 2; again++)
        if (trial_truth_check(&p->truth[i], w->team, fn, &h[again], &why))
            return q_fail(e, Q_EINTERNAL, "rows %d, past %d: %s", p->check[i].rows, p->check[i].past, why.text);
    if (h[0] != h[1]) return q_fail(e, Q_EINTERNAL, "rows %d, past %d: two runs differ", p->check[i].rows, p->check[i].past);
    *hash = *hash * 0x100000001B3ull ^ h[0];
    return Q_OK;
}

static int do_check(struct worker *w, struct problem *p, const cJSON *q, cJSON *answer, struct q_err *e)
{
    unsigned long long hash = 0;
    char hex[17];
    trial_fn fn;
    int rc = p->truth[0].want ? load(w, q, &fn, e) : q_fail(e, Q_EINTERNAL, "the slot holds no truth");
    for (int i = 0; i < CHECKS && !rc; i++) rc = check_case(w, p, fn, i, &hash, e);
    snprintf(hex, sizeof hex, "%016llx", hash);
    if (!rc) cJSON_AddStringToObject(answer, "hash", hex);
    return rc;
}

/* --- time -------------------------------------------------------------------------------------------------------------- */

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* `calls` calls one after the other with a barrier between them, as a model's list runs; cases in turn from ring->next. */
struct batch {
    trial_fn fn;
    const struct ring *ring;
    int calls;
    struct span *span;        /* [parts] */
};

/* A member that sleeps at a barrier wakes late: so the first to begin and the last to end count, whoever they are. */
static void run_batch(void *arg, struct team *t)
{
    struct batch *b = arg;
    team_wait(t);             /* wakes all; */
    team_wait(t);             /* now they arrive together */
    b->span[t->part].begin = now_us();
    for (int i = 0; i < b->calls; i++) {
        if (i) team_wait(t);
        b->fn(b->ring->t[(b->ring->next + i) % b->ring->n].args, t);
    }
    b->span[t->part].end = now_us();
}

static double sample(struct worker *w, trial_fn fn, struct ring *r, int calls)
{
    struct batch b = { fn, r, calls, w->span };
    team_start(w->team, run_batch, &b);
    team_finish(w->team);
    r->next = (r->next + calls) % r->n;
    struct span s = w->span[0];
    for (int i = 1; i < w->parts; i++) {
        if (w->span[i].begin < s.begin) s.begin = w->span[i].begin;
        if (w->span[i].end > s.end) s.end = w->span[i].end;
    }
    return (s.end - s.begin) / calls;
}

static int do_time(struct worker *w, struct problem *p, const cJSON *q, cJSON *answer, struct q_err *e)
{
    double size = cJSON_GetNumberValue(cJSON_GetObjectItem(q, "size")), n = cJSON_GetNumberValue(cJSON_GetObjectItem(q, "n"));
    trial_fn fn;
    int rc = load(w, q, &fn, e);
    if (!rc && !(size >= 0 && size < p->n_rings && n >= 1 && n <= MOST_SAMPLES)) rc = q_fail(e, Q_EINTERNAL, "no such size or number of samples");
    if (rc) return rc;
    struct ring *r = &p->ring[(int)size];
    double once = sample(w, fn, r, 1);          /* wakes the team, brings in the code */
    if (once < SAMPLE_US) once = sample(w, fn, r, 1);
    double fit = SAMPLE_US / (once > 0.01 ? once : 0.01);
    int calls = fit < 1 ? 1 : fit > MOST_CALLS ? MOST_CALLS : (int)fit;
    cJSON *us = cJSON_AddArrayToObject(answer, "us");
    for (int i = 0; i < (int)n; i++) cJSON_AddItemToArray(us, cJSON_CreateNumber(i || once < LONG_US ? sample(w, fn, r, calls) : once));
    return Q_OK;
}

/* --- the loop ---------------------------------------------------------------------------------------------------------- */

static int serve(struct worker *w, const cJSON *q, cJSON *answer, struct q_err *e)
{
    const char *what = cJSON_GetStringValue(cJSON_GetObjectItem(q, "do"));
    double slot = cJSON_GetNumberValue(cJSON_GetObjectItem(q, "slot"));
    if (!what || !(slot >= 0 && slot < MEASURE_SLOTS)) return q_fail(e, Q_EINTERNAL, "a request without 'do' or 'slot'");
    struct problem *p = &w->slot[(int)slot];
    if (!strcmp(what, "problem")) return do_problem(w, p, q, e);
    if (!strcmp(what, "check")) return do_check(w, p, q, answer, e);
    if (!strcmp(what, "time")) return do_time(w, p, q, answer, e);
    if (!strcmp(what, "drop")) return do_drop(p, q);
    return q_fail(e, Q_EINTERNAL, "a request with an unknown 'do'");
}

static int answer_line(struct worker *w, const char *line)
{
    struct q_err why = { 0 };
    cJSON *q = cJSON_Parse(line), *answer = cJSON_CreateObject();
    int rc = serve(w, q, answer, &why);
    cJSON_AddBoolToObject(answer, "ok", !rc);
    if (rc) cJSON_AddStringToObject(answer, "why", why.text);
    char *text = cJSON_PrintUnformatted(answer);
    int gone = !text || puts(text) < 0 || fflush(stdout);
    cJSON_free(text);
    cJSON_Delete(q);
    cJSON_Delete(answer);
    return gone;
}

int measure_child(int threads)
{
    static struct worker w;
    char *line = NULL;
    size_t cap = 0;
    struct q_err e = { 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    w.parts = threads < 1 ? 1 : threads;
    if (!(w.span = calloc((size_t)w.parts, sizeof *w.span)) || team_open(&w.team, w.parts, &e)) return 1;
    while (getline(&line, &cap, stdin) > 0)
        if (answer_line(&w, line)) break;
    for (int i = 0; i < MEASURE_SLOTS; i++) forget(&w.slot[i]);
    for (int i = 0; i < LOADED; i++) unload(&w.loaded[i]);
    team_close(w.team);
    free(w.span);
    free(line);
    return 0;
}
