#include "race_impl.h"
#include <stdio.h>
#include <string.h>

/* Laps before anything is told: at least, and enough. A card keeps its own time, and needs fewer. */
static const int enough[][2] = { { 11, 32 }, { 9, 16 } };
#define SHARE 1.0     /* of the budget, for all laps */
#define AGAIN 0.5     /* beside it, for laps that are taken again */

struct laps {
    const struct race *race;
    struct racer *r;
    int n;
    char timed[RACE_MOST];     /* takes part in the next lap; who left does not come back */
    int done;
    double spent, lost;        /* about, in microseconds: for laps that count, and for others */
    double pace[RACE_SAMPLES]; /* of each lap */
};

static int runs(const struct racer *r) { return !r->bad && !r->out; }

/* All that are timed, at one size, then at the next; *pace: on the mean. */
static int time_lap(struct laps *l, const int *in, int k, double *pace, struct q_err *e)
{
    int rc = Q_OK, order[RACE_MOST];
    race_order(l->done, k, order);
    *pace = 0;
    for (int i = 0; i < l->race->n_sizes; i++)
        for (int j = 0; j < k && !rc; j++) {
            rc = race_sample(l->race, &l->r[in[order[j]]], i, 1, e);
            *pace += race_pace(l->race) / (k * l->race->n_sizes);
        }
    return rc;
}

/* Whether a lap at that pace, which took `us`, is taken again. */
static int is_taken_again(struct laps *l, double pace, double us)
{
    struct patience *p = l->race->patience;
    if (!p || pace <= RACE_SLOWED * p->best_pace || p->spare_us < us || l->lost + us > AGAIN * l->race->budget_us) return 0;
    p->spare_us -= us;
    l->lost += us;
    return 1;
}

static int one_lap(struct laps *l, struct q_err *e)
{
    int in[RACE_MOST], k = 0;
    double pace, us = 0;
    for (int j = 0; j < l->n; j++)
        if (l->timed[j]) in[k++] = j;
    int rc = time_lap(l, in, k, &pace, e);
    for (int j = 0; j < k; j++) us += race_lap(l->race, &l->r[in[j]], 1);
    if (!rc && is_taken_again(l, pace, us)) {
        for (int j = 0; j < k; j++)
            for (int i = 0; i < l->race->n_sizes; i++)
                if (l->r[in[j]].n[i] > l->done) l->r[in[j]].n[i] = l->done;
        return Q_OK;
    }
    l->spent += us;
    l->pace[l->done++] = pace;
    return rc;
}

/* Those who still take part, first those that win a tie. */
static int in_order(const struct laps *l, int *of)
{
    int k = 0;
    for (int i = 0; i < l->n; i++) {
        if (!l->timed[i] || !runs(&l->r[i])) continue;
        int at = k++;
        for (; at > 0 && race_before(l->r, i, of[at - 1]); at--) of[at] = of[at - 1];
        of[at] = i;
    }
    return k;
}

static int gains(const void *arg, int a, int b, double *gain, double *noise)
{
    const struct laps *l = arg;
    struct duel d;
    race_judge(l->race, &l->r[a], &l->r[b], l->done, &d);
    *gain = d.gain;
    *noise = d.noise;
    return d.accepted;
}

/* From now on those take part of whom more is to be known, the default and the choice. Non-zero: there are some. */
static int choose(struct laps *l, int *choice)
{
    int of[RACE_MOST] = { 0 }, k = in_order(l, of);
    char more[RACE_MOST] = { 0 };
    int open = race_choose(of, k, gains, l, choice, more);
    more[0] = more[*choice] = 1;
    for (int i = 0; i < l->n; i++) l->timed[i] &= more[i];
    return open;
}

/* A choice that does not stand against the default itself is none, unless it holds the place and the default did not take it. */
static int conclude(struct laps *l, int *choice, struct duel *d)
{
    int open = choose(l, choice);
    memset(d, 0, sizeof *d);
    if (*choice) race_judge(l->race, &l->r[0], &l->r[*choice], l->done, d);
    if (!d->accepted && !l->r[*choice].holds) *choice = 0;
    if (!*choice) memset(d, 0, sizeof *d);
    return open;
}

static void enter_rival(struct final *f, int who, double ahead)
{
    int at = f->n_rivals < RACE_RIVALS ? f->n_rivals++ : RACE_RIVALS;
    for (; at > 0 && f->ahead[at - 1] < ahead; at--) {
        if (at == RACE_RIVALS) continue;
        f->rival[at] = f->rival[at - 1];
        f->ahead[at] = f->ahead[at - 1];
    }
    if (at == RACE_RIVALS) return;
    f->rival[at] = who;
    f->ahead[at] = ahead;
}

/* By the laps in which both were timed. */
static void note_rivals(const struct laps *l, struct final *f)
{
    for (int i = 0; i < l->n; i++) {
        struct duel d;
        const struct racer *r = &l->r[i];
        if (i == f->choice || !runs(r)) continue;
        race_judge(l->race, &l->r[f->choice], r, r->n[0] < l->done ? r->n[0] : l->done, &d);
        double ahead = race_at_most(d.gain, d.noise);
        if (ahead >= -RACE_REACH) enter_rival(f, i, ahead);
    }
}

int race_final(const struct race *race, struct racer *r, int n, struct final *f, struct q_err *e)
{
    struct laps l = { .race = race, .r = r, .n = n };
    const int *range = enough[race->on_card != 0];
    int rc = Q_OK, least = range[0], open = 1;
    for (int i = 0; i < n; i++) {
        memset(r[i].n, 0, sizeof r[i].n);
        l.timed[i] = 1;
    }
    memset(f, 0, sizeof *f);
    while (!rc && !r[0].bad && (l.done < least || (open && l.done < RACE_SAMPLES && l.spent < SHARE * race->budget_us))) {
        if ((rc = one_lap(&l, e)) || l.done < least) continue;
        if (l.done == range[0]) least = race_times_in(race->budget_us / 4, race_lap(race, r, n), range);
        if (l.done >= least) open = conclude(&l, &f->choice, &f->duel);
    }
    if (!rc && r[0].bad) rc = q_fail(e, Q_EINTERNAL, "%s: %s", r[0].kernel.symbol, r[0].why);
    for (int i = 0; i < n; i++) race_score(race, &r[0], &r[i]);
    if (!rc) note_rivals(&l, f);
    f->pace = race_median(l.pace, l.done);
    return rc;
}
