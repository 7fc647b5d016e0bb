/* How a share of a roof is shown: one rule for all programs. */
#include "roof.h"
#include "roof_passes.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

static void shows(double pct, int by_bytes, int digits, const char *text)
{
    char found[ROOF_TEXT];
    roof_text(found, pct, by_bytes, digits);
    assert_string_equal(found, text);
}

static void test_rule(void **state)
{
    shows(0, 1, 0, "0 %");
    shows(71.4, 1, 0, "71 %");
    shows(71.44, 0, 1, "71.4 %");
    shows(100, 1, 1, "100.0 %");
    shows(104.9, 1, 1, "100.0 %");       /* of two measurements one was a little off */
    shows(104.9, 0, 0, "100 %");
    shows(105.1, 1, 0, "in cache");
    shows(105.1, 0, 0, ">100 %");
    shows(1e30, 1, 1, "in cache");
    shows(1e30, 0, 1, ">100.0 %");
}

static void test_share_is_capped(void **state)
{
    double part = 70, cached = 300, over = 300;
    assert_int_equal(roof_share(&part, 1), ROOF_PART);
    assert_int_equal(roof_share(&cached, 1), ROOF_CACHE);
    assert_int_equal(roof_share(&over, 0), ROOF_OVER);
    assert_true(part == 70 && cached == 100 && over == 100);
}

/* Rates as they come: which of them counts, when it is over, and whether it is the machine's own. */
static void passes_give(const char *what, const double *rate, int n, int put_off_every, int over_at, int sure)
{
    struct roof_passes p = {0};
    double best = 0;
    int i = 0;
    for (; !roof_is_over(&p); i++) {
        roof_pass(&p, rate[i % n], put_off_every && i % put_off_every == 0);
        best = rate[i % n] > best ? rate[i % n] : best;
    }
    if (i != over_at || roof_is_sure(&p) != sure || p.best != best) fail_msg("%s: %d passes, sure %d", what, i, roof_is_sure(&p));
}

static void test_passes(void **state)
{
    passes_give("a quiet machine", (double[]){10, 10.1, 9.9}, 3, 0, ROOF_PASSES_LEAST, 1);
    passes_give("a slow first pass", (double[]){3, 10, 10}, 3, 0, ROOF_PASSES_LEAST, 1);
    passes_give("half of the machine is somebody else's", (double[]){5, 5, 5}, 3, 1, ROOF_PASSES_MOST, 0);
    passes_give("now and then", (double[]){7, 10, 5, 10}, 4, 2, ROOF_PASSES_LEAST, 1);
    passes_give("one lucky pass", (double[]){5, 5.1, 5, 5, 5, 5, 5, 5, 10, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, 24, 0, ROOF_PASSES_LEAST, 1);
    passes_give("no two alike", (double[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 22, 24, 26, 28, 30, 33, 36}, 24, 0,
                ROOF_PASSES_MOST, 0);
}

static void half_loop(void *arg, struct team *t)
{
    volatile long *n = arg;
    for (long i = 0; i < 200000; i++) n[t->part * 64] += i;
    if (t->part == 0 && n[64 * 2]) usleep(2000);       /* as if another had its CPU */
}

/* That a member was put off is seen. */
static void test_a_member_that_is_away_is_seen(void **state)
{
    static long n[64 * 3];
    struct q_team *team;
    double rate;
    assert_int_equal(team_open(&team, 1, NULL), 0);
    n[64 * 2] = 1;
    assert_int_equal(roof_best(team, half_loop, n, 1, &rate), 0);
    assert_true(rate > 0 && rate < 500);
    team_close(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rule), cmocka_unit_test(test_share_is_capped), cmocka_unit_test(test_passes),
                                       cmocka_unit_test(test_a_member_that_is_away_is_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
