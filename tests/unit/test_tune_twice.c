/* What the duel of a second look makes of a problem's winner, its gain and its record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/tune_impl.h"
#include <string.h>

/* A winner "tm=2" that saves a tenth of the default's time ("tm=1"). */
static struct found had(void)
{
    struct found f = { .record = { .gain = 0.1 } };
    strcpy(f.record.params, "tm=2");
    strcpy(f.record.base_params, "tm=1");
    return f;
}

/* A duel of `own`, which wins ties, with `other`, which gains that much over it. */
static struct outcome duel(const char *own, const char *other, double gain)
{
    struct outcome o = { .duel = { .gain = gain, .accepted = gain >= RACE_STEP } };
    strcpy(o.base.params, own);
    strcpy(o.record.params, other);
    strcpy(o.base.base_params, "tm=1");
    strcpy(o.record.base_params, "tm=1");
    return o;
}

static void test_a_rival_that_gains_takes_the_place(void **state)
{
    struct found f = had();
    struct outcome o = duel("tm=2", "tm=3", 0.2);
    assert_int_equal(tune_take_duel(&f, &o), 1);
    assert_string_equal(f.record.params, "tm=3");
    assert_float_equal(f.record.gain, 1 - 0.9 * 0.8, 1e-9);
}

static void test_a_rival_in_a_tie_does_not(void **state)
{
    struct found f = had();
    struct outcome o = duel("tm=2", "tm=3", 0.005);
    assert_int_equal(tune_take_duel(&f, &o), 0);
    assert_string_equal(f.record.params, "tm=2");
    assert_float_equal(f.record.gain, 0.1, 1e-9);
}

static void test_a_rival_that_wins_ties_takes_the_place_of_a_winner_without_a_gain(void **state)
{
    struct found f = had();
    struct outcome o = duel("tm=0", "tm=2", -0.25);
    assert_int_equal(tune_take_duel(&f, &o), 1);
    assert_string_equal(f.record.params, "tm=0");
    assert_float_equal(f.record.gain, 1 - 0.9 / 1.25, 1e-9);
    f = had();
    o = duel("tm=0", "tm=2", 0.03);
    assert_int_equal(tune_take_duel(&f, &o), 0);
    assert_string_equal(f.record.params, "tm=2");
}

static void test_the_default_gains_nothing(void **state)
{
    struct found f = had();
    struct outcome o = duel("tm=1", "tm=2", 0.002);
    assert_int_equal(tune_take_duel(&f, &o), 1);
    assert_string_equal(f.record.params, "tm=1");
    assert_float_equal(f.record.gain, 0, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rival_that_gains_takes_the_place), cmocka_unit_test(test_a_rival_in_a_tie_does_not),
        cmocka_unit_test(test_a_rival_that_wins_ties_takes_the_place_of_a_winner_without_a_gain),
        cmocka_unit_test(test_the_default_gains_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
