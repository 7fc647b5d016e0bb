/* Running one kernel on one trial: the truth, within tolerance; canaries; the same bits each time and, in the canonical
 * class, for every team. */
#include "op_check.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const int members[TEAMS] = {1, 3};

/* The case of one size for a team; the truth is of any team. */
static int make_case(struct truth *t, int i, int team, unsigned long long seed, struct q_err *e)
{
    struct ref_size size = t->trial->size[i];
    struct trial_case *c = &t->c[i][team];
    size.parts = members[team];
    int rc = trial_make(c, t->ref, &t->shape, &size, seed, e);
    if (rc) return rc;
    t->begin[i][team] = ref_case_copy(c->c);
    if (team) return Q_OK;
    t->ref->run(c->args, &t->shape);
    t->want[i] = ref_case_copy(c->c);
    return Q_OK;
}

int truth_make(struct truth *t, const struct op_ref *ref, const struct trial *trial, unsigned long long seed, struct q_err *e)
{
    memset(t, 0, sizeof *t);
    t->ref = ref;
    t->trial = trial;
    int rc = shape_parse(&t->shape, trial->shape, e);
    for (int i = 0; !rc && i < trial->n_sizes; i++)
        for (int team = 0; !rc && team < TEAMS; team++) rc = make_case(t, i, team, seed, e);
    return rc;
}

void truth_free(struct truth *t)
{
    for (int i = 0; i < MOST_SIZES; i++) {
        for (int team = 0; team < TEAMS; team++) {
            ref_case_close(t->begin[i][team]);
            trial_free(&t->c[i][team]);
        }
        ref_case_close(t->want[i]);
    }
    memset(t, 0, sizeof *t);
}

/* One run on the case as it began, and a fresh team: its hash, or a failure. */
static int run_once(trial_fn fn, const struct truth *t, const char *numerics, int i, int k, unsigned long long *hash, struct q_err *e)
{
    const struct trial_case *c = &t->c[i][k];
    struct q_team *team;
    int rc = team_open(&team, members[k], e);
    if (rc) return rc;
    ref_case_restore(c->c, t->begin[i][k]);
    trial_run(team, fn, c->args);
    team_close(team);
    rc = ref_case_compare(t->want[i], c->c, numerics, e);
    if (!rc) *hash = ref_case_hash(c->c);
    return rc;
}

static int check_size(trial_fn fn, const struct truth *t, const char *numerics, int i, unsigned long long *hash, struct q_err *e)
{
    const struct ref_size *z = &t->trial->size[i];
    for (int k = 0; k < TEAMS; k++) {
        unsigned long long h[2];
        for (int again = 0; again < 2; again++) {
            struct q_err why = {0};
            if (run_once(fn, t, numerics, i, k, &h[again], &why))
                return q_fail(e, why.code, "rows %d, seqs %d, past %d, parts %d: %s", z->rows, z->seqs, z->past, members[k], why.text);
        }
        if (h[0] != h[1]) return q_fail(e, Q_EINTERNAL, "rows %d, parts %d: two runs differ", z->rows, members[k]);
        if (k && !strcmp(numerics, "canonical") && h[0] != *hash)
            return q_fail(e, Q_EINTERNAL, "rows %d: teams of 1 and 3 differ, though canonical", z->rows);
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
