#include "race.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINALISTS = 4, DUEL_LEAST = 9, DUEL_MOST = 31 };

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

double race_least(const double *v, int n)
{
    double least = INFINITY;
    for (int i = 0; i < n; i++) least = fmin(least, v[i]);
    return least;
}

double race_mad(const double *v, int n)
{
    double d[RACE_SAMPLES], m = race_median(v, n);
    for (int i = 0; i < n; i++) d[i] = fabs(v[i] - m);
    return n < 1 ? INFINITY : race_median(d, n);
}

/* 1.4826 MAD is a normal spread's sigma, 1.2533 sigma / sqrt(n) its median's. */
double race_band(const double *ratio, int n) { return fmax(RACE_TIE, 3 * 1.2533 * 1.4826 * race_mad(ratio, n) / sqrt(n)); }

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

static double median_at(const struct racer *r, int size) { return race_median(r->us[size], r->n[size]); }

static void score(const struct race *race, const struct racer *base, struct racer *r)
{
    r->score = 0;
    for (int i = 0; i < race->n_sizes; i++) r->score += race->weight[i] * median_at(r, i) / median_at(base, i);
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

/* One sample a size; who is far behind at a size goes on to no other. */
static int probe(const struct race *race, struct racer *r, int n, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < race->n_sizes && !rc; i++) {
        double best = INFINITY;
        if ((rc = round_of(race, r, n, i, 1, 0, e))) break;
        for (int j = 0; j < n; j++)
            if (runs(&r[j])) best = fmin(best, median_at(&r[j], i));
        for (int j = 1; j < n; j++)
            if (runs(&r[j]) && median_at(&r[j], i) > 3 * best) r[j].out = 1;
    }
    for (int i = 0; i < n; i++) score(race, &r[0], &r[i]);
    return rc;
}

/* Leaves the best `keep` running, and the default. */
static void halve(struct racer *r, int n, int keep)
{
    double s[RACE_MOST];
    int k = 0;
    for (int i = 0; i < n; i++)
        if (runs(&r[i])) s[k++] = r[i].score;
    if (k <= keep) return;
    qsort(s, (size_t)k, sizeof *s, by_value);
    for (int i = 1; i < n; i++)
        if (r[i].score > s[keep - 1]) r[i].out = 1;
}

/* One call of every running racer at every size, in microseconds. */
static double lap(const struct race *race, const struct racer *r, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < race->n_sizes && runs(&r[i]); j++) sum += fmax(2 * median_at(&r[i], j), 700);
    return sum;
}

static int times_in(double budget, double one, int least, int most)
{
    double k = budget / fmax(one, 1);
    return k < least ? least : k > most ? most : (int)k;
}

static int before(const struct racer *r, int a, int b)
{
    if ((a == 0) != (b == 0)) return a == 0;
    if (r[a].canonical != r[b].canonical) return r[a].canonical;
    return a < b;
}

static int winner(const struct racer *r, int n)
{
    int best = 0, choice = 0;
    for (int i = 1; i < n; i++)
        if (runs(&r[i]) && r[i].score < r[best].score) best = i;
    choice = best;
    for (int i = 0; i < n; i++)
        if (runs(&r[i]) && r[i].score <= r[best].score * (1 + RACE_TIE / 2) && before(r, i, choice)) choice = i;
    return choice;
}

int race_run(const struct race *race, struct racer *r, int n, int *best, struct q_err *e)
{
    *best = 0;
    int rc = probe(race, r, n, e);
    if (!rc && r[0].bad) return q_fail(e, Q_EINTERNAL, "%s: %s", r[0].kernel.symbol, r[0].why);
    if (!rc) rc = rounds(race, r, n, times_in(race->budget_us / 4, lap(race, r, n), 1, 2), e);
    int keep = n / 4 > FINALISTS ? n / 4 : FINALISTS;
    if (!rc) halve(r, n, keep);
    if (!rc) rc = rounds(race, r, n, times_in(race->budget_us / 4, lap(race, r, n), 2, 8), e);
    if (!rc && r[0].bad) return q_fail(e, Q_EINTERNAL, "%s: %s", r[0].kernel.symbol, r[0].why);
    if (!rc) *best = winner(r, n);
    return rc;
}

/* --- the duel ---------------------------------------------------------------------------------------------------------- */

/* A turn is a sample of both at every size; who begins changes. */
static int turn(const struct race *race, struct racer *pair[2], int size, int t, struct q_err *e)
{
    int rc = sample(race, pair[t % 2], size, 1, e);
    return rc ? rc : sample(race, pair[1 - t % 2], size, 1, e);
}

int race_duel(const struct race *race, struct racer *base, struct racer *best, struct duel *d, struct q_err *e)
{
    struct racer *pair[2] = { base, best };
    double ratio[DUEL_MOST];
    int rc = Q_OK, done = 0, turns;
    memset(d, 0, sizeof *d);
    turns = times_in(race->budget_us / 2, lap(race, base, 1) + lap(race, best, 1), DUEL_LEAST, DUEL_MOST);
    for (int i = 0; i < race->n_sizes; i++) base->n[i] = best->n[i] = 0;      /* the record's samples are the duel's */
    for (; done < turns && !rc && runs(base) && runs(best); done++) {
        double sum = 0;
        for (int i = 0; i < race->n_sizes && !rc; i++) {
            rc = turn(race, pair, i, done, e);
            if (rc || base->bad || best->bad) break;
            sum += race->weight[i] * best->us[i][done] / base->us[i][done];
        }
        ratio[done] = sum;
    }
    if (!rc && base->bad) rc = q_fail(e, Q_EINTERNAL, "%s: %s", base->kernel.symbol, base->why);
    if (rc || best->bad) return rc;
    double least = 0;
    for (int i = 0; i < race->n_sizes; i++) least += race->weight[i] * race_least(best->us[i], done) / race_least(base->us[i], done);
    d->gain = 1 - fmax(race_median(ratio, done), least);
    d->band = race_band(ratio, done);
    d->accepted = d->gain >= d->band;
    return Q_OK;
}
