/* What the driver tells of a card at work: read where it is told, left out where it is not, and never an error of a measurement. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "nvml.h"
#include <stdlib.h>
#include <string.h>

#define FAKE TEST_BUILD_DIR "/tests/fake_cuda/now/libnvidia-ml.so.1"
#define OLD TEST_BUILD_DIR "/tests/fake_cuda/old/libnvidia-ml.so.1"
#define CARD "0000:01:00.0"

static struct nvml_state read_state(const char *fake)
{
    struct nvml *n;
    struct nvml_state s;
    struct q_err e;
    memset(&s, 0xAA, sizeof s);
    setenv("FAKE_NVML", fake, 1);
    if (nvml_open(&n, FAKE, CARD, &e)) fail_msg("%s", e.text);
    nvml_read(n, &s);
    nvml_close(n);
    return s;
}

static void test_all_that_a_card_tells(void **state)
{
    struct nvml_state s = read_state("sm=1455,mem=877,mw=149600,heat=71,reasons=0x24");
    char words[40];
    assert_int_equal(s.sm_mhz, 1455);
    assert_int_equal(s.mem_mhz, 877);
    assert_int_equal(s.watts, 150);
    assert_int_equal(s.celsius, 71);
    assert_true(nvml_is_slowed(&s));
    nvml_words(&s, words, sizeof words);
    assert_string_equal(words, "power,heat");
    nvml_words(&s, words, 4);
    assert_string_equal(words, "pow");
}

static void test_a_card_at_its_power_limit_is_not_slowed(void **state)
{
    struct nvml_state s = read_state("reasons=0x4");
    assert_false(nvml_is_slowed(&s));
    s = read_state("reasons=0x101");      /* idle; set by an application */
    assert_false(nvml_is_slowed(&s));
    s = read_state("reasons=0x80");
    assert_true(nvml_is_slowed(&s));
}

static void test_what_is_not_told_or_cannot_be_is_nought(void **state)
{
    struct nvml_state s = read_state("");
    assert_int_equal(s.sm_mhz + s.mem_mhz + s.watts + s.celsius, 0);
    assert_int_equal(s.reasons, 0);
    s = read_state("sm=4294967295,mw=4294967295,heat=70000");
    assert_int_equal(s.sm_mhz + s.watts + s.celsius, 0);
}

static void expect_none(const char *library, const char *address, const char *fake, int code, const char *part)
{
    struct nvml *n;
    struct q_err e;
    setenv("FAKE_NVML", fake, 1);
    assert_int_equal(nvml_open(&n, library, address, &e), code);
    assert_null(n);
    if (!strstr(e.text, part)) fail_msg("expected '%s' in: %s", part, e.text);
}

static void test_no_nvml_is_one_line(void **state)
{
    expect_none("/nowhere/libnvidia-ml.so.1", CARD, "", Q_EMISS, "/nowhere/libnvidia-ml.so.1");
    expect_none(OLD, CARD, "", Q_EUNSUP, "ThrottleReasons");
    expect_none(FAKE, "0000:09:00.0", "", Q_EMISS, "0000:09:00.0");
    expect_none(FAKE, CARD, "broken", Q_EMISS, "does not start");
    nvml_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_a_card_tells), cmocka_unit_test(test_a_card_at_its_power_limit_is_not_slowed),
        cmocka_unit_test(test_what_is_not_told_or_cannot_be_is_nought), cmocka_unit_test(test_no_nvml_is_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
