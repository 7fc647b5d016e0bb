/* The loop's least time is a property of the machine, by however many members it runs at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/pace.h"
#include "runtime/team.h"

static double least(struct q_team *t, int parts)
{
    double best = pace_us(t, parts);
    for (int i = 0; i < 50; i++) {
        double us = pace_us(t, parts);
        if (us < best) best = us;
    }
    return best;
}

static void test_the_least_of_many_is_the_same_again(void **state)
{
    double first = 0;
    for (int parts = 1; parts <= 2; parts++) {
        struct q_team *t;
        assert_int_equal(team_open(&t, parts, NULL), 0);
        double us = least(t, parts);
        team_close(t);
        if (parts == 1) first = us;
        assert_true(us > 1 && us < 1000);
        assert_true(us < 2 * first && first < 2 * us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_least_of_many_is_the_same_again) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
