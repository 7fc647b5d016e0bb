#include "race_impl.h"
#include <stdio.h>
#include <string.h>

/* Laps before anything is told: at least, and enough. A card keeps its own time, and needs fewer. */
static const int laps[][2] = { { 11, 32 }, { 9, 16 } };
#define SHARE 1.0     /* of the budget, for all laps */

struct final {
    const struct race *race;
    struct racer *r;
    int n;
    char timed[RACE_MOST];     /* takes part in the next lap; who left does not come back */
    int done;                  /* laps */
    double spent;              /* about, in microseconds */
};

static int runs(const struct racer *r) { return !r->bad && !r->out; }

/* All that are timed, at one size, then at the next. */
static int one_lap(struct final *f, struct q_err *e)
{
    int rc = Q_OK, in[RACE_MOST], order[RACE_MOST], k = 0;
    for (int j = 0; j < f->n; j++)
        if (f->timed[j]) in[k++] = j;
    race_order(f->done, k, order);
    for (int i = 0; i < f->race->n_sizes; i++)
        for (int j = 0; j < k && !rc; j++) rc = race_sample(f->race, &f->r[in[order[j]]], i, 1, e);
    for (int j = 0; j < k; j++) f->spent += race_lap(f->race, &f->r[in[j]], 1);
    f->done++;
    return rc;
}

/* Those who still take part, first those that win a tie. */
static int in_order(const struct final *f, int *of)
{
    int k = 0;
    for (int i = 0; i < f->n; i++) {
        if (!f->timed[i] || !runs(&f->r[i])) continue;
        int at = k++;
        for (; at > 0 && race_before(f->r, i, of[at - 1]); at--) of[at] = of[at - 1];
        of[at] = i;
    }
    return k;
}

static int gains(const void *arg, int a, int b, double *gain, double *noise)
{
    const struct final *f = arg;
    struct duel d;
    race_judge(f->race, &f->r[a], &f->r[b], f->done, &d);
    *gain = d.gain;
    *noise = d.noise;
    return d.accepted;
}

/* From now on those take part of whom more is to be known, the default and the choice. Non-zero: there are some. */
static int choose(struct final *f, int *choice)
{
    int of[RACE_MOST] = { 0 }, k = in_order(f, of);
    char more[RACE_MOST] = { 0 };
    int open = race_choose(of, k, gains, f, choice, more);
    more[0] = more[*choice] = 1;
    for (int i = 0; i < f->n; i++) f->timed[i] &= more[i];
    return open;
}

/* A choice that does not stand against the default itself is none, unless it holds the place and the default did not take it. */
static int conclude(struct final *f, int *choice, struct duel *d)
{
    int open = choose(f, choice);
    memset(d, 0, sizeof *d);
    if (*choice) race_judge(f->race, &f->r[0], &f->r[*choice], f->done, d);
    if (!d->accepted && !f->r[*choice].holds) *choice = 0;
    if (!*choice) memset(d, 0, sizeof *d);
    return open;
}

/* Of those that were timed to the end: the others are known to be behind. */
static int rival_of(const struct final *f, int choice)
{
    double most = RACE_DOUBT;
    int rival = -1;
    for (int i = 0; i < f->n; i++) {
        struct duel d;
        if (i == choice || !f->timed[i] || !runs(&f->r[i])) continue;
        race_judge(f->race, &f->r[choice], &f->r[i], f->done, &d);
        if (race_at_most(d.gain, d.noise) < most) continue;
        most = race_at_most(d.gain, d.noise);
        rival = i;
    }
    return rival;
}

int race_final(const struct race *race, struct racer *r, int n, int *choice, int *rival, struct duel *d, struct q_err *e)
{
    struct final f = { .race = race, .r = r, .n = n };
    const int *range = laps[race->on_card != 0];
    int rc = Q_OK, least = range[0], open = 1;
    for (int i = 0; i < n; i++) {
        memset(r[i].n, 0, sizeof r[i].n);
        f.timed[i] = 1;
    }
    *choice = 0;
    *rival = -1;
    memset(d, 0, sizeof *d);
    while (!rc && !r[0].bad && (f.done < least || (open && f.done < RACE_SAMPLES && f.spent < SHARE * race->budget_us))) {
        if ((rc = one_lap(&f, e)) || f.done < least) continue;
        if (f.done == range[0]) least = race_times_in(race->budget_us / 4, race_lap(race, r, n), range);
        if (f.done >= least) open = conclude(&f, choice, d);
    }
    if (!rc && r[0].bad) rc = q_fail(e, Q_EINTERNAL, "%s: %s", r[0].kernel.symbol, r[0].why);
    for (int i = 0; i < n; i++) race_score(race, &r[0], &r[i]);
    if (!rc) *rival = rival_of(&f, *choice);
    return rc;
}
