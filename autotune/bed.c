#define _GNU_SOURCE
#include "bed_impl.h"
#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { RING = 256 };

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

int bed_truth_make(struct bed *b, struct bed_truth *t, const struct bed_truth *beside, const struct op_ref *ref, const struct q_shape *s,
                   const struct ref_size *size, unsigned long long seed, struct q_err *e)
{
    memset(t, 0, sizeof *t);
    int rc = trial_truth_make(&t->truth, beside ? &beside->truth : NULL, ref, s, size, seed, e);
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

int bed_truth_check(struct bed *b, struct bed_truth *t, const struct q_kernel *k, const char *numerics, unsigned long long *hash, int *fault,
                    struct q_err *e)
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
    int rc = trial_make_in(&r->t[r->n], r->arena, ref, s, size, seed_of(r->n), e);
    r->n += !rc;
    return rc;
}

static int ring_of_host(struct bed_ring *r, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size, double cold,
                        struct q_err *e)
{
    double have = 0;
    int rc = Q_OK;
    if (!(r->t = calloc(RING, sizeof *r->t))) return q_fail(e, Q_EMEM, "no memory for a ring of cases");
    r->arena = ref_arena_open();
    while (!rc && r->n < RING && (r->n == 0 || have < cold))
        if (!(rc = add_host(r, ref, s, size, e))) have += (double)ref_case_bytes(r->t[r->n - 1].c);
    return rc;
}

/* Places of one case: making contents takes longer than sending them, and a cache does not know that they are equal. */
static int ring_of_card(struct bed *b, struct bed_ring *r, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size,
                        double cold, struct q_err *e)
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

int bed_ring_make(struct bed *b, struct bed_ring *r, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size, double cold,
                  struct q_err *e)
{
    memset(r, 0, sizeof *r);
    return b->card ? ring_of_card(b, r, ref, s, size, cold, e) : ring_of_host(r, ref, s, size, cold, e);
}

void bed_ring_free(struct bed *b, struct bed_ring *r)
{
    for (int i = 0; i < r->n && r->t; i++) trial_free(&r->t[i]);
    for (int i = 0; i < r->n && r->p; i++) placed_close(&r->p[i], b->card);
    ref_arena_close(r->arena);
    free(r->t);
    free(r->p);
    memset(r, 0, sizeof *r);
}
