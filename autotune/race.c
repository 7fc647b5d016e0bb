#include "race.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINALISTS = 4, CROWD = 12, LOOKS = 3, DUEL_MOST = 41 };
#define SLOW 3.0
#define CLOSE 1.04         /* who is no farther behind the best goes on, too */
#define UNDECIDED 0.01     /* a gain that near to the band needs more turns */

/* Laps of all, laps of those who are left, turns of a duel: at least and at most. A card keeps its own time, and needs fewer. */
static const struct pace {
    int first[2], last[2], duel[2];
} paces[] = { { { 2, 3 }, { 3, 12 }, { 11, DUEL_MOST } }, { { 1, 2 }, { 2, 8 }, { 9, 31 } } };

static const struct pace *pace_of(const struct race *race) { return &paces[race->on_card != 0]; }

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double race_median(const double *v, int n)
{
    double s[RACE_SAMPLES];
    if (n < 1) return INFINITY;
    memcpy(s, v, (size_t)n * sizeof *s);
    qsort(s, (size_t)n, sizeof *s, by_value);
    return n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
}

double race_mad(const double *v, int n)
{
    double d[RACE_SAMPLES], m = race_median(v, n);
    for (int i = 0; i < n; i++) d[i] = fabs(v[i] - m);
    return n < 1 ? INFINITY : race_median(d, n);
}

/* 1.4826 MAD is a normal spread's sigma, 1.2533 sigma / sqrt(n) its median's. */
double race_band(const double *ratio, int n) { return fmax(RACE_TIE, 3 * 1.2533 * 1.4826 * race_mad(ratio, n) / sqrt(n)); }

double race_both(double a, double b)
{
    if (a > 0 && b > 0) return fmin(a, b);
    return a < 0 && b < 0 ? fmax(a, b) : 0;
}

/* --- rounds ------------------------------------------------------------------------------------------------------------ */

static int runs(const struct racer *r) { return !r->bad && !r->out; }

/* k more samples at one size; a failure of the candidate is its own. */
static int sample(const struct race *race, struct racer *r, int size, int k, struct q_err *e)
{
    struct q_err why = { 0 };
    if (k > RACE_SAMPLES - r->n[size]) k = RACE_SAMPLES - r->n[size];
    if (k <= 0 || !runs(r)) return Q_OK;
    int rc = race->m->time(race->m->arg, race->slot, &r->kernel, size, k, r->us[size] + r->n[size], &why);
    if (!rc) r->n[size] += k;
    if (rc != Q_EINTERNAL) return rc ? q_fail(e, rc, "%s", why.text) : Q_OK;
    r->bad = 1;
    snprintf(r->why, sizeof r->why, "%.255s", why.text);
    return Q_OK;
}

static double time_at(const struct racer *r, int size) { return sample_low(r->us[size], r->n[size]); }

/* a's time in relation to b's, as a model that calls them meets it. */
static double relation(const struct race *race, double a, double b) { return (a + race->call_us) / (b + race->call_us); }

static void score(const struct race *race, const struct racer *base, struct racer *r)
{
    r->score = 0;
    for (int i = 0; i < race->n_sizes; i++) r->score += race->weight[i] * relation(race, time_at(r, i), time_at(base, i));
}

/* Every running racer once, forth and back in turn, so that a drift of the clock meets all alike. */
static int round_of(const struct race *race, struct racer *r, int n, int size, int k, int back, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < n && !rc; i++) rc = sample(race, &r[back ? n - 1 - i : i], size, k, e);
    return rc;
}

static int rounds(const struct race *race, struct racer *r, int n, int times, struct q_err *e)
{
    int rc = Q_OK;
    for (int t = 0; t < times && !rc; t++)
        for (int i = 0; i < race->n_sizes && !rc; i++) rc = round_of(race, r, n, i, 1, t % 2, e);
    for (int i = 0; i < n; i++) score(race, &r[0], &r[i]);
    return rc;
}

/* One sample a size; who is far behind at a size gets LOOKS, and if he still is goes on to no other. */
static int probe(const struct race *race, struct racer *r, int n, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < race->n_sizes && !rc; i++) {
        double best = INFINITY;
        if ((rc = round_of(race, r, n, i, 1, 0, e))) break;
        for (int j = 0; j < n; j++)
            if (runs(&r[j])) best = fmin(best, time_at(&r[j], i));
        for (int j = 1; j < n && !rc; j++) {
            while (!rc && runs(&r[j]) && r[j].n[i] < LOOKS && time_at(&r[j], i) > SLOW * best) rc = sample(race, &r[j], i, 1, e);
            r[j].out |= runs(&r[j]) && time_at(&r[j], i) > SLOW * best;
        }
    }
    for (int i = 0; i < n; i++) score(race, &r[0], &r[i]);
    return rc;
}

/* Leaves the best `keep` running, the default, and up to CROWD whom hardly anything divides from the best. */
static void halve(struct racer *r, int n, int keep)
{
    double s[RACE_MOST];
    int k = 0;
    for (int i = 0; i < n; i++)
        if (runs(&r[i])) s[k++] = r[i].score;
    if (k <= keep) return;
    qsort(s, (size_t)k, sizeof *s, by_value);
    while (keep < k && keep < CROWD && s[keep] <= s[0] * CLOSE) keep++;
    for (int i = 1; i < n; i++)
        if (r[i].score > s[keep - 1]) r[i].out = 1;
}

/* One sample of every running racer at every size, in microseconds. */
static double lap(const struct race *race, const struct racer *r, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < race->n_sizes && runs(&r[i]); j++) sum += sample_cost(time_at(&r[i], j), race->on_card);
    return sum;
}

static int times_in(double budget, double one, const int range[2])
{
    double k = budget / fmax(one, 1);
    return k < range[0] ? range[0] : k > range[1] ? range[1] : (int)k;
}

static int before(const struct racer *r, int a, int b)
{
    if ((a == 0) != (b == 0)) return a == 0;
    if (r[a].canonical != r[b].canonical) return r[a].canonical;
    return r[a].order != r[b].order ? r[a].order < r[b].order : a < b;
}

static int fastest(const struct racer *r, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (runs(&r[i]) && r[i].score < r[best].score) best = i;
    return best;
}

int race_choose(const struct racer *r, int n)
{
    int best = fastest(r, n), choice = best;
    for (int i = 0; i < n; i++)
        if (runs(&r[i]) && r[i].score <= r[best].score * (1 + RACE_TIE / 2) && before(r, i, choice)) choice = i;
    return choice;
}

int race_run(const struct race *race, struct racer *r, int n, int *best, struct q_err *e)
{
    *best = 0;
    int rc = probe(race, r, n, e);
    if (!rc && r[0].bad) return q_fail(e, Q_EINTERNAL, "%s: %s", r[0].kernel.symbol, r[0].why);
    if (!rc) rc = rounds(race, r, n, times_in(race->budget_us / 4, lap(race, r, n), pace_of(race)->first), e);
    int keep = n / 4 > FINALISTS ? n / 4 : FINALISTS;
    if (!rc) halve(r, n, keep);
    if (!rc) rc = rounds(race, r, n, times_in(race->budget_us / 4, lap(race, r, n), pace_of(race)->last), e);
    if (!rc && r[0].bad) return q_fail(e, Q_EINTERNAL, "%s: %s", r[0].kernel.symbol, r[0].why);
    if (!rc) *best = fastest(r, n);
    return rc;
}

/* --- the duel ---------------------------------------------------------------------------------------------------------- */

/* A turn is a sample of both at every size; who begins changes. */
static int turn(const struct race *race, struct racer *pair[2], int size, int t, struct q_err *e)
{
    int rc = sample(race, pair[t % 2], size, 1, e);
    return rc ? rc : sample(race, pair[1 - t % 2], size, 1, e);
}

/* What is known after `done` turns. */
static void judge(const struct race *race, const struct racer *base, const struct racer *best, const double *ratio, int done, struct duel *d)
{
    double low = 0;
    for (int i = 0; i < race->n_sizes; i++) low += race->weight[i] * relation(race, time_at(best, i), time_at(base, i));
    d->gain = race_both(1 - race_median(ratio, done), 1 - low);
    d->band = race_band(ratio, done);
    d->turns = done;
    d->base_us = time_at(base, 0);
    d->best_us = time_at(best, 0);
    d->accepted = d->gain >= d->band;
}

/* At the edge of what counts, or beyond it and not to be told from noise yet. */
static int is_undecided(const struct duel *d)
{
    double gain = fabs(d->gain);
    return fabs(gain - d->band) < UNDECIDED || (gain > RACE_TIE - UNDECIDED && gain < d->band);
}

static int one_turn(const struct race *race, struct racer *pair[2], int t, double *ratio, struct q_err *e)
{
    int rc = Q_OK;
    *ratio = 0;
    for (int i = 0; i < race->n_sizes && !rc && runs(pair[0]) && runs(pair[1]); i++) {
        rc = turn(race, pair, i, t, e);
        if (!rc && !pair[0]->bad && !pair[1]->bad) *ratio += race->weight[i] * relation(race, pair[1]->us[i][t], pair[0]->us[i][t]);
    }
    return rc;
}

int race_duel(const struct race *race, struct racer *base, struct racer *best, struct duel *d, struct q_err *e)
{
    struct racer *pair[2] = { base, best };
    double ratio[DUEL_MOST], once = lap(race, base, 1) + lap(race, best, 1);
    int rc = Q_OK, turns = times_in(race->budget_us / 2, once, pace_of(race)->duel), most = times_in(race->budget_us, once, pace_of(race)->duel);
    memset(d, 0, sizeof *d);
    for (int i = 0; i < race->n_sizes; i++) base->n[i] = best->n[i] = 0;      /* the record's samples are the duel's */
    for (int done = 0; !rc && runs(base) && runs(best) && (done < turns || (done < most && is_undecided(d)));) {
        rc = one_turn(race, pair, done, &ratio[done], e);
        if (!rc && !base->bad && !best->bad && ++done >= turns) judge(race, base, best, ratio, done, d);
    }
    if (!rc && base->bad) rc = q_fail(e, Q_EINTERNAL, "%s: %s", base->kernel.symbol, base->why);
    return rc;
}
