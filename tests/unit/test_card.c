/* Card keys: what is printed is read back, short forms, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "card.h"
#include <string.h>

static void detected_key_reads_back(void **state)
{
    struct q_card a, b;
    struct q_err e;
    assert_int_equal(card_detect_cpu(&a, 3, &e), 0);
    assert_int_equal(a.threads, 3);
    assert_true(a.isa & Q_ISA_SCALAR);
    assert_true(a.l1_kib > 0 && a.l2_kib > 0);
    assert_int_equal(card_parse(&b, a.key, &e), 0);
    assert_memory_equal(&a, &b, sizeof a);
}

static void paths_stand_on_those_below(void **state)
{
    struct q_card c;
    assert_int_equal(card_detect_cpu(&c, 0, NULL), 0);
    if (c.isa & Q_ISA_SSE42) assert_true(c.isa & Q_ISA_SCALAR);
    if (c.isa & Q_ISA_AVX2) assert_true(c.isa & Q_ISA_SSE42);
    if (c.isa & (Q_ISA_AVXVNNI | Q_ISA_AVX512VNNI)) assert_true(c.isa & Q_ISA_AVX2);
    assert_true(c.threads >= 1);
}

static void short_form_brings_what_is_below(void **state)
{
    struct q_card c, again;
    assert_int_equal(card_parse(&c, "cpu:avx2", NULL), 0);
    assert_int_equal(c.isa, Q_ISA_AVX2 | Q_ISA_SSE42 | Q_ISA_SCALAR);
    assert_int_equal(card_parse(&again, c.key, NULL), 0);
    assert_string_equal(again.key, c.key);
    assert_int_equal(card_parse(&c, "cpu:avx512vnni", NULL), 0);
    assert_int_equal(c.isa & Q_ISA_AVXVNNI, 0);
    assert_int_equal(card_parse(&c, "cpu:scalar", NULL), 0);
    assert_int_equal(c.isa, Q_ISA_SCALAR);
    assert_int_equal(card_parse(&c, "cpu:scalar,l1=16,l3=2048,t=3", NULL), 0);
    assert_int_equal(c.l1_kib, 16);
    assert_int_equal(c.l3_kib, 2048);
    assert_int_equal(c.threads, 3);
}

static void full_key(void **state)
{
    struct q_card c;
    const char *key = "cpu:amd-25-17,isa=avx512vnni+avx2+sse42+scalar,l1=32,l2=1024,l3=32768,t=2";
    assert_int_equal(card_parse(&c, key, NULL), 0);
    assert_string_equal(c.key, key);
    assert_string_equal(c.vendor, "amd");
    assert_int_equal(c.family, 25);
    assert_int_equal(c.model, 17);
    assert_int_equal(c.l3_kib, 32768);
    assert_int_equal(c.threads, 2);
}

static void bad_keys_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "cpu:", "gpu:x", "cpu:avx3", "cpu:avx2,", "cpu:avx2,t=2,l1=32", "cpu:avx2,t=0", "cpu:avx2,l1=", "cpu:amd-25-17", "cpu:amd-25-17,isa=,l1=32,l2=1,l3=1,t=2",
        "cpu:amd-25-17,isa=avx2,l1=32,l2=1024,l3=32768,t=2",            /* without scalar */
        "cpu:amd-25-17,isa=avx2+scalar,l1=32,l2=1024,l3=32768,t=0",
        "cpu:amd-25-17,isa=avx2+scalar,l1=32,l2=1024,l3=32768,t=2x",
        "cpu:amd-25-17,isa=avx2+scalar,l1=-1,l2=1024,l3=32768,t=2",
        "cpu:amd-25-17,isa=avx2+scalar,l1=99999999999999999999,l2=1024,l3=32768,t=2",
        "cpu:amdamdamdamdamdamd-25-17,isa=scalar,l1=1,l2=1,l3=1,t=2",
    };
    struct q_card c;
    struct q_err e;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(card_parse(&c, bad[i], &e), Q_EINPUT);
        assert_non_null(strstr(e.text, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detected_key_reads_back), cmocka_unit_test(paths_stand_on_those_below),
        cmocka_unit_test(short_form_brings_what_is_below), cmocka_unit_test(full_key), cmocka_unit_test(bad_keys_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
