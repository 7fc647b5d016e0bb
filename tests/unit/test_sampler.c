/* The history that penalties look at, against a plain recount of the window. */
#include "sampler.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <math.h>
#include <cmocka.h>

static void check_window(int last_n, int ids, int pushes)
{
    struct q_history *h;
    struct q_err e;
    int32_t *all = malloc((size_t)pushes * sizeof *all);
    assert_int_equal(q_history_open(&h, last_n, &e), Q_OK);
    for (int i = 0; i < pushes; i++) {
        struct q_sampling s = {0};
        int from = last_n < 0 || i + 1 < last_n ? 0 : i + 1 - last_n, total = 0;
        all[i] = rand() % ids;
        assert_int_equal(q_history_push(h, all[i], &e), Q_OK);
        q_history_fill(h, &s);
        for (int j = 0; j < s.n_history; j++) {
            int count = 0;
            for (int k = from; k <= i; k++) count += all[k] == s.history[2 * j];
            assert_int_equal(s.history[2 * j + 1], count);
            assert_true(count > 0);
            total += count;
        }
        assert_int_equal(total, last_n == 0 ? 0 : i + 1 - from);
    }
    q_history_close(h);
    free(all);
}

static void test_history(void **state)
{
    check_window(64, 20, 400);
    check_window(1, 5, 50);
    check_window(0, 5, 50);
    check_window(-1, 300, 500);
    check_window(200, 100000, 700);
}

static void test_ranges(void **state)
{
    struct q_err e;
    struct q_sampling_params p = q_sampling_default();
    assert_int_equal(q_sampling_check(&p, &e), Q_OK);
    p.temp = NAN;
    assert_int_equal(q_sampling_check(&p, &e), Q_EINPUT);
    p = q_sampling_default();
    p.min_p = -0.1f;
    assert_int_equal(q_sampling_check(&p, &e), Q_EINPUT);
    p = q_sampling_default();
    p.repeat = 0;
    assert_int_equal(q_sampling_check(&p, &e), Q_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_history), cmocka_unit_test(test_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
