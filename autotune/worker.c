/* The measuring child: one line of JSON that says whether it stands, then a loop over requests, one line each, answered in one line.
 *
 *   {"do":"problem","slot":S,"ref":R,"shape":T,"check":[[rows,seqs,past],[..]],"time":[[..],..],"cold":BYTES}  -> {"ok":true}
 *   {"do":"check","slot":S,KERNEL,"numerics":CLASS}                    -> {"ok":true,"hash":"16 hex"}
 *   {"do":"time","slot":S,KERNEL,"size":I,"n":N}                       -> {"ok":true,"us":[..],"clocks":{..},"pace":P}
 *   {"do":"drop","slot":S,"all":false}                                 -> {"ok":true}
 *   KERNEL: "object":PATH,"kernel":NAME,"launch":[numbers of each phase]
 * A failure is {"ok":false,"why":"one line"}, of a candidate with its "kind" (journal.h); with "gone":true the card is lost to this process,
 * or its memory is not to be trusted, and it ends. The child ends with its input, and dies with its parent. A candidate finds /dev/null
 * where the requests and answers were. */
#define _GNU_SOURCE
#include "bed.h"
#include "measure.h"
#include "pace.h"
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CHECKS = 2, REPEATS = 10, MOST_SAMPLES = 64, LOADED = 16 };
/* What the repeats of one case may write in all, of which each byte goes there, back, and is hashed: a repacked output head is a gigabyte a call. */
static const double MOST_WRITTEN = 2e8;

struct problem {
    const struct op_ref *ref;  /* NULL: the slot is empty */
    struct q_shape shape;
    struct ref_size check[CHECKS];
    struct bed_truth truth[CHECKS];
    struct bed_ring ring[MEASURE_SIZES];
    int n_rings;
};

/* A candidate that is loaded. The oldest gives way. */
struct loaded {
    char object[4096], symbol[160];
    struct q_kernel kernel;
    int used;
};

struct worker {
    struct bed bed;
    struct problem slot[MEASURE_SLOTS];
    struct loaded loaded[LOADED];
    int next;
    int fault;                /* the card, or this process's memory, is in no state to go on */
    const char *kind;         /* of the candidate's failure, NULL: none is told */
    FILE *requests, *answers;
};

/* --- a problem --------------------------------------------------------------------------------------------------------- */

static void forget_truths(struct worker *w, struct problem *p)
{
    for (int i = 0; i < CHECKS; i++) bed_truth_free(&w->bed, &p->truth[i]);
}

static void forget(struct worker *w, struct problem *p)
{
    forget_truths(w, p);
    for (int i = 0; i < p->n_rings; i++) bed_ring_free(&w->bed, &p->ring[i]);
    memset(p, 0, sizeof *p);
}

static int number(const cJSON *list, int i)
{
    const cJSON *item = cJSON_GetArrayItem(list, i);
    return cJSON_IsNumber(item) ? item->valueint : 0;
}

static struct ref_size size_of(const struct worker *w, const cJSON *list, int plain)
{
    return (struct ref_size){ number(list, 0), number(list, 1), number(list, 2), w->bed.parts, plain };
}

static unsigned long long seed_of(int i) { return 0x5EED0001ull + 7919ull * (unsigned)i; }

/* A card copies its cases. On a CPU making them takes a while: the first size is the one that counts, and two thirds guard the others. A ring that
 * the last cache nearly holds would be worse than none: how much of it is found there is then the neighbours' to say. */
static double ring_bytes(const struct worker *w, int size, double cold) { return size && !w->bed.card ? cold * 2 / 3 : cold; }

static int do_problem(struct worker *w, struct problem *p, const cJSON *q, struct q_err *e)
{
    const char *ref = cJSON_GetStringValue(cJSON_GetObjectItem(q, "ref")), *shape = cJSON_GetStringValue(cJSON_GetObjectItem(q, "shape"));
    const cJSON *check = cJSON_GetObjectItem(q, "check"), *time = cJSON_GetObjectItem(q, "time"), *item;
    double cold = cJSON_GetNumberValue(cJSON_GetObjectItem(q, "cold"));
    forget(w, p);
    p->ref = ref ? ref_find(ref) : NULL;
    if (!p->ref || !shape) return q_fail(e, Q_EINTERNAL, "no templates/OP/ref.c checks '%s'", ref ? ref : "");
    int rc = shape_parse(&p->shape, shape, e);
    for (int i = 0; i < CHECKS && !rc; i++) {
        p->check[i] = size_of(w, cJSON_GetArrayItem(check, i), 0);
        rc = bed_truth_make(&w->bed, &p->truth[i], i ? &p->truth[0] : NULL, p->ref, &p->shape, &p->check[i], seed_of(i), e);
    }
    cJSON_ArrayForEach(item, time) {
        struct ref_size size = size_of(w, item, 1);
        if (rc || p->n_rings == MEASURE_SIZES) break;
        rc = bed_ring_make(&w->bed, &p->ring[p->n_rings], p->ref, &p->shape, &size, ring_bytes(w, p->n_rings, cold), e);
        p->n_rings++;
    }
    if (rc) forget(w, p);
    return rc;
}

static int do_drop(struct worker *w, struct problem *p, const cJSON *q)
{
    if (cJSON_IsTrue(cJSON_GetObjectItem(q, "all"))) forget(w, p);
    else forget_truths(w, p);
    return Q_OK;
}

/* --- a candidate ------------------------------------------------------------------------------------------------------- */

static struct loaded *find_loaded(struct worker *w, const char *object, const char *symbol)
{
    for (int i = 0; i < LOADED; i++)
        if (w->loaded[i].used && !strcmp(w->loaded[i].object, object) && !strcmp(w->loaded[i].symbol, symbol)) return &w->loaded[i];
    return NULL;
}

static void unload(struct worker *w, struct loaded *l)
{
    if (l->used) bed_unload(&w->bed, &l->kernel);
    memset(l, 0, sizeof *l);
}

static int load(struct worker *w, const cJSON *q, const struct q_kernel **k, struct q_err *e)
{
    const char *object = cJSON_GetStringValue(cJSON_GetObjectItem(q, "object")), *symbol = cJSON_GetStringValue(cJSON_GetObjectItem(q, "kernel"));
    struct q_phases launch;
    if (!object || !symbol || measure_launch(cJSON_GetObjectItem(q, "launch"), &launch))
        return q_fail(e, Q_EINTERNAL, "a candidate without a name or a launch");
    struct loaded *l = find_loaded(w, object, symbol);
    if (l) return *k = &l->kernel, Q_OK;
    l = &w->loaded[w->next];
    w->next = (w->next + 1) % LOADED;
    unload(w, l);
    int rc = bed_load(&w->bed, object, symbol, &launch, &l->kernel, e);
    if (rc) return w->kind = "build", rc;
    l->used = 1;
    snprintf(l->object, sizeof l->object, "%s", object);
    snprintf(l->symbol, sizeof l->symbol, "%s", symbol);
    *k = &l->kernel;
    return Q_OK;
}

/* What ref_case_compare found, by its words: a write outside of the outputs, or values. */
static const char *kind_of(const struct worker *w, const char *why)
{
    if (w->fault) return "crash";
    return strstr(why, "written outside") || strstr(why, "input was written") ? "canary" : "wrong";
}

static int fail_case(struct worker *w, const struct problem *p, int i, const char *kind, const char *why, struct q_err *e)
{
    w->kind = kind;
    return q_fail(e, Q_EINTERNAL, "rows %d, past %d: %s", p->check[i].rows, p->check[i].past, why);
}

static int repeats_of(const struct bed_truth *t)
{
    double most = MOST_WRITTEN / (1.0 + (double)ref_case_written(t->truth.want));
    return most >= REPEATS ? REPEATS : most < 2 ? 2 : (int)most;
}

static int check_case(struct worker *w, struct problem *p, const struct q_kernel *k, const char *numerics, int i, unsigned long long *hash,
                      struct q_err *e)
{
    struct q_err why = { 0 };
    unsigned long long first = 0, h = 0;
    for (int n = 0, repeats = repeats_of(&p->truth[i]); n < repeats; n++) {
        if (bed_truth_check(&w->bed, &p->truth[i], k, n ? NULL : numerics, &h, &w->fault, &why))
            return fail_case(w, p, i, kind_of(w, why.text), why.text, e);
        if (n && h != first) return fail_case(w, p, i, "unstable", "two runs on the same input differ", e);
        first = h;
    }
    *hash = *hash * 0x100000001B3ull ^ first;
    return Q_OK;
}

/* A CPU's candidate shares this process's memory: what it wrote far beyond its buffers may be the truth of those after it. */
static int check_truths(struct worker *w, const struct problem *p, int failed, struct q_err *e)
{
    int intact = 1;
    for (int i = 0; i < CHECKS && !w->bed.card; i++) intact &= bed_truth_intact(&p->truth[i]);
    if (intact && !(w->kind && !strcmp(w->kind, "canary"))) return failed;
    w->fault = 1;
    w->kind = "canary";
    return failed ? failed : q_fail(e, Q_EINTERNAL, "it wrote into memory that is not its own");
}

static int do_check(struct worker *w, struct problem *p, const cJSON *q, cJSON *answer, struct q_err *e)
{
    unsigned long long hash = 0;
    char hex[17];
    const char *numerics = cJSON_GetStringValue(cJSON_GetObjectItem(q, "numerics"));
    const struct q_kernel *k;
    int rc = p->truth[0].truth.want ? load(w, q, &k, e) : q_fail(e, Q_EINTERNAL, "the slot holds no truth");
    if (!rc && !numerics) rc = q_fail(e, Q_EINTERNAL, "a candidate without a numerics class");
    for (int i = 0; i < CHECKS && !rc; i++) rc = check_case(w, p, k, numerics, i, &hash, e);
    if (p->truth[0].truth.want) rc = check_truths(w, p, rc, e);
    snprintf(hex, sizeof hex, "%016llx", hash);
    if (!rc) cJSON_AddStringToObject(answer, "hash", hex);
    return rc;
}

/* --- time -------------------------------------------------------------------------------------------------------------- */

/* What the driver tells right behind the samples. Non-zero: heat or a brake slowed them, and another look is worth its time. */
static int note_clocks(const struct worker *w, cJSON *answer)
{
    struct nvml_state s;
    char slowed[40];
    if (!w->bed.nvml) return 0;
    nvml_read(w->bed.nvml, &s);
    nvml_words(&s, slowed, sizeof slowed);
    cJSON_DeleteItemFromObject(answer, "clocks");
    cJSON *o = cJSON_AddObjectToObject(answer, "clocks");
    cJSON_AddNumberToObject(o, "sm_mhz", s.sm_mhz);
    cJSON_AddNumberToObject(o, "mem_mhz", s.mem_mhz);
    cJSON_AddNumberToObject(o, "watts", s.watts);
    cJSON_AddNumberToObject(o, "celsius", s.celsius);
    cJSON_AddStringToObject(o, "slowed", slowed);
    return nvml_is_slowed(&s);
}

/* Of a CPU: pace.h. */
static double pace_of(const struct worker *w) { return w->bed.card ? 0 : pace_us(w->bed.team, w->bed.parts); }

static int do_time(struct worker *w, struct problem *p, const cJSON *q, cJSON *answer, struct q_err *e)
{
    double size = cJSON_GetNumberValue(cJSON_GetObjectItem(q, "size")), n = cJSON_GetNumberValue(cJSON_GetObjectItem(q, "n")), us[MOST_SAMPLES];
    const struct q_kernel *k;
    int rc = load(w, q, &k, e);
    if (!rc && !(size >= 0 && size < p->n_rings && n >= 1 && n <= MOST_SAMPLES)) rc = q_fail(e, Q_EINTERNAL, "no such size or number of samples");
    if (rc) return rc;
    struct bed_ring *r = &p->ring[(int)size];
    double before = pace_of(w);
    rc = bed_samples(&w->bed, r, k, (int)n, us, &w->fault, e);
    cJSON_AddNumberToObject(answer, "pace", (before + pace_of(w)) / 2);
    if (!rc && note_clocks(w, answer)) {
        rc = bed_samples(&w->bed, r, k, (int)n, us, &w->fault, e);
        if (!rc) note_clocks(w, answer);
    }
    if (!rc) cJSON_AddItemToObject(answer, "us", cJSON_CreateDoubleArray(us, (int)n));
    return rc;
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
    if (!strcmp(what, "drop")) return do_drop(w, p, q);
    return q_fail(e, Q_EINTERNAL, "a request with an unknown 'do'");
}

/* Takes `answer`. Non-zero when nobody listens. */
static int tell(const struct worker *w, cJSON *answer, int failed, const char *why)
{
    cJSON_AddBoolToObject(answer, "ok", !failed);
    if (failed) cJSON_AddStringToObject(answer, "why", why);
    if (failed && w->kind) cJSON_AddStringToObject(answer, "kind", w->kind);
    char *text = cJSON_PrintUnformatted(answer);
    int gone = !text || fprintf(w->answers, "%s\n", text) < 0 || fflush(w->answers);
    cJSON_free(text);
    cJSON_Delete(answer);
    return gone;
}

static int answer_line(struct worker *w, const char *line)
{
    struct q_err why = { 0 };
    cJSON *q = cJSON_Parse(line), *answer = cJSON_CreateObject();
    w->kind = NULL;
    int rc = serve(w, q, answer, &why);
    if (w->fault) cJSON_AddTrueToObject(answer, "gone");
    cJSON_Delete(q);
    return tell(w, answer, rc, why.text) || w->fault;
}

/* Requests and answers move to descriptors of their own; a crash leaves no core file where the user works. */
static int move_talk(struct worker *w)
{
    int in = fcntl(0, F_DUPFD_CLOEXEC, 10), out = fcntl(1, F_DUPFD_CLOEXEC, 10), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    if (in < 0 || out < 0 || null < 0) return -1;
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    w->requests = fdopen(in, "r");
    w->answers = fdopen(out, "w");
    return w->requests && w->answers ? 0 : -1;
}

int measure_child(const char *where)
{
    static struct worker w;
    char *line = NULL;
    size_t cap = 0;
    struct q_err e = { 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (move_talk(&w)) return 1;
    int stands = !bed_open(&w.bed, where, &e);
    if (tell(&w, cJSON_CreateObject(), !stands, e.text) || !stands) return 1;
    while (getline(&line, &cap, w.requests) > 0)
        if (answer_line(&w, line)) break;
    if (w.fault) return 1;    /* nothing that was the card's can be given back */
    for (int i = 0; i < MEASURE_SLOTS; i++) forget(&w, &w.slot[i]);
    for (int i = 0; i < LOADED; i++) unload(&w, &w.loaded[i]);
    bed_close(&w.bed);
    free(line);
    return 0;
}
