#include "race_impl.h"
#include <stdio.h>
#include <string.h>

/* Laps: at least, at most, and enough where nothing is undecided. A card keeps its own time, and needs fewer. */
static const int laps[][3] = { { 9, RACE_SAMPLES, 32 }, { 7, 41, 12 } };

static int runs(const struct racer *r) { return !r->bad && !r->out; }

/* A lap times all at one size, then at the next: who begins changes, and the way round, so that nobody always follows the same neighbour. */
static int one_lap(const struct race *race, struct racer *r, int n, int t, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < race->n_sizes; i++)
        for (int j = 0; j < n && !rc; j++) rc = race_sample(race, &r[(t + (t % 2 ? n - 1 - j : j)) % n], i, 1, e);
    return rc;
}

/* The racers that still run, first those that win a tie. */
static int in_order(const struct racer *r, int n, int *of)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (!runs(&r[i])) continue;
        int at = k++;
        for (; at > 0 && race_before(r, i, of[at - 1]); at--) of[at] = of[at - 1];
        of[at] = i;
    }
    return k;
}

/* Each against the one chosen before it. *undecided: more laps may tell otherwise. */
static int choose(const struct race *race, const struct racer *r, int n, int done, int *undecided)
{
    int of[RACE_MOST] = { 0 }, k = in_order(r, n, of), choice = 0;
    *undecided = 0;
    for (int i = 1; i < k; i++) {
        struct duel d;
        race_judge(race, &r[of[choice]], &r[of[i]], done, &d);
        *undecided |= race_is_undecided(&d);
        if (d.accepted) choice = i;
    }
    return of[choice];
}

/* The choice after `done` laps: one that does not stand against the default itself is none. */
static int conclude(const struct race *race, const struct racer *r, int n, int done, struct duel *d, int *undecided)
{
    int choice = choose(race, r, n, done, undecided);
    memset(d, 0, sizeof *d);
    if (choice) race_judge(race, &r[0], &r[choice], done, d);
    return d->accepted ? choice : 0;
}

/* Laps that a final takes at least, from what the first ones cost, and at most. */
static void plan(const struct race *race, const struct racer *r, int n, int *least, int *most)
{
    const int *range = laps[race->on_card != 0];
    double once = race_lap(race, r, n);
    *least = race_times_in(race->budget_us / 4, once, range);
    *most = race_times_in(race->budget_us / 2, once, range);
    if (*least > range[2]) *least = range[2];
}

int race_final(const struct race *race, struct racer *r, int n, int *choice, struct duel *d, struct q_err *e)
{
    int rc = Q_OK, undecided = 1, least = laps[race->on_card != 0][0], most = least;
    for (int i = 0; i < n; i++) memset(r[i].n, 0, sizeof r[i].n);
    *choice = 0;
    memset(d, 0, sizeof *d);
    for (int done = 0; !rc && !r[0].bad && (done < least || (done < most && undecided));) {
        if ((rc = one_lap(race, r, n, done, e)) || ++done < least) continue;
        plan(race, r, n, &least, &most);
        *choice = conclude(race, r, n, done, d, &undecided);
    }
    if (!rc && r[0].bad) rc = q_fail(e, Q_EINTERNAL, "%s: %s", r[0].kernel.symbol, r[0].why);
    for (int i = 0; i < n; i++) race_score(race, &r[0], &r[i]);
    return rc;
}
