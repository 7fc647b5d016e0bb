/* A second look at problems of which one look told too little: while a final ran others used the processors, or the memory was in the slower of two
 * modes, in which all that read it are alike. Such states last for seconds or minutes, so no more laps would have told; the end of the tune may.
 *
 * Two kinds of problems get one: those whose winner has a rival that may be RACE_DOUBT ahead of it, and those whose final ran while the processors
 * were slower than in the tune's best moment (pace.h), where what is a bit slower else may have won. */
#include "runtime/clock.h"
#include "tune_impl.h"
#include <math.h>
#include <string.h>

enum { LOOKS = 2 };    /* at most, of a problem */
#define SHARE 30.0     /* of what a race may take: none begins after that, half a minute with effort normal */

int tune_was_slowed(const struct found *f, double best) { return f->fresh && f->rivals.n && best > 0 && f->rivals.pace > RACE_SLOWED * best; }

static int is_doubtful(const struct found *f) { return f->fresh && f->rivals.n && f->rivals.ahead[0] >= RACE_DOUBT; }

struct found *tune_next_look(const struct found_list *l, double best)
{
    struct found *next = NULL;
    for (int i = 0; i < l->n; i++) {
        struct found *f = &l->f[i];
        if (f->looks >= LOOKS || !(tune_was_slowed(f, best) || (is_doubtful(f) && !f->looks))) continue;
        if (!next || f->looks < next->looks || (f->looks == next->looks && f->rivals.pace > next->rivals.pace)) next = f;
    }
    return next;
}

int tune_take_final(struct found *f, const struct outcome *out)
{
    int fails = out->failed || out->known_bad;
    if (!fails && out->rivals.pace > RACE_SLOWED * f->rivals.pace) return 0;
    f->record = out->record;
    f->base = out->base;
    f->rivals = out->rivals;
    return 1;
}

static void tell(struct tuner *t, const struct found *f, const char *before, const struct outcome *out)
{
    char name[320], params[200];
    progress_name(name, sizeof name, &f->problem);
    progress_difference(params, sizeof params, f->record.params, before);
    progress_line(&t->progress, "a second look at %s: %s%s%s", name, strcmp(f->record.params, before) ? params : "the same",
                  out->failed ? "; " : "", out->first_failure);
}

/* The default params themselves fail now. Nothing can be held against them, nor told of the winner. */
static int give_up(struct tuner *t, const struct found *f, const struct q_err *why)
{
    char name[320];
    progress_name(name, sizeof name, &f->problem);
    progress_line(&t->progress, "a second look at %s came to nothing: %s", name, why->text);
    return Q_OK;
}

static int look_again(struct tuner *t, struct found *f, struct q_err *e)
{
    char params[1 + RACE_RIVALS][256], before[256];
    struct record held;
    struct outcome out;
    struct q_err why;
    int n = 0, holds = recorded_holds(&t->known, &f->problem, &held);
    f->looks++;
    strcpy(before, f->record.params);
    strcpy(params[n++], before);
    for (int i = 0; i < f->rivals.n; i++) strcpy(params[n++], f->rivals.params[i]);
    int rc = contest_final(&t->env, &f->problem, holds ? held.params : NULL, (const char (*)[256])params, n, &out, &why);
    if (rc && !tune_is_local(rc)) return q_fail(e, rc, "%s", why.text);
    if (rc) return give_up(t, f, &why);
    if (tune_take_final(f, &out)) tune_note_won(t, &f->record, &f->base, &out);
    tell(t, f, before, &out);
    return Q_OK;
}

/* Who reads the records should know. */
static void tell_slowed(struct tuner *t)
{
    double best = t->patience.best_pace, most = best;
    int n = 0;
    for (int i = 0; i < t->found.n; i++)
        if (tune_was_slowed(&t->found.f[i], best)) n++, most = fmax(most, t->found.f[i].rivals.pace);
    if (n) progress_line(&t->progress, "%d of %d winners were chosen while something else slowed the processors, by up to %.0f %%: a tune at a quieter "
                         "time may choose others", n, t->found.n, 100 * (most / best - 1));
}

int tune_look_twice(struct tuner *t, struct q_err *e)
{
    double end = clock_s() + SHARE * t->env.effort->budget_us * 1e-6;
    int rc = Q_OK;
    struct found *f;
    while (!rc && clock_s() < end && (f = tune_next_look(&t->found, t->patience.best_pace))) rc = look_again(t, f, e);
    if (!rc) tell_slowed(t);
    return rc;
}
