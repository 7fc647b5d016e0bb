/* Samples by replay: what pauses of the machine do to one, whether somebody notices them or not; and the team's own account of a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/bed_impl.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A machine whose pauses come with a probability, and are seen with another. */
struct machine {
    double us, noise, pause, seen;
    int takes, fails;
    unsigned long long seed;
};

static double uniform(struct machine *m)
{
    m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(m->seed >> 11) * 0x1p-53;
}

static int part(void *arg, double *us, int *disturbed, struct q_err *e)
{
    struct machine *m = arg;
    if (m->fails && m->takes == m->fails) return q_fail(e, Q_EINTERNAL, "it fails");
    int paused = uniform(m) < m->pause;
    *us = m->us * (1 + m->noise * uniform(m)) * (paused ? 100 : 1);
    *disturbed = paused && uniform(m) < m->seen;
    m->takes++;
    return Q_OK;
}

static double sample_of(struct machine *m)
{
    double us;
    m->takes = 0;
    assert_int_equal(sample_take(part, m, SAMPLE_PARTS, &us, NULL), Q_OK);
    return us;
}

static void a_quiet_machine_is_asked_no_oftener_than_needed(void **state)
{
    struct machine m = { .us = 10, .noise = 0.02, .seed = 1 };
    for (int i = 0; i < 100; i++) {
        assert_float_equal(sample_of(&m), 10.1, 0.11);
        assert_int_equal(m.takes, SAMPLE_PARTS);
    }
}

static void pauses_that_are_seen_are_taken_again(void **state)
{
    struct machine m = { .us = 10, .noise = 0.02, .pause = 0.6, .seen = 1, .seed = 1 };
    int more = 0;
    for (int i = 0; i < 1000; i++) {
        assert_float_equal(sample_of(&m), 10.1, 0.11);
        more += m.takes > SAMPLE_PARTS;
        assert_true(m.takes <= SAMPLE_MOST);
    }
    assert_true(more > 900);
}

/* A third of the parts, and nobody tells: in one long sample of as many calls the pauses would make it thirty times as slow. */
static void pauses_that_are_not_seen_hardly_ever_show(void **state)
{
    struct machine m = { .us = 10, .noise = 0.02, .pause = 0.33, .seed = 1 };
    int spoilt = 0;
    for (int i = 0; i < 1000; i++) spoilt += sample_of(&m) > 11;
    assert_true(spoilt < 80);
}

/* Nothing but pauses: a time is told all the same, in bounded tries. */
static void a_machine_that_is_never_quiet_gives_a_time(void **state)
{
    struct machine m = { .us = 10, .pause = 1, .seen = 1, .seed = 1 };
    assert_float_equal(sample_of(&m), 1000, 1);
    assert_int_equal(m.takes, SAMPLE_MOST);
}

static void a_failure_ends_the_sample(void **state)
{
    struct machine m = { .us = 10, .seed = 1, .fails = 2 };
    struct q_err e = { 0 };
    double us;
    assert_int_equal(sample_take(part, &m, SAMPLE_PARTS, &us, &e), Q_EINTERNAL);
    assert_int_equal(m.takes, 2);
    assert_string_equal(e.text, "it fails");
}

static void lower_quartiles(void **state)
{
    const double v[] = { 9, 1, 5, 3, 7, 8, 2, 6 };
    assert_float_equal(sample_low(v, 8), 3, 0);
    assert_float_equal(sample_low(v, 3), 1, 0);
    assert_float_equal(sample_low(v, 1), 9, 0);
    assert_true(isinf(sample_low(v, 0)));
}

static void long_calls_and_cards_have_fewer_parts(void **state)
{
    assert_int_equal(sample_parts(0.3, 0), SAMPLE_PARTS);
    assert_true(sample_parts(2000, 0) > 1 && sample_parts(2000, 0) < SAMPLE_PARTS);
    assert_int_equal(sample_parts(1e5, 0), 1);
    assert_int_equal(sample_parts(0.3, 1), 1);
    assert_true(sample_cost(3000, 0) > 3 * 3000 && sample_cost(0.1, 0) < 2000);
}

/* --- a real team ------------------------------------------------------------------------------------------------------- */

static int away;      /* whether members leave their CPUs in the middle */

static void kernel(const void *args, struct team *t)
{
    volatile double x = 1;
    (void)args;
    for (int i = 0; i < 20000; i++) x = x * 1.0000001;
    if (away) nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
}

static void a_team_that_had_no_cpu_says_so(void **state)
{
    struct q_kernel k = { .fn = kernel };
    struct bed b;
    struct trial_case c = { 0 };
    struct bed_ring r = { .t = &c, .n = 1 };
    double us;
    int disturbed = 0, fault = 0, quiet = 0;
    assert_int_equal(bed_open(&b, "2", NULL), Q_OK);
    away = 1;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(bed_time(&b, &r, &k, 1, &us, &disturbed, &fault, NULL), Q_OK);
        assert_true(disturbed && us > 1900);
    }
    away = 0;
    for (int i = 0; i < 2000 && !quiet; i++) {
        assert_int_equal(bed_time(&b, &r, &k, 1, &us, &disturbed, &fault, NULL), Q_OK);
        quiet = !disturbed;
    }
    assert_true(quiet);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_machine_is_asked_no_oftener_than_needed), cmocka_unit_test(pauses_that_are_seen_are_taken_again),
        cmocka_unit_test(pauses_that_are_not_seen_hardly_ever_show), cmocka_unit_test(a_machine_that_is_never_quiet_gives_a_time),
        cmocka_unit_test(a_failure_ends_the_sample), cmocka_unit_test(lower_quartiles), cmocka_unit_test(long_calls_and_cards_have_fewer_parts),
        cmocka_unit_test(a_team_that_had_no_cpu_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
