/* A second look at problems of which one look told too little: while a final ran others used the processors, or the memory was in the slower of two
 * modes, in which all that read it are alike. Such states last for minutes, so no more laps would have told; the end of the tune may. */
#include "runtime/clock.h"
#include "tune_impl.h"
#include <math.h>
#include <string.h>

#define ALL_S 12.0     /* seconds for all of them */

int tune_take_duel(struct found *f, const struct outcome *out)
{
    const struct duel *d = &out->duel;
    const struct record *won = d->accepted ? &out->record : &out->base;
    if (!strcmp(won->params, f->record.params)) return 0;
    double had = 1 - f->record.gain, step = d->accepted ? 1 - d->gain : 1 / (1 - d->gain);     /* times, in relation to the default's */
    double base_us = f->record.base_us;      /* of the final, as f->base is */
    f->record = *won;
    f->record.base_us = base_us;
    f->record.gain = strcmp(won->params, won->base_params) ? fmax(1 - had * step, 0) : 0;
    return 1;
}

/* What the journal tells of is the winner beside the default params. */
static void note_taken(struct tuner *t, const struct found *f, struct outcome *out)
{
    out->duel.gain = f->record.gain;
    out->duel.accepted = strcmp(f->record.params, f->record.base_params) != 0;
    tune_note_won(t, &f->record, &f->base, out);
}

static int look_again(struct tuner *t, struct found *f, struct q_err *e)
{
    struct outcome out;
    struct q_err why;
    char name[320], before[256], params[200];
    strcpy(before, f->record.params);
    int rc = contest_pair(&t->env, &f->problem, f->rival_first ? f->rival : before, f->rival_first ? before : f->rival, &out, &why);
    if (rc) return tune_is_local(rc) ? Q_OK : q_fail(e, rc, "%s", why.text);
    double apart = fabs(out.duel.gain);
    int changed = tune_take_duel(f, &out);
    if (changed) note_taken(t, f, &out);
    progress_name(name, sizeof name, &f->problem);
    progress_difference(params, sizeof params, f->rival, before);
    progress_line(&t->progress, "a second look at %s: %s %s, %.1f %% apart", name, params, changed ? "takes the place" : "does not take the place",
                  100 * apart);
    return Q_OK;
}

int tune_look_twice(struct tuner *t, struct q_err *e)
{
    double end = clock_s() + ALL_S;
    int rc = Q_OK;
    for (int i = 0; i < t->found.n && !rc && clock_s() < end; i++)
        if (t->found.f[i].fresh && t->found.f[i].rival[0]) rc = look_again(t, &t->found.f[i], e);
    return rc;
}
