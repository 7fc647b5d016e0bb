/* Running one kernel on one trial: the truth, within tolerance; canaries; the same bits each time and, in the canonical
 * class, for every team. */
#include "op_check.h"
#include "autotune/trial.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int truth_make(struct truth *t, const struct op_ref *ref, const struct trial *trial, unsigned long long seed, struct q_err *e)
{
    memset(t, 0, sizeof *t);
    t->ref = ref;
    t->trial = trial;
    t->seed = seed;
    int rc = shape_parse(&t->shape, trial->shape, e);
    for (int i = 0; !rc && i < trial->n_sizes; i++) {
        struct ref_size size = trial->size[i];
        struct trial_case c;
        size.parts = 1;
        rc = trial_make(&c, ref, &t->shape, &size, seed, e);
        if (!rc) ref->run(c.args, &t->shape);
        t->want[i] = c.c;
    }
    return rc;
}

void truth_free(struct truth *t)
{
    for (int i = 0; i < MOST_SIZES; i++) ref_case_close(t->want[i]);
}

/* One run on a fresh case: its hash, or a failure. */
static int run_on(struct q_team *team, trial_fn fn, const struct truth *t, const char *numerics, int i, int parts, unsigned long long *hash,
                  struct q_err *e)
{
    struct ref_size size = t->trial->size[i];
    struct trial_case one;
    size.parts = parts;
    int rc = trial_make(&one, t->ref, &t->shape, &size, t->seed, e);
    if (rc) return rc;
    trial_run(team, fn, one.args);
    rc = ref_case_compare(t->want[i], one.c, numerics, e);
    if (!rc) *hash = ref_case_hash(one.c);
    trial_free(&one);
    return rc;
}

/* The same on a fresh team. */
static int run_once(trial_fn fn, const struct truth *t, const char *numerics, int i, int parts, unsigned long long *hash, struct q_err *e)
{
    struct q_team *team;
    int rc = team_open(&team, parts, e);
    if (rc) return rc;
    rc = run_on(team, fn, t, numerics, i, parts, hash, e);
    team_close(team);
    return rc;
}

static int check_size(trial_fn fn, const struct truth *t, const char *numerics, int i, unsigned long long *hash, struct q_err *e)
{
    static const int parts[] = {1, 3};
    const struct ref_size *z = &t->trial->size[i];
    for (int k = 0; k < 2; k++) {
        unsigned long long h[2];
        for (int again = 0; again < 2; again++) {
            struct q_err why = {0};
            if (run_once(fn, t, numerics, i, parts[k], &h[again], &why))
                return q_fail(e, why.code, "rows %d, seqs %d, past %d, parts %d: %s", z->rows, z->seqs, z->past, parts[k], why.text);
        }
        if (h[0] != h[1]) return q_fail(e, Q_EINTERNAL, "rows %d, parts %d: two runs differ", z->rows, parts[k]);
        if (k && !strcmp(numerics, "canonical") && h[0] != *hash) return q_fail(e, Q_EINTERNAL, "rows %d: teams of 1 and 3 differ, though canonical", z->rows);
        if (!k) *hash = h[0];
    }
    return Q_OK;
}

void kernel_check(struct verdict *v, const char *object, const struct gen_kernel *k, const struct truth *t)
{
    struct q_err e = {0};
    memset(v, 0, sizeof *v);
    v->ran = 1;
    void *so = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    union { void *p; trial_fn fn; } sym = {so ? dlsym(so, k->name) : NULL};
    if (!sym.p) q_fail(&e, Q_EINTERNAL, "%s", dlerror());
    for (int i = 0; sym.p && !e.code && i < t->trial->n_sizes; i++)
        check_size(sym.fn, t, k->numerics, i, &v->hash[i], &e);
    v->failed = e.code != 0;
    snprintf(v->why, sizeof v->why, "%.599s", e.text);
    if (so) dlclose(so);
}
