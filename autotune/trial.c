#include "trial.h"
#include <string.h>

static int make(struct trial_case *t, struct ref_arena *arena, const struct ref_case *beside, const struct op_ref *ref, const struct q_shape *s,
                const struct ref_size *size, unsigned long long seed, struct q_err *e)
{
    memset(t, 0, sizeof *t);
    if (ref->args_bytes > sizeof t->args) return q_fail(e, Q_EINTERNAL, "%s: its arguments have more than %zu bytes", ref->op, sizeof t->args);
    t->c = arena ? ref_case_open_in(arena) : ref_case_open();
    ref_case_borrow(t->c, beside);
    if (!ref->make(t->c, t->args, s, size, seed)) return Q_OK;
    trial_free(t);
    return q_fail(e, Q_EINTERNAL, "%s: its ref makes no case of this shape", ref->op);
}

int trial_make(struct trial_case *t, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size, unsigned long long seed,
               struct q_err *e)
{
    return make(t, NULL, NULL, ref, s, size, seed, e);
}

int trial_make_in(struct trial_case *t, struct ref_arena *arena, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size,
                  unsigned long long seed, struct q_err *e)
{
    return make(t, arena, NULL, ref, s, size, seed, e);
}

void trial_free(struct trial_case *t)
{
    ref_case_close(t->c);
    t->c = NULL;
}

struct call {
    trial_fn fn;
    const void *args;
};

static void call_member(void *arg, struct team *member)
{
    const struct call *c = arg;
    c->fn(c->args, member);
}

void trial_run(struct q_team *team, trial_fn fn, const void *args)
{
    struct call c = { fn, args };
    team_start(team, call_member, &c);
    team_finish(team);
}

int trial_truth_make(struct trial_truth *t, const struct trial_truth *beside, const struct op_ref *ref, const struct q_shape *s,
                     const struct ref_size *size, unsigned long long seed, struct q_err *e)
{
    memset(t, 0, sizeof *t);
    int rc = make(&t->t, NULL, beside ? beside->t.c : NULL, ref, s, size, seed, e);
    if (rc) return rc;
    t->begin = ref_case_copy(t->t.c);
    ref->run(t->t.args, s);
    t->want = ref_case_copy(t->t.c);
    t->begin_hash = ref_case_hash(t->begin);
    t->want_hash = ref_case_hash(t->want);
    return Q_OK;
}

void trial_truth_free(struct trial_truth *t)
{
    ref_case_close(t->begin);
    ref_case_close(t->want);
    trial_free(&t->t);
    t->begin = t->want = NULL;
}

int trial_truth_check(struct trial_truth *t, struct q_team *team, trial_fn fn, const char *numerics, unsigned long long *hash, struct q_err *e)
{
    ref_case_restore(t->t.c, t->begin);
    trial_run(team, fn, t->t.args);
    int rc = ref_case_compare(t->want, t->t.c, numerics, e);
    if (!rc) *hash = ref_case_hash(t->t.c);
    return rc;
}
