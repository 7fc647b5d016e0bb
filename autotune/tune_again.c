/* Winners that were recorded under another compiler or driver, or whose object is gone: built and checked again, kept when they are right. */
#include "rebuild.h"
#include "tune_impl.h"
#include <stdlib.h>
#include <string.h>

#define AGAIN_US 0.1e6     /* of measuring a recorded winner again */

/* A winner that is wrong is used by no engine from now on, however this tune ends. */
static void put_away(const struct tuner *t, const struct record *r)
{
    struct store_key k = { r->op, r->shape, r->rows, r->ctx, r->profile, r->card, r->generator };
    char path[Q_PATH];
    store_set_aside(t->o->build->store, &k, path, NULL);
}

int tune_again(struct tuner *t, const struct q_problem *p, const struct record *old, struct q_err *e)
{
    struct effort brief = *t->env.effort;
    struct contest_env env = t->env;
    struct outcome out;
    struct q_err why;
    int worse = 0;
    brief.budget_us = AGAIN_US;
    env.effort = &brief;
    int rc = contest_again(&env, p, old->params, &out, &worse, &why);
    if (rc && !tune_is_local(rc)) return q_fail(e, rc, "%s", why.text);
    if (rc == Q_EINTERNAL) put_away(t, old);
    if (rc || worse) {
        progress_line(&t->progress, "%s %s: %s; it is tuned anew", p->op, p->shape,
                      rc ? why.text : "the recorded params lose against the default ones");
        return tune_problem(t, p, e);
    }
    struct found *f = found_add(&t->found, p);
    if (!f) return q_fail(e, Q_EMEM, "no memory for results");
    f->record = out.record;
    strcpy(f->record.effort, old->effort);
    f->again = 1;
    progress_again(&t->progress, p, &f->record, old);
    return Q_OK;
}

/* Once for all that have the same reason. */
void tune_tell_why(struct tuner *t, const struct q_problem *p, enum recorded state, const char *why)
{
    if (!strcmp(t->told_why, why)) return;
    snprintf(t->told_why, sizeof t->told_why, "%s", why);
    progress_line(&t->progress, "%s %s: %s: %s", p->op, p->shape, why,
                  state == RECORDED_AGAIN ? "winners of which that is true are built and checked again" : "it is tuned anew");
}

int tune_prepare_again(struct tuner *t, const struct q_problem_list *l, int n, struct q_err *e)
{
    const struct record **all = calloc((size_t)n, sizeof *all);
    struct record *r = calloc((size_t)n, sizeof *r);
    int k = 0, rc = all && r ? Q_OK : q_fail(e, Q_EMEM, "no memory for %d records", n);
    for (int i = 0; i < n && !rc; i++) {
        enum recorded state;
        char why[200];
        rc = recorded_find(&t->known, &l->p[i], &r[k], &state, why, e);
        if (!rc && state == RECORDED_AGAIN) all[k] = &r[k], k++;
    }
    if (!rc && k) rc = rebuild_all(t->o->build, t->o->t, t->o->g, all, k, e);
    free(all);
    free(r);
    return rc;
}
