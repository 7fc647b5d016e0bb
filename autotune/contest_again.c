/* Contests over params that are recorded already: are they still right and no worse than the default, and which of two is the better one? */
#include "contest_impl.h"
#include <math.h>
#include <string.h>

/* The candidate with these params; -1: it was left out, *e says why. */
static int add_known(struct contest *t, const char *params, struct q_err *e)
{
    struct gen_kernel k;
    int bad = t->out->known_bad, rc = contest_add(t, params, e);
    if (rc) return -1;
    if (t->out->known_bad > bad) return q_fail(e, Q_EINTERNAL, "the recorded params are known to be bad here"), -1;
    if (target_emit(t->env->t, t->env->g, t->p, params, &k, e)) return -1;
    int at = t->n - 1;
    while (at >= 0 && strcmp(t->c[at].k.params, k.params)) at--;
    gen_kernel_free(&k);
    if (at < 0) q_fail(e, Q_EUNSUP, "%s %s: the recorded params are not of an admitted class", t->p->op, t->p->shape);
    return at;
}

/* The first one whose object is the same: checks leave out those behind it. */
static int first_like(const struct contest *t, int at)
{
    for (int i = 0; i < at; i++)
        if (t->c[i].usable && !strcmp(t->c[i].task.object.content, t->c[at].task.object.content)) return i;
    return at;
}

/* All that was added, built and right. Q_EINTERNAL is about the params alone: not about the default, nor about what surrounds it. */
static int make_ready(struct contest *t, struct q_err *e)
{
    struct q_err why;
    int rc = contest_ready(t, &why);
    if (rc) return q_fail(e, rc == Q_EINTERNAL && t->n > 1 ? Q_EUNSUP : rc, "%s", why.text);
    return t->out->failed ? q_fail(e, Q_EINTERNAL, "%s", t->out->first_failure) : Q_OK;
}

static int run_again(struct contest *t, const char *params, int *worse, struct q_err *e)
{
    struct duel d = { 0 };
    int best, at, rc = contest_add(t, NULL, e);
    if (rc) return rc;
    if ((at = add_known(t, params, e)) < 0) return e->code;
    if ((rc = make_ready(t, e))) return rc;
    at = first_like(t, at);
    rc = contest_race(t, at, t->n, &best, e);
    if (!rc && at) rc = race_duel(&t->race, &t->r[0], &t->r[at], &d, e);
    if (!rc && t->r[at].bad) rc = q_fail(e, Q_EINTERNAL, "%s: %s", t->c[at].k.name, t->r[at].why);
    if (rc) return rc;
    *worse = at && (t->r[at].out || d.gain < -d.band);
    contest_record(&t->out->record, t, at);
    contest_record(&t->out->base, t, 0);
    t->out->record.gain = at ? fmax(d.gain, 0) : 0;
    return Q_OK;
}

int contest_again(const struct contest_env *env, const struct q_problem *p, const char *params, struct outcome *out, int *worse, struct q_err *e)
{
    struct contest t;
    struct q_err why;
    int rc = contest_open(&t, env, p, out, &why);
    if (!rc) rc = run_again(&t, params, worse, &why);
    contest_close(&t);
    return rc ? q_fail(e, rc, "%s", why.text) : Q_OK;
}

/* --- a final once more ------------------------------------------------------------------------------------------------- */

static int run_final(struct contest *t, const char (*params)[256], int n, struct q_err *e)
{
    struct final f;
    int rc = contest_add(t, NULL, e);
    for (int i = 0; i < n && !rc; i++) rc = contest_add(t, params[i], e);
    if (!rc) rc = contest_ready(t, e);
    if (!rc) rc = contest_finish_all(t, &f, e);
    if (!rc) contest_conclude(t, &f);
    return rc;
}

int contest_final(const struct contest_env *env, const struct q_problem *p, const char *held, const char (*params)[256], int n, struct outcome *out,
                  struct q_err *e)
{
    struct contest t;
    struct q_err why;
    int rc = contest_open(&t, env, p, out, &why);
    t.held = held;
    if (!rc) rc = run_final(&t, params, n, &why);
    contest_close(&t);
    return rc ? q_fail(e, rc, "%s", why.text) : Q_OK;
}

/* --- two of them ------------------------------------------------------------------------------------------------------- */

static int run_pair(struct contest *t, const char *own, const char *other, struct q_err *e)
{
    struct outcome *out = t->out;
    int best, a, b, rc = contest_add(t, NULL, e);
    if (rc) return rc;
    if ((a = add_known(t, own, e)) < 0 || (b = add_known(t, other, e)) < 0) return e->code;
    if ((rc = make_ready(t, e))) return rc;
    a = first_like(t, a);
    b = first_like(t, b);
    if (a != b) rc = contest_race(t, 0, 1, &best, e);
    if (!rc && a != b) {
        t->r[a].out = t->r[b].out = 0;         /* how far behind is asked, not whether */
        rc = race_duel(&t->race, &t->r[a], &t->r[b], &out->duel, e);
    }
    if (!rc && t->r[b].bad) rc = q_fail(e, Q_EINTERNAL, "%s: %s", t->c[b].k.name, t->r[b].why);
    if (rc) return rc;
    contest_record(&out->record, t, b);
    contest_record(&out->base, t, a);
    return Q_OK;
}

int contest_pair(const struct contest_env *env, const struct q_problem *p, const char *own, const char *other, struct outcome *out, struct q_err *e)
{
    struct contest t;
    struct q_err why;
    int rc = contest_open(&t, env, p, out, &why);
    if (!rc) rc = run_pair(&t, own, other, &why);
    contest_close(&t);
    return rc ? q_fail(e, rc, "%s", why.text) : Q_OK;
}
