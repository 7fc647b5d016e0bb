/* How a share of a roof is shown: one rule for all programs. */
#include "roof.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rule), cmocka_unit_test(test_share_is_capped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
