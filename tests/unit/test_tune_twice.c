/* Which problems get a second look, in which order, and what becomes of its outcome. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/tune_impl.h"
#include <string.h>

/* What a final at that pace found, with one rival that may be `ahead`. */
static struct found had(double pace, double ahead)
{
    struct found f = { .fresh = 1, .record = { .gain = 0.1 }, .rivals = { .n = 1, .ahead = { ahead }, .pace = pace } };
    strcpy(f.record.params, "tm=2");
    strcpy(f.rivals.params[0], "tm=3");
    return f;
}

static void test_a_clear_winner_of_a_quiet_final_stays(void **state)
{
    struct found f[] = { had(20, -0.02), had(20.5, 0.01) };
    struct found_list l = { f, 2, 2 };
    assert_null(tune_next_look(&l, 20));
}

static void test_a_rival_in_doubt_gets_one_look(void **state)
{
    struct found f[] = { had(20, -0.02), had(20, 0.05) };
    struct found_list l = { f, 2, 2 };
    assert_ptr_equal(tune_next_look(&l, 20), &f[1]);
    f[1].looks = 1;
    assert_null(tune_next_look(&l, 20));
}

static void test_slowed_finals_come_by_how_much_and_twice(void **state)
{
    struct found f[] = { had(20, -0.02), had(25, -0.05), had(30, -0.05), had(21, -0.05), had(20, 0.04) };
    struct found_list l = { f, 5, 5 };
    int order[] = { 2, 1, 4, 2, 1 };
    for (int i = 0; i < 5; i++) {
        struct found *next = tune_next_look(&l, 20);
        assert_ptr_equal(next, &f[order[i]]);
        next->looks++;
    }
    assert_null(tune_next_look(&l, 20));
    f[1].looks = f[2].looks = 0;
    f[1].rivals.n = f[2].rivals.n = 0;      /* nobody to hold them against */
    assert_null(tune_next_look(&l, 20));
}

static void test_recorded_winners_and_cards_get_none(void **state)
{
    struct found f[] = { had(20, -0.02), had(30, 0.2), had(0, -0.02) };
    struct found_list l = { f, 3, 3 };
    f[1].fresh = 0;
    assert_null(tune_next_look(&l, 20));
    f[0].rivals.pace = 0;
    assert_null(tune_next_look(&l, 20));
}

static struct outcome another(double pace)
{
    struct outcome o = { .record = { .gain = 0.2 }, .rivals = { .n = 1, .ahead = { -0.05 }, .pace = pace } };
    strcpy(o.record.params, "tm=3");
    return o;
}

static void test_another_final_counts_unless_it_was_slower(void **state)
{
    struct found f = had(25, 0.01);
    struct outcome slower = another(30), quicker = another(20);
    assert_int_equal(tune_take_final(&f, &slower), 0);
    assert_string_equal(f.record.params, "tm=2");
    assert_float_equal(f.rivals.pace, 25, 0);
    assert_int_equal(tune_take_final(&f, &quicker), 1);
    assert_string_equal(f.record.params, "tm=3");
    assert_float_equal(f.record.gain, 0.2, 0);
    assert_float_equal(f.rivals.pace, 20, 0);
}

static void test_a_final_in_which_one_failed_counts(void **state)
{
    struct found f = had(20, 0.01);
    struct outcome o = another(30);
    o.failed = 1;
    assert_int_equal(tune_take_final(&f, &o), 1);
    assert_string_equal(f.record.params, "tm=3");
    f = had(20, 0.01);
    o.failed = 0;
    o.known_bad = 1;
    assert_int_equal(tune_take_final(&f, &o), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_clear_winner_of_a_quiet_final_stays), cmocka_unit_test(test_a_rival_in_doubt_gets_one_look),
        cmocka_unit_test(test_slowed_finals_come_by_how_much_and_twice), cmocka_unit_test(test_recorded_winners_and_cards_get_none),
        cmocka_unit_test(test_another_final_counts_unless_it_was_slower), cmocka_unit_test(test_a_final_in_which_one_failed_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
