/* Running one kernel on one trial: the truth, within tolerance; canaries; the same bits each time and, in the canonical
 * class, for every team. */
#include "op_check.h"
#include "runtime/team.h"
#include <dlfcn.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

typedef void (*kernel_fn)(const void *args, struct team *t);

enum { MOST_ARG_BYTES = 512 };

int truth_make(struct truth *t, const struct op_ref *ref, const struct trial *trial, unsigned long long seed, struct q_err *e)
{
    alignas(16) unsigned char args[MOST_ARG_BYTES];
    memset(t, 0, sizeof *t);
    t->ref = ref;
    t->trial = trial;
    t->seed = seed;
    int rc = shape_parse(&t->shape, trial->shape, e);
    for (int i = 0; !rc && i < trial->n_sizes; i++) {
        struct ref_size size = trial->size[i];
        size.parts = 1;
        memset(args, 0, sizeof args);
        t->want[i] = ref_case_open();
        if (ref->args_bytes > sizeof args || ref->make(t->want[i], args, &t->shape, &size, seed))
            return q_fail(e, Q_EINTERNAL, "%s: its ref makes no case of %s", ref->op, trial->shape);
        ref->run(args, &t->shape);
    }
    return rc;
}

void truth_free(struct truth *t)
{
    for (int i = 0; i < MOST_SIZES; i++) ref_case_close(t->want[i]);
}

struct job {
    kernel_fn fn;
    const void *args;
};

static void run_member(void *arg, struct team *member)
{
    const struct job *j = arg;
    j->fn(j->args, member);
}

static int run_team(kernel_fn fn, const void *args, int parts, struct q_err *e)
{
    struct job j = {fn, args};
    struct q_team *team;
    int rc = team_open(&team, parts, e);
    if (rc) return rc;
    team_start(team, run_member, &j);
    team_finish(team);
    team_close(team);
    return Q_OK;
}

/* One run on a fresh case: its hash, or a failure. */
static int run_once(kernel_fn fn, const struct truth *t, int i, int parts, unsigned long long *hash, struct q_err *e)
{
    alignas(16) unsigned char args[MOST_ARG_BYTES];
    struct ref_size size = t->trial->size[i];
    struct ref_case *got = ref_case_open();
    size.parts = parts;
    memset(args, 0, sizeof args);
    int rc = t->ref->make(got, args, &t->shape, &size, t->seed) ? q_fail(e, Q_EINTERNAL, "no case") : Q_OK;
    if (!rc) rc = run_team(fn, args, parts, e);
    if (!rc) rc = ref_case_compare(t->want[i], got, e);
    if (!rc) *hash = ref_case_hash(got);
    ref_case_close(got);
    return rc;
}

static int check_size(kernel_fn fn, const struct truth *t, int i, int canonical, unsigned long long *hash, struct q_err *e)
{
    static const int parts[] = {1, 3};
    const struct ref_size *z = &t->trial->size[i];
    for (int k = 0; k < 2; k++) {
        unsigned long long h[2];
        for (int again = 0; again < 2; again++) {
            struct q_err why = {0};
            if (run_once(fn, t, i, parts[k], &h[again], &why))
                return q_fail(e, why.code, "rows %d, seqs %d, past %d, parts %d: %s", z->rows, z->seqs, z->past, parts[k], why.text);
        }
        if (h[0] != h[1]) return q_fail(e, Q_EINTERNAL, "rows %d, parts %d: two runs differ", z->rows, parts[k]);
        if (k && canonical && h[0] != *hash) return q_fail(e, Q_EINTERNAL, "rows %d: teams of 1 and 3 differ, though canonical", z->rows);
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
    union { void *p; kernel_fn fn; } sym = {so ? dlsym(so, k->name) : NULL};
    if (!sym.p) q_fail(&e, Q_EINTERNAL, "%s", dlerror());
    for (int i = 0; sym.p && !e.code && i < t->trial->n_sizes; i++)
        check_size(sym.fn, t, i, !strcmp(k->numerics, "canonical"), &v->hash[i], &e);
    v->failed = e.code != 0;
    snprintf(v->why, sizeof v->why, "%.599s", e.text);
    if (so) dlclose(so);
}
