#include "race_impl.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINALISTS = 4, CROWD = 16, LOOKS = 3 };
#define SLOW 3.0
#define SURE 2.5           /* standard errors between a gain and what it must be */
#define FINE 0.0015        /* a standard error that small leaves nothing to ask: half a tie is many of them */
#define CLEAR 0.05         /* a gain that both estimates tell is none by chance, whatever single samples do */
#define CLOSE 1.04         /* who is no farther behind the best goes on, too */

/* Laps of all, laps of those who are left, turns of a duel: at least and at most. A card keeps its own time, and needs fewer. */
static const struct pace {
    int first[2], last[2], duel[2];
} paces[] = { { { 2, 3 }, { 3, 24 }, { 11, RACE_SAMPLES } }, { { 1, 2 }, { 2, 8 }, { 11, RACE_SAMPLES } } };
enum { DUEL_ENOUGH = 31 };     /* turns, where nothing is undecided */

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

double race_middle(const double *v, int n)
{
    double s[RACE_SAMPLES], sum = 0;
    int cut = n / 4;
    if (n < 1) return INFINITY;
    memcpy(s, v, (size_t)n * sizeof *s);
    qsort(s, (size_t)n, sizeof *s, by_value);
    for (int i = cut; i < n - cut; i++) sum += s[i];
    return sum / (n - 2 * cut);
}

/* A median's standard error: 1.4826 MAD is a normal spread's sigma, 1.2533 sigma / sqrt(n) that of its median. */
double race_noise(const double *ratio, int n) { return 1.2533 * 1.4826 * race_mad(ratio, n) / sqrt(n); }

double race_both(double a, double b)
{
    if (a > 0 && b > 0) return fmin(a, b);
    return a < 0 && b < 0 ? fmax(a, b) : 0;
}

static void swap(int *a, int *b)
{
    int x = *a;
    *a = *b;
    *b = x;
}

void race_order(int t, int n, int *of)
{
    unsigned long long seed = (unsigned long long)(t / 2) + 1;
    for (int i = 0; i < n; i++) of[i] = i;
    for (int i = n - 1; i > 0; i--) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;      /* Knuth's MMIX; the upper bits are good */
        swap(&of[i], &of[(seed >> 33) % (unsigned)(i + 1)]);
    }
    for (int i = 0; t % 2 && i < n / 2; i++) swap(&of[i], &of[n - 1 - i]);
}

/* --- rounds ------------------------------------------------------------------------------------------------------------ */

static int runs(const struct racer *r) { return !r->bad && !r->out; }

static void note_pace(const struct race *race)
{
    double pace = race_pace(race);
    struct patience *p = race->patience;
    if (p && pace > 0 && (!(p->best_pace > 0) || pace < p->best_pace)) p->best_pace = pace;
}

double race_pace(const struct race *race) { return race->m->pace ? race->m->pace(race->m->arg) : 0; }

int race_sample(const struct race *race, struct racer *r, int size, int k, struct q_err *e)
{
    struct q_err why = { 0 };
    if (k > RACE_SAMPLES - r->n[size]) k = RACE_SAMPLES - r->n[size];
    if (k <= 0 || !runs(r)) return Q_OK;
    int rc = race->m->time(race->m->arg, race->slot, &r->kernel, size, k, r->us[size] + r->n[size], &why);
    if (!rc) r->n[size] += k;
    if (!rc) note_pace(race);
    if (rc != Q_EINTERNAL) return rc ? q_fail(e, rc, "%s", why.text) : Q_OK;
    r->bad = 1;
    snprintf(r->why, sizeof r->why, "%.255s", why.text);
    return Q_OK;
}

static double time_at(const struct racer *r, int size) { return sample_low(r->us[size], r->n[size]); }

/* a's time in relation to b's, as a model that calls them meets it. */
static double relation(const struct race *race, double a, double b) { return (a + race->call_us) / (b + race->call_us); }

void race_score(const struct race *race, const struct racer *base, struct racer *r)
{
    double sum = 0;
    for (int i = 0; i < race->n_sizes; i++) sum += race->weight[i] * log(relation(race, time_at(r, i), time_at(base, i)));
    r->score = exp(sum);
}

/* Every running racer once, forth and back in turn, so that a drift of the clock meets all alike. */
static int round_of(const struct race *race, struct racer *r, int n, int size, int k, int back, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < n && !rc; i++) rc = race_sample(race, &r[back ? n - 1 - i : i], size, k, e);
    return rc;
}

static int rounds(const struct race *race, struct racer *r, int n, int times, struct q_err *e)
{
    int rc = Q_OK;
    for (int t = 0; t < times && !rc; t++)
        for (int i = 0; i < race->n_sizes && !rc; i++) rc = round_of(race, r, n, i, 1, t % 2, e);
    for (int i = 0; i < n; i++) race_score(race, &r[0], &r[i]);
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
            while (!rc && runs(&r[j]) && r[j].n[i] < LOOKS && time_at(&r[j], i) > SLOW * best) rc = race_sample(race, &r[j], i, 1, e);
            r[j].out |= runs(&r[j]) && time_at(&r[j], i) > SLOW * best;
        }
    }
    for (int i = 0; i < n; i++) race_score(race, &r[0], &r[i]);
    return rc;
}

/* Its score at its best moments: the few samples of a first look may all have met pauses but one. */
static double hope(const struct race *race, const struct racer *base, const struct racer *r)
{
    double sum = 0;
    for (int i = 0; i < race->n_sizes; i++) {
        double least = INFINITY;
        for (int j = 0; j < r->n[i]; j++) least = fmin(least, r->us[i][j]);
        sum += race->weight[i] * log(relation(race, least, time_at(base, i)));
    }
    return exp(sum);
}

/* Leaves the best `keep` running, the default, and up to CROWD whom hardly anything divides from the best. */
static void halve(const struct race *race, struct racer *r, int n, int keep)
{
    double own[RACE_MOST], s[RACE_MOST];
    int k = 0;
    for (int i = 0; i < n; i++)
        if (runs(&r[i])) s[k++] = own[i] = hope(race, &r[0], &r[i]);
    if (k <= keep) return;
    qsort(s, (size_t)k, sizeof *s, by_value);
    while (keep < k && keep < CROWD && s[keep] <= s[0] * CLOSE) keep++;
    for (int i = 1; i < n; i++)
        if (runs(&r[i]) && own[i] > s[keep - 1]) r[i].out = 1;
}

double race_lap(const struct race *race, const struct racer *r, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < race->n_sizes && runs(&r[i]); j++) sum += sample_cost(time_at(&r[i], j), race->on_card);
    return sum;
}

int race_times_in(double budget, double one, const int range[2])
{
    double k = budget / fmax(one, 1);
    return k < range[0] ? range[0] : k > range[1] ? range[1] : (int)k;
}

int race_before(const struct racer *r, int a, int b)
{
    if (r[a].holds != r[b].holds) return r[a].holds;
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

int race_run(const struct race *race, struct racer *r, int n, int *best, struct q_err *e)
{
    *best = 0;
    int rc = probe(race, r, n, e);
    if (!rc && r[0].bad) return q_fail(e, Q_EINTERNAL, "%s: %s", r[0].kernel.symbol, r[0].why);
    if (!rc) rc = rounds(race, r, n, race_times_in(race->budget_us / 4, race_lap(race, r, n), pace_of(race)->first), e);
    int keep = n / 4 > FINALISTS ? n / 4 : FINALISTS;
    if (!rc) halve(race, r, n, keep);
    if (!rc) rc = rounds(race, r, n, race_times_in(race->budget_us / 4, race_lap(race, r, n), pace_of(race)->last), e);
    if (!rc && r[0].bad) return q_fail(e, Q_EINTERNAL, "%s: %s", r[0].kernel.symbol, r[0].why);
    if (!rc) *best = fastest(r, n);
    return rc;
}

/* --- the duel ---------------------------------------------------------------------------------------------------------- */

/* A turn is a sample of both at every size; who begins changes. */
static int turn(const struct race *race, struct racer *pair[2], int size, int t, struct q_err *e)
{
    int rc = race_sample(race, pair[t % 2], size, 1, e);
    return rc ? rc : race_sample(race, pair[1 - t % 2], size, 1, e);
}

/* Logarithms of b's paired times in relation to a's at one size. */
static void pair(const struct race *race, const struct racer *a, const struct racer *b, int size, int n, double *ratio)
{
    for (int t = 0; t < n; t++) ratio[t] = log(relation(race, b->us[size][t], a->us[size][t]));
}

/* Each size by its own middle: a pause spoils one size's pair, not a whole turn. */
void race_judge(const struct race *race, const struct racer *a, const struct racer *b, int n, struct duel *d)
{
    double ratio[RACE_SAMPLES], middle = 0, low = 0, noise2 = 0;
    for (int i = 0; i < race->n_sizes; i++) {
        double w = race->weight[i];
        pair(race, a, b, i, n, ratio);
        middle += w * (race->on_card ? race_middle(ratio, n) : race_median(ratio, n));
        noise2 += w * w * race_noise(ratio, n) * race_noise(ratio, n);
        low += w * log(relation(race, sample_low(b->us[i], n), sample_low(a->us[i], n)));
    }
    double apart = race->on_card ? 0 : fabs(middle - low) / 2;
    double gain = race->on_card ? 1 - exp(middle) : race_both(1 - exp(middle), 1 - exp(low));
    *d = (struct duel){ .gain = gain, .noise = fmax(sqrt(noise2), apart), .turns = n,
                        .base_us = sample_low(a->us[0], n), .best_us = sample_low(b->us[0], n) };
    d->band = fmax(RACE_TIE, 3 * d->noise);
    d->need = fmax(RACE_STEP, fmin(CLEAR, d->noise));
    d->accepted = d->gain >= d->need;
}

int race_is_undecided(double gain, double edge, double noise) { return noise > FINE && fabs(gain - edge) < SURE * noise; }

double race_at_most(double gain, double noise) { return gain + SURE * noise; }

int race_choose(const int *of, int k, race_gains gains, const void *arg, int *choice, char *more)
{
    int open = 0;
    *choice = of[0];
    for (int i = 1; i < k; i++) {
        double gain, noise;
        int accepted = gains(arg, *choice, of[i], &gain, &noise);
        if (race_is_undecided(gain, RACE_STEP, noise)) more[*choice] = more[of[i]] = open = 1;
        if (accepted) *choice = of[i];
    }
    return open;
}

static int one_turn(const struct race *race, struct racer *pair[2], int t, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < race->n_sizes && !rc && runs(pair[0]) && runs(pair[1]); i++) rc = turn(race, pair, i, t, e);
    return rc;
}

int race_duel(const struct race *race, struct racer *base, struct racer *best, struct duel *d, struct q_err *e)
{
    struct racer *pair[2] = { base, best };
    double once = race_lap(race, base, 1) + race_lap(race, best, 1);
    const int *range = pace_of(race)->duel;
    int rc = Q_OK, most = race_times_in(race->budget_us, once, range), turns = most < DUEL_ENOUGH ? most : DUEL_ENOUGH, open = 1;
    memset(d, 0, sizeof *d);
    for (int i = 0; i < race->n_sizes; i++) base->n[i] = best->n[i] = 0;      /* the record's samples are the duel's */
    for (int done = 0; !rc && runs(base) && runs(best) && (done < turns || (done < most && open));) {
        if ((rc = one_turn(race, pair, done, e)) || base->bad || best->bad || ++done < turns) continue;
        race_judge(race, base, best, done, d);
        open = race_is_undecided(fabs(d->gain), RACE_TIE, d->noise);
    }
    if (!rc && base->bad) rc = q_fail(e, Q_EINTERNAL, "%s: %s", base->kernel.symbol, base->why);
    return rc;
}
