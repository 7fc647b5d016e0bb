#define _GNU_SOURCE
#include "bed.h"
#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RING = 256 };

/* When a member began and ended its part, in microseconds. */
struct bed_span {
    double begin, end;
};

int bed_open(struct bed *b, const char *where, struct q_err *e)
{
    memset(b, 0, sizeof *b);
    int threads = isdigit((unsigned char)*where) ? atoi(where) : 0;
    if (!isdigit((unsigned char)*where)) {
        int rc = device_open(&b->card, where, 0, e);
        b->parts = rc ? 0 : 1;
        if (!rc && b->card->address[0]) nvml_open(&b->nvml, NULL, b->card->address, NULL);
        return rc;
    }
    b->parts = threads < 1 ? 1 : threads;
    if (!(b->span = calloc((size_t)b->parts, sizeof *b->span))) return q_fail(e, Q_EMEM, "no memory for %d threads", b->parts);
    return team_open(&b->team, b->parts, e);
}

void bed_close(struct bed *b)
{
    nvml_close(b->nvml);
    if (b->card) b->card->ops->close(b->card);
    if (b->team) team_close(b->team);
    free(b->span);
    memset(b, 0, sizeof *b);
}

int bed_load(struct bed *b, const char *object, const char *symbol, const struct q_phases *phases, struct q_kernel *k, struct q_err *e)
{
    memset(k, 0, sizeof *k);
    if (b->card) return b->card->ops->load(b->card, object, symbol, phases, k, e);
    k->library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (k->library) *(void **)&k->fn = dlsym(k->library, symbol);
    return k->fn ? Q_OK : q_fail(e, Q_EINTERNAL, "%s", dlerror());
}

void bed_unload(struct bed *b, struct q_kernel *k)
{
    if (b->card) b->card->ops->unload(b->card, k);
    else if (k->library) dlclose(k->library);
    memset(k, 0, sizeof *k);
}

/* --- truths ------------------------------------------------------------------------------------------------------------ */

int bed_truth_make(struct bed *b, struct bed_truth *t, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size,
                   unsigned long long seed, struct q_err *e)
{
    memset(t, 0, sizeof *t);
    int rc = trial_truth_make(&t->truth, ref, s, size, seed, e);
    if (!rc && b->card) rc = placed_open(&t->placed, b->card, &t->truth.t, ref, size, e);
    return rc;
}

void bed_truth_free(struct bed *b, struct bed_truth *t)
{
    if (b->card) placed_close(&t->placed, b->card);
    trial_truth_free(&t->truth);
}

int bed_truth_intact(const struct bed_truth *t)
{
    return ref_case_hash(t->truth.want) == t->truth.want_hash && ref_case_hash(t->truth.begin) == t->truth.begin_hash;
}

/* One call and what it left, in the host's case. */
static int run_placed(struct q_device *d, const struct placed *p, const struct ref_case *c, const struct q_kernel *k, struct q_err *e)
{
    struct q_list list = { 0 };
    int rc = placed_write(p, d, c, 0, e);
    if (!rc) rc = list_push(&list, k, "trial", p->args, p->arg_bytes, e);
    if (!rc) rc = d->ops->submit(d, &list, &p->extent, NULL, e);
    if (!rc) rc = d->ops->wait(d, e);
    if (!rc) rc = placed_read(p, d, c, e);
    list_free(&list);
    return rc;
}

int bed_truth_check(struct bed *b, struct bed_truth *t, const struct q_kernel *k, const char *numerics, unsigned long long *hash, int *fault, struct q_err *e)
{
    if (!b->card) return trial_truth_check(&t->truth, b->team, k->fn, numerics, hash, e);
    struct ref_case *c = t->truth.t.c;
    ref_case_restore(c, t->truth.begin);
    int rc = run_placed(b->card, &t->placed, c, k, e);
    if (rc) return *fault = 1, rc;
    rc = ref_case_compare(t->truth.want, c, numerics, e);
    if (!rc) *hash = ref_case_hash(c);
    return rc;
}

/* --- rings ------------------------------------------------------------------------------------------------------------- */

static unsigned long long seed_of(int i) { return 0x5EED0001ull + 7919ull * (unsigned)(i + 2); }

static int add_host(struct bed_ring *r, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size, struct q_err *e)
{
    int rc = trial_make(&r->t[r->n], ref, s, size, seed_of(r->n), e);
    r->n += !rc;
    return rc;
}

static int ring_of_host(struct bed_ring *r, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size, double cold, struct q_err *e)
{
    double have = 0;
    int rc = Q_OK;
    if (!(r->t = calloc(RING, sizeof *r->t))) return q_fail(e, Q_EMEM, "no memory for a ring of cases");
    while (!rc && r->n < RING && (r->n == 0 || have < cold))
        if (!(rc = add_host(r, ref, s, size, e))) have += (double)ref_case_bytes(r->t[r->n - 1].c);
    return rc;
}

/* Places of one case: making contents takes longer than sending them, and a cache does not know that they are equal. */
static int ring_of_card(struct bed *b, struct bed_ring *r, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size, double cold, struct q_err *e)
{
    struct trial_case t;
    double have = 0;
    if (!(r->p = calloc(RING, sizeof *r->p))) return q_fail(e, Q_EMEM, "no memory for a ring of cases");
    int rc = trial_make(&t, ref, s, size, seed_of(0), e);
    if (rc) return rc;
    while (!rc && r->n < RING && (r->n == 0 || have < cold))
        if (!(rc = placed_open(&r->p[r->n], b->card, &t, ref, size, e))) have += (double)r->p[r->n++].bytes;
    trial_free(&t);
    return rc;
}

int bed_ring_make(struct bed *b, struct bed_ring *r, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size, double cold, struct q_err *e)
{
    memset(r, 0, sizeof *r);
    return b->card ? ring_of_card(b, r, ref, s, size, cold, e) : ring_of_host(r, ref, s, size, cold, e);
}

void bed_ring_free(struct bed *b, struct bed_ring *r)
{
    for (int i = 0; i < r->n && r->t; i++) trial_free(&r->t[i]);
    for (int i = 0; i < r->n && r->p; i++) placed_close(&r->p[i], b->card);
    free(r->t);
    free(r->p);
    memset(r, 0, sizeof *r);
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
    q_kernel_fn fn;
    const struct bed_ring *ring;
    int calls;
    struct bed_span *span;    /* [parts] */
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

static double time_team(struct bed *bed, struct bed_ring *r, q_kernel_fn fn, int calls)
{
    struct batch b = { fn, r, calls, bed->span };
    team_start(bed->team, run_batch, &b);
    team_finish(bed->team);
    r->next = (r->next + calls) % r->n;
    struct bed_span s = bed->span[0];
    for (int i = 1; i < bed->parts; i++) {
        if (bed->span[i].begin < s.begin) s.begin = bed->span[i].begin;
        if (bed->span[i].end > s.end) s.end = bed->span[i].end;
    }
    return (s.end - s.begin) / calls;
}

/* Whole passes over the ring. */
static int time_card(struct bed *b, struct bed_ring *r, const struct q_kernel *k, int calls, double *us, struct q_err *e)
{
    struct q_list list = { 0 };
    int rc = Q_OK;
    for (int i = 0; i < r->n && !rc; i++) rc = list_push(&list, k, "trial", r->p[i].args, r->p[i].arg_bytes, e);
    if (!rc) rc = b->card->ops->time(b->card, &list, &r->p[0].extent, (calls + r->n - 1) / r->n, us, e);
    *us /= r->n;
    list_free(&list);
    return rc;
}

int bed_time(struct bed *b, struct bed_ring *r, const struct q_kernel *k, int calls, double *us, int *fault, struct q_err *e)
{
    *us = 0;
    if (b->card) return (*fault = time_card(b, r, k, calls, us, e));
    *us = time_team(b, r, k->fn, calls);
    return Q_OK;
}
