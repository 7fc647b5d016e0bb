/* The tuner's logic by replay: a measurer that answers from a table shows who wins, who is dropped, what a tie and noise do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/race.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 12 };

/* A machine: what each kernel takes at each size, how noisy it is, how it slows down as it is used. */
struct machine {
    double us[KERNELS][2];
    double noise;             /* samples are up to this share above the truth */
    double drift;             /* and grow by this share every sample */
    double pause;             /* a sample takes 50 times as long with this probability */
    double heat;              /* what comes right behind the kernel `hot` takes longer by this share */
    int hot, last;
    int behind[KERNELS][KERNELS];  /* [a][b]: how often a sample of a came right behind one of b */
    int slow;                 /* the last sample was */
    int fails[KERNELS];       /* 0, or the code that timing it gives */
    int calls[KERNELS][2];
    int n;
    unsigned long long seed;
};

static double uniform(struct machine *m)
{
    m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(m->seed >> 11) * 0x1p-53;
}

static int replay(void *arg, int slot, const struct measure_kernel *kernel, int size, int n, double *us, struct q_err *e)
{
    struct machine *m = arg;
    int k = atoi(kernel->symbol + 1);
    assert_int_equal(slot, 3);
    if (m->fails[k]) return q_fail(e, m->fails[k], "%s fails", kernel->object);
    for (int i = 0; i < n; i++) {
        us[i] = m->us[k][size] * (1 + m->noise * uniform(m)) * (1 + m->drift * m->n++);
        if (m->heat > 0 && m->last == m->hot) us[i] *= 1 + m->heat;
        m->behind[k][m->last]++;
        m->last = k;
        if (m->pause > 0 && uniform(m) < m->pause) us[i] *= 50;
    }
    m->calls[k][size] += n;
    return Q_OK;
}

static const char *const names[KERNELS] = { "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11" };

static struct racer *racers(void)
{
    struct racer *r = calloc(KERNELS, sizeof *r);
    assert_non_null(r);
    for (int i = 0; i < KERNELS; i++) r[i] = (struct racer){ .kernel = { .object = names[i], .symbol = names[i] } };
    return r;
}

static struct measurer table_of(struct machine *m) { return (struct measurer){ .arg = m, .time = replay }; }

static struct race race_of(const struct measurer *m)
{
    return (struct race){ .m = m, .slot = 3, .n_sizes = 2, .weight = { 0.75, 0.25 }, .budget_us = 1e6 };
}

static struct machine even(double us)
{
    struct machine m = { .seed = 1 };
    for (int i = 0; i < KERNELS; i++) m.us[i][0] = m.us[i][1] = us;
    return m;
}

static int run(struct machine *m, struct racer *r, int n, int *best, struct q_err *e)
{
    struct measurer table = table_of(m);
    struct race race = race_of(&table);
    return race_run(&race, r, n, best, e);
}

/* Of kernels that take less than calling them the faster one wins by next to nothing. */
static void test_what_a_call_costs_counts(void **state)
{
    struct machine m = even(0.1);
    struct measurer table = table_of(&m);
    struct race race = race_of(&table);
    struct racer *r = racers();
    struct q_err e;
    struct duel d;
    m.us[1][0] = m.us[1][1] = 0.097;
    assert_int_equal(race_duel(&race, &r[0], &r[1], &d, &e), Q_OK);
    assert_true(d.accepted);
    race.call_us = 0.25;
    assert_int_equal(race_duel(&race, &r[0], &r[1], &d, &e), Q_OK);
    assert_float_equal(d.gain, 0.003 / 0.35, 1e-6);
    assert_false(d.accepted);
    free(r);
}

static void test_what_two_estimates_tell(void **state)
{
    assert_float_equal(race_both(0.03, 0.05), 0.03, 0);
    assert_float_equal(race_both(-0.03, -0.05), -0.03, 0);
    assert_float_equal(race_both(0.03, -0.01), 0, 0);
}

static void test_median_and_mad(void **state)
{
    const double odd[] = { 5, 1, 9 }, four[] = { 4, 1, 2, 100 };
    assert_float_equal(race_median(odd, 3), 5, 0);
    assert_float_equal(race_median(four, 4), 3, 0);
    assert_float_equal(race_mad(odd, 3), 4, 0);
    assert_true(isinf(race_median(odd, 0)));
}

static void test_the_middle_does_not_jump_between_two_levels(void **state)
{
    const double few[] = { 3, 1, 2 }, out[] = { 1, 1, 1, 1, 1, 1, 90, 0 };
    double level[] = { 10, 11, 10, 11, 10, 11, 10, 11, 10 };
    assert_float_equal(race_middle(few, 3), 2, 1e-12);
    assert_float_equal(race_middle(out, 8), 1, 1e-12);
    double before = race_middle(level, 9), jump = race_median(level, 9);
    level[0] = 11;                             /* one more on the upper level */
    assert_float_equal(race_median(level, 9) - jump, 1, 1e-12);
    assert_true(race_middle(level, 9) - before < 0.25);
    assert_true(isinf(race_middle(few, 0)));
}

static void test_fastest_wins_by_weighted_sizes(void **state)
{
    struct machine m = even(1000);
    struct racer *r = racers();
    struct q_err e;
    int best;
    m.us[4][0] = 700;                          /* 0.7 ^ 0.75 = 0.765 */
    m.us[7][0] = 900, m.us[7][1] = 500;        /* 0.777 */
    m.noise = 0.01;
    assert_int_equal(run(&m, r, KERNELS, &best, &e), Q_OK);
    assert_int_equal(best, 4);
    assert_float_equal(r[4].score, 0.765, 0.01);
    free(r);
}

/* Faster at one size and slower at another: by arithmetic means each would lose against the other. */
static void test_a_gain_is_the_others_loss(void **state)
{
    struct machine m = even(1000);
    struct measurer table = table_of(&m);
    struct race race = race_of(&table);
    struct racer *r = racers();
    struct q_err e;
    struct duel there, back;
    m.us[1][0] = 1150, m.us[1][1] = 700;
    assert_int_equal(race_duel(&race, &r[0], &r[1], &there, &e), Q_OK);
    assert_int_equal(race_duel(&race, &r[1], &r[0], &back, &e), Q_OK);
    assert_float_equal((1 - there.gain) * (1 - back.gain), 1, 1e-9);
    assert_float_equal(there.gain, 1 - pow(1.15, 0.75) * pow(0.7, 0.25), 1e-9);
    free(r);
}

static void test_slow_ones_are_stopped_at_once(void **state)
{
    struct machine m = even(1000);
    struct racer *r = racers();
    struct q_err e;
    int best;
    m.us[2][0] = 3500;
    m.us[5][1] = 3500;
    assert_int_equal(run(&m, r, KERNELS, &best, &e), Q_OK);
    assert_int_equal(m.calls[2][0], 3);       /* not for one sample, which may have met a pause */
    assert_int_equal(m.calls[2][1], 0);
    assert_int_equal(m.calls[5][0] + m.calls[5][1], 4);
    assert_true(m.calls[0][0] >= 4);
    free(r);
}

static void test_most_samples_go_to_the_best(void **state)
{
    struct machine m = even(1000);
    struct racer *r = racers();
    struct q_err e;
    int best;
    for (int i = 1; i < KERNELS; i++) m.us[i][0] = m.us[i][1] = 1000 + 100 * i;
    m.us[9][0] = m.us[9][1] = 950;
    assert_int_equal(run(&m, r, KERNELS, &best, &e), Q_OK);
    assert_int_equal(best, 9);
    assert_true(m.calls[9][0] >= 2 * m.calls[11][0]);
    free(r);
}

static struct final final_of(const struct race *race, struct racer *r, int n)
{
    struct q_err e;
    struct final f;
    assert_int_equal(race_final(race, r, n, &f, &e), Q_OK);
    return f;
}

static struct final whole_final(struct machine *m, struct racer *r, int n)
{
    struct measurer table = table_of(m);
    struct race race = race_of(&table);
    return final_of(&race, r, n);
}

static int final(struct machine *m, struct racer *r, int n, struct duel *d)
{
    struct final f = whole_final(m, r, n);
    *d = f.duel;
    return f.choice;
}

static void test_a_tie_goes_to_the_default_then_to_canonical_then_by_order(void **state)
{
    struct machine m = even(1000);
    struct racer *r = racers();
    struct q_err e;
    struct duel d;
    int best;
    m.us[3][0] = m.us[3][1] = 995;
    assert_int_equal(run(&m, r, KERNELS, &best, &e), Q_OK);
    assert_int_equal(best, 3);
    assert_int_equal(final(&m, r, KERNELS, &d), 0);
    assert_int_equal(d.turns, 0);
    free(r);
    r = racers();
    m.us[3][0] = m.us[3][1] = 800;
    m.us[6][0] = m.us[6][1] = 804;
    m.us[8][0] = m.us[8][1] = 804;
    r[8].canonical = 1;
    assert_int_equal(run(&m, r, KERNELS, &best, &e), Q_OK);
    assert_int_equal(best, 3);
    for (int i = 0; i < KERNELS; i++) r[i].out = 0;
    assert_int_equal(final(&m, r, KERNELS, &d), 8);
    assert_true(d.accepted);
    assert_float_equal(d.gain, 0.196, 1e-3);
    r[8].canonical = 0;
    r[3].order = 3, r[6].order = 1, r[8].order = 2;
    assert_int_equal(final(&m, r, KERNELS, &d), 6);
    free(r);
}

/* A later one must be better than the one chosen before it by a step, which is not to be had in two halves. */
static void test_who_is_chosen_is_hardly_behind_the_fastest(void **state)
{
    struct machine m = even(1000);
    struct racer *r = racers();
    struct duel d;
    for (int i = 0; i < KERNELS; i++) r[i].order = i;
    m.noise = 0.004;
    m.us[2][0] = m.us[2][1] = 950;
    m.us[4][0] = m.us[4][1] = 944;       /* 0.6 % */
    assert_int_equal(final(&m, r, 5, &d), 2);
    m.us[4][0] = m.us[4][1] = 934;       /* 1.7 % */
    assert_int_equal(final(&m, r, 5, &d), 4);
    free(r);
}

/* Whoever it is that a pause hits, and however often: the winner is the same. */
static void test_pauses_do_not_choose(void **state)
{
    for (int seed = 1; seed <= 40; seed++) {
        struct machine m = even(1000);
        struct racer *r = racers();
        struct q_err e;
        struct duel d;
        int best;
        m.us[4][0] = m.us[4][1] = 900;
        m.us[5][0] = m.us[5][1] = 930;
        m.us[6][0] = m.us[6][1] = 903;         /* a tie, behind in order */
        m.noise = 0.003;
        m.pause = 0.15;
        m.seed = (unsigned)seed;
        for (int i = 0; i < KERNELS; i++) r[i].order = i;
        assert_int_equal(run(&m, r, KERNELS, &best, &e), Q_OK);
        for (int i = 0; i < KERNELS; i++) r[i].out = 0;
        assert_int_equal(final(&m, r, 7, &d), 4);
        free(r);
    }
}

/* Who holds the place keeps it in every tie, against the default too, and loses it to what is better by a step. */
static void test_the_recorded_winner_holds_its_place(void **state)
{
    struct machine m = even(1000);
    struct racer *r = racers();
    struct duel d;
    for (int i = 0; i < KERNELS; i++) r[i].order = i;
    r[5].holds = 1;
    m.noise = 0.004;
    m.us[1][0] = m.us[1][1] = 996;
    m.us[5][0] = m.us[5][1] = 1003;
    assert_int_equal(final(&m, r, 8, &d), 5);
    m.us[5][0] = m.us[5][1] = 1025;
    assert_int_equal(final(&m, r, 8, &d), 0);
    assert_int_equal(d.turns, 0);
    m.us[5][0] = m.us[5][1] = 900;
    m.us[1][0] = m.us[1][1] = 880;
    assert_int_equal(final(&m, r, 8, &d), 1);
    assert_true(d.accepted);
    free(r);
}

/* Of kernels that are alike, beside a slower one that leaves much behind for the next: each follows each, so that the default is as good as the rest. */
static void test_whom_one_follows_does_not_choose(void **state)
{
    for (int n = 3; n <= 6; n++)
        for (int on_card = 0; on_card < 2; on_card++) {
            struct machine m = even(100);
            struct measurer table = table_of(&m);
            struct race race = race_of(&table);
            struct racer *r = racers();
            struct final f;
            struct q_err e;
            m.noise = 0.01;
            m.heat = 0.05;
            m.hot = n - 1;
            m.us[m.hot][0] = m.us[m.hot][1] = 102;
            race.on_card = on_card;
            assert_int_equal(race_final(&race, r, n, &f, &e), Q_OK);
            assert_int_equal(f.choice, 0);
            for (int a = 0; a < n; a++)
                for (int b = 0; b < n; b++) assert_true(a == b || m.behind[a][b] > 0);
            free(r);
        }
}

static void test_rivals_are_who_may_be_near(void **state)
{
    struct machine m = even(300);
    struct racer *r = racers();
    m.us[1][0] = m.us[1][1] = 270;
    m.us[2][0] = m.us[2][1] = 281;
    m.us[3][0] = m.us[3][1] = 275;
    struct final f = whole_final(&m, r, 4);
    assert_int_equal(f.choice, 1);
    assert_int_equal(f.n_rivals, 2);      /* the default is a tenth behind */
    assert_int_equal(f.rival[0], 3);
    assert_int_equal(f.rival[1], 2);
    assert_float_equal(f.ahead[0], 1 - 275.0 / 270, 0.003);
    free(r);
}

static void test_of_many_rivals_the_farthest_ahead_are_told(void **state)
{
    struct machine m = even(300);
    struct racer *r = racers();
    for (int i = 1; i < 8; i++) m.us[i][0] = m.us[i][1] = 250 + i % 4 * 3 + i / 4;
    struct final f = whole_final(&m, r, 8);
    assert_int_equal(f.choice, 1);        /* 4 is ahead by less than a step */
    assert_int_equal(f.n_rivals, RACE_RIVALS);
    static const int order[RACE_RIVALS] = { 4, 5, 2, 6 };
    assert_memory_equal(f.rival, order, sizeof order);
    assert_true(f.ahead[0] > 0 && f.ahead[1] < 0);
    free(r);
}

static void test_noise_leaves_a_rival_that_may_be_far_ahead(void **state)
{
    struct machine m = even(300);
    struct racer *r = racers();
    m.noise = 0.3;          /* as where others use the machine all the time */
    m.us[1][0] = m.us[1][1] = 292;
    struct final f = whole_final(&m, r, 2);
    assert_int_equal(f.n_rivals, 1);
    assert_int_equal(f.rival[0], 1 - f.choice);
    assert_true(f.ahead[0] >= RACE_DOUBT);
    free(r);
}

/* As in a second look in which all others failed: its record needs times. */
static void test_a_final_of_the_default_alone_times_it(void **state)
{
    struct machine m = even(300);
    struct racer *r = racers();
    struct final f = whole_final(&m, r, 1);
    assert_int_equal(f.choice, 0);
    assert_int_equal(f.n_rivals, 0);
    assert_true(r[0].n[0] >= 9 && r[0].n[1] >= 9);
    free(r);
}

static double slower_and_slower(void *arg) { return 20 + ((struct machine *)arg)->n * 0.01; }

/* Two kernels of which one is a tenth faster, but a quarter slower while something else slows the processors: samples 20 to 60 of hundreds. */
static int slows(void *arg, int slot, const struct measure_kernel *kernel, int size, int n, double *us, struct q_err *e)
{
    struct machine *m = arg;
    int slow = m->n >= 20 && m->n < 60;
    int rc = replay(arg, slot, kernel, size, n, us, e);
    for (int i = 0; i < n && slow; i++) us[i] *= kernel->symbol[1] == '1' ? 1.8 : 1.3;
    m->drift = 0;
    m->slow = slow;
    m->n++;
    return rc;
}

static double pace_then(void *arg) { return ((struct machine *)arg)->slow ? 26 : 20; }

static void test_slowed_laps_are_taken_again_while_there_is_patience(void **state)
{
    struct machine m = even(300);
    struct patience patience = { 0, 1e6 };
    struct measurer table = { .arg = &m, .time = slows, .pace = pace_then };
    struct race race = race_of(&table);
    struct racer *r = racers();
    race.patience = &patience;
    m.us[1][0] = m.us[1][1] = 270;
    struct final f = final_of(&race, r, 2);
    assert_int_equal(f.choice, 1);
    assert_float_equal(f.duel.gain, 0.1, 0.005);
    assert_float_equal(f.pace, 20, 0);
    assert_float_equal(patience.best_pace, 20, 0);
    assert_true(patience.spare_us < 1e6 && patience.spare_us > 0.5e6);
    for (int i = 0; i < r[1].n[0]; i++) assert_float_equal(r[1].us[0][i], 270, 0.1);
    free(r);
}

static void test_patience_ends(void **state)
{
    struct machine m = even(300);
    struct patience patience = { 10, 1e9 };      /* never as quick again */
    struct measurer table = { .arg = &m, .time = slows, .pace = pace_then };
    struct race race = race_of(&table);
    struct racer *r = racers();
    race.patience = &patience;
    m.us[1][0] = m.us[1][1] = 200;
    struct final f = final_of(&race, r, 2);
    assert_int_equal(f.choice, 1);
    assert_true(1e9 - patience.spare_us <= 0.5 * race.budget_us);
    assert_true(f.pace >= 20);
    patience.spare_us = 0;
    final_of(&race, r, 2);
    assert_float_equal(patience.spare_us, 0, 0);
    free(r);
}

static void test_a_final_tells_its_pace(void **state)
{
    struct machine m = even(300);
    struct measurer table = table_of(&m);
    struct race race = race_of(&table);
    struct racer *r = racers();
    struct final f = final_of(&race, r, 2);
    assert_float_equal(f.pace, 0, 0);
    m.n = 0;
    table.pace = slower_and_slower;
    f = final_of(&race, r, 2);
    assert_float_equal(f.pace, 20 + m.n / 2 * 0.01, 0.03);
    free(r);
}

/* Laps are for those of whom something is to be known. */
static void test_a_final_asks_only_what_is_open(void **state)
{
    struct machine m = even(300);
    struct racer *r = racers();
    struct duel d;
    for (int i = 0; i < KERNELS; i++) r[i].order = i;
    m.noise = 0.03;
    m.us[1][0] = m.us[1][1] = 270;
    m.us[2][0] = m.us[2][1] = 267.3;           /* a step behind or ahead: nobody can tell */
    m.us[3][0] = m.us[3][1] = 290;
    final(&m, r, 4, &d);
    assert_true(m.calls[1][0] > 2 * m.calls[3][0]);
    assert_true(m.calls[2][0] == m.calls[1][0]);
    assert_true(m.calls[0][0] == m.calls[1][0]);      /* the record tells of it */
    free(r);
}

/* --- two tunes --------------------------------------------------------------------------------------------------------- */

static double gauss(struct machine *m)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform(m);
    return sum;
}

/* A card: samples about the truth, of a kernel that has two levels now and then on the other one. A CPU: samples above it, some far. */
static int measured(void *arg, int slot, const struct measure_kernel *kernel, int size, int n, double *us, struct q_err *e)
{
    struct machine *m = arg;
    int k = atoi(kernel->symbol + 1);
    for (int i = 0; i < n; i++) {
        double off = m->noise * gauss(m);
        if (m->pause > 0) off = fabs(off) + (uniform(m) < m->pause ? 2 * uniform(m) : 0);
        else if (k % 3 == 1 && uniform(m) < 0.3) off += 2 * m->noise;
        us[i] = m->us[k][size] * (1 + off);
    }
    return Q_OK;
}

static double truth(const struct machine *m, int a, int b) { return pow(m->us[a][0] / m->us[b][0], 0.75) * pow(m->us[a][1] / m->us[b][1], 0.25); }

/* A tune of the machine: race, then final of those that the race left close; its clock begins at `seed`. */
static int tune(struct machine m, int on_card, unsigned long long seed)
{
    struct racer *all = racers(), *r = racers();
    struct measurer table = { .arg = &m, .time = measured };
    struct race race = { .m = &table, .slot = 3, .n_sizes = 2, .weight = { 0.75, 0.25 }, .budget_us = 1.2e6, .on_card = on_card };
    struct q_err e;
    struct final f;
    int best, n = 0, of[KERNELS];
    m.seed = seed;
    assert_int_equal(race_run(&race, all, KERNELS, &best, &e), Q_OK);
    for (int i = 0; i < KERNELS; i++) {
        if (i && (all[i].out || all[i].score > 1.04 * all[best].score)) continue;
        r[n] = (struct racer){ .kernel = all[i].kernel, .order = i };
        of[n++] = i;
    }
    assert_int_equal(race_final(&race, r, n, &f, &e), Q_OK);
    free(all);
    free(r);
    return of[f.choice];
}

/* A made-up space: most candidates within a few per cent of one another, as they are where the memory is what all wait for. */
static struct machine landscape(unsigned seed, double us, double spread, double noise, double pause)
{
    struct machine m = { .seed = seed, .noise = noise, .pause = pause };
    for (int k = 0; k < KERNELS; k++)
        for (int i = 0; i < 2; i++) m.us[k][i] = us * (i + 1) * (1 + spread * uniform(&m));
    return m;
}

/* How far apart the winners of two are. */
static double two_tunes(const struct machine *m, int on_card, unsigned seed)
{
    int a = tune(*m, on_card, 2 * seed + 1), b = tune(*m, on_card, 0xABCDEF0000ull + seed);
    return fmax(fabs(truth(m, a, b) - 1), fabs(truth(m, b, a) - 1));
}

/* One pair in a thousand misses the tie by a hair: a card whose samples scatter by 2 % tells no more in the laps it has. */
static void test_two_tunes_end_within_two_per_cent(void **state)
{
    static const double spread[] = { 0.02, 0.06, 0.3 };
    int beyond = 0;
    for (unsigned seed = 1; seed <= 600; seed++) {
        struct machine card = landscape(seed, seed % 2 ? 3 : 60, spread[seed % 3], seed % 4 ? 0.005 : 0.02, 0);
        struct machine cpu = landscape(seed + 5000, seed % 2 ? 5 : 130, spread[seed % 3], seed % 4 ? 0.005 : 0.02, 0.05);
        double apart[] = { two_tunes(&card, 1, seed), two_tunes(&cpu, 0, seed) };
        for (int i = 0; i < 2; i++) {
            beyond += apart[i] > RACE_TIE;
            if (apart[i] > 1.25 * RACE_TIE) fail_msg("seed %u, %s: %.2f %% apart", seed, i ? "CPU" : "card", 100 * apart[i]);
        }
    }
    assert_in_range(beyond, 0, 2);
}

static void test_a_failing_candidate_fails_alone(void **state)
{
    struct machine m = even(1000);
    struct racer *r = racers();
    struct q_err e = { 0 };
    int best;
    m.us[1][0] = m.us[1][1] = 100;
    m.fails[1] = Q_EINTERNAL;
    m.us[2][0] = m.us[2][1] = 600;
    assert_int_equal(run(&m, r, KERNELS, &best, &e), Q_OK);
    assert_int_equal(best, 2);
    assert_true(r[1].bad);
    assert_string_equal(r[1].why, "k1 fails");
    free(r);
}

static void test_a_failing_default_and_an_interrupt_end_the_race(void **state)
{
    struct machine m = even(1000);
    struct racer *r = racers();
    struct q_err e = { 0 };
    int best;
    m.fails[0] = Q_EINTERNAL;
    assert_int_equal(run(&m, r, KERNELS, &best, &e), Q_EINTERNAL);
    assert_non_null(strstr(e.text, "k0 fails"));
    free(r);
    r = racers();
    m.fails[0] = 0;
    m.fails[5] = Q_EIO;
    assert_int_equal(run(&m, r, KERNELS, &best, &e), Q_EIO);
    free(r);
}

static struct duel duel(struct machine *m)
{
    struct measurer table = table_of(m);
    struct race race = race_of(&table);
    struct racer *r = racers();
    struct q_err e;
    struct duel d;
    int best;
    assert_int_equal(race_run(&race, r, 2, &best, &e), Q_OK);
    assert_int_equal(race_duel(&race, &r[0], &r[1], &d, &e), Q_OK);
    free(r);
    return d;
}

/* Where it is not certain whether two are a tie, that is looked at for longer than what is clear. */
static void test_an_undecided_duel_takes_more_turns(void **state)
{
    struct machine m = even(1000);
    m.noise = 0.04;
    m.us[1][0] = m.us[1][1] = 800;
    int clear = duel(&m).turns;
    m.us[1][0] = m.us[1][1] = 980;
    struct duel d = duel(&m);
    assert_true(d.turns > clear);
    assert_float_equal(d.gain, 0.02, 0.015);
    assert_true(d.noise > 0.001);
}

static void test_duels(void **state)
{
    struct machine m = even(1000);
    m.us[1][0] = m.us[1][1] = 900;
    m.noise = 0.02;
    struct duel d = duel(&m);
    assert_true(d.accepted);
    assert_float_equal(d.gain, 0.1, 0.02);
    m.us[1][0] = m.us[1][1] = 994;             /* faster, and not by enough to matter */
    d = duel(&m);
    assert_false(d.accepted);
    m.us[1][0] = m.us[1][1] = 1000;            /* nothing, in a noise that is told */
    m.noise = 2;
    d = duel(&m);
    assert_true(d.band > 0.05);
    assert_true(fabs(d.gain) < d.band);
    m.us[1][0] = m.us[1][1] = 1100;            /* a loss is told as one */
    m.noise = 0.02;
    d = duel(&m);
    assert_float_equal(d.gain, -0.1, 0.02);
    assert_false(d.accepted);
}

/* Others on the machine, who hit one of two equal kernels in most turns: medians part, lower quartiles do not. */
static int disturbed(void *arg, int slot, const struct measure_kernel *kernel, int size, int n, double *us, struct q_err *e)
{
    struct machine *m = arg;
    for (int i = 0; i < n; i++) us[i] = 1000 + (kernel->symbol[1] == '0' && m->n++ % 3 ? 600 : 0);
    return Q_OK;
}

static void test_others_on_the_machine_do_not_decide(void **state)
{
    struct machine m = even(1000);
    struct measurer table = { .arg = &m, .time = disturbed };
    struct race race = race_of(&table);
    struct racer *r = racers();
    struct q_err e;
    struct duel d;
    assert_int_equal(race_duel(&race, &r[0], &r[1], &d, &e), Q_OK);
    assert_float_equal(d.gain, 0, 1e-9);
    assert_false(d.accepted);
    free(r);
}

/* A machine that becomes half as fast meets both alike. */
static void test_a_drift_does_not_decide(void **state)
{
    struct machine m = even(1000);
    m.drift = 0.01;
    struct duel d = duel(&m);
    assert_false(d.accepted);
    m = even(1000);
    m.drift = 0.01;
    m.us[1][0] = m.us[1][1] = 850;
    d = duel(&m);
    assert_true(d.accepted);
    assert_float_equal(d.gain, 0.15, 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median_and_mad),
        cmocka_unit_test(test_the_middle_does_not_jump_between_two_levels),
        cmocka_unit_test(test_fastest_wins_by_weighted_sizes),
        cmocka_unit_test(test_a_gain_is_the_others_loss),
        cmocka_unit_test(test_slow_ones_are_stopped_at_once),
        cmocka_unit_test(test_most_samples_go_to_the_best),
        cmocka_unit_test(test_a_tie_goes_to_the_default_then_to_canonical_then_by_order),
        cmocka_unit_test(test_who_is_chosen_is_hardly_behind_the_fastest),
        cmocka_unit_test(test_pauses_do_not_choose),
        cmocka_unit_test(test_what_two_estimates_tell),
        cmocka_unit_test(test_what_a_call_costs_counts),
        cmocka_unit_test(test_an_undecided_duel_takes_more_turns),
        cmocka_unit_test(test_the_recorded_winner_holds_its_place),
        cmocka_unit_test(test_whom_one_follows_does_not_choose),
        cmocka_unit_test(test_rivals_are_who_may_be_near), cmocka_unit_test(test_of_many_rivals_the_farthest_ahead_are_told),
        cmocka_unit_test(test_noise_leaves_a_rival_that_may_be_far_ahead), cmocka_unit_test(test_a_final_tells_its_pace), cmocka_unit_test(test_a_final_of_the_default_alone_times_it),
        cmocka_unit_test(test_slowed_laps_are_taken_again_while_there_is_patience), cmocka_unit_test(test_patience_ends),
        cmocka_unit_test(test_a_final_asks_only_what_is_open),
        cmocka_unit_test(test_two_tunes_end_within_two_per_cent),
        cmocka_unit_test(test_a_failing_candidate_fails_alone),
        cmocka_unit_test(test_a_failing_default_and_an_interrupt_end_the_race),
        cmocka_unit_test(test_duels),
        cmocka_unit_test(test_others_on_the_machine_do_not_decide),
        cmocka_unit_test(test_a_drift_does_not_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
