/* UTF-8 and NFC against utf8proc, and the table against itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "unicode.h"

static struct uc_map map;

static int set_up(void **state)
{
    uc_map_fill(&map);
    return 0;
}

static void table_is_ascending_and_disjoint(void **state)
{
    for (unsigned i = 0; i < uc_range_count; i++) {
        assert_true(uc_ranges[i].first <= uc_ranges[i].last && uc_ranges[i].last < UC_LIMIT);
        if (i) assert_true(uc_ranges[i - 1].last < uc_ranges[i].first);
    }
}

static void classes_of_known_characters(void **state)
{
    static const struct { uint32_t cp; unsigned class; } rows[] = {
        {'a', UC_LETTER}, {0xAC00, UC_LETTER}, {0x3131, UC_LETTER}, {0x1100, UC_LETTER}, {0x0E01, UC_LETTER},
        {0x0301, UC_MARK}, {0x0E31, UC_MARK}, {0x094D, UC_MARK}, {0x20E3, UC_MARK}, {0xFE0F, UC_MARK},
        {'7', UC_NUMBER}, {0xFF11, UC_NUMBER}, {0x0661, UC_NUMBER}, {0x00BD, UC_NUMBER}, {0x2167, UC_NUMBER},
        {' ', UC_SPACE}, {'\n', UC_SPACE}, {0x85, UC_SPACE}, {0xA0, UC_SPACE}, {0x3000, UC_SPACE}, {0x2028, UC_SPACE},
        {'!', UC_OTHER}, {0x200B, UC_OTHER}, {0x200D, UC_OTHER}, {0xFEFF, UC_OTHER}, {0, UC_OTHER}, {0x1F469, UC_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(map.prop[rows[i].cp] & UC_CLASS, rows[i].class);
}

/* A character that is not slow is its own NFC, has combining class 0, and joins nothing before it. */
static void quick_characters_are_inert(void **state)
{
    for (utf8proc_int32_t cp = 1; cp < UC_LIMIT; cp++) {
        if ((map.prop[cp] & UC_SLOW) || (cp >= 0xD800 && cp < 0xE000)) continue;
        assert_int_equal(utf8proc_get_property(cp)->combining_class, 0);
        utf8proc_int32_t parts[8];
        int bound = 0;
        utf8proc_ssize_t n = utf8proc_decompose_char(cp, parts, 8, UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, &bound);
        assert_true(n >= 1 && n <= 4);
        if (n > 1) assert_true((map.prop[parts[n - 1]] & UC_SLOW) != 0);
        n = utf8proc_normalize_utf32(parts, n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        assert_true(n == 1 && parts[0] == cp);
    }
}

static size_t check(const char *s) { return utf8_check(s, strlen(s)); }

static void invalid_utf8_is_found_at_its_offset(void **state)
{
    assert_int_equal(check("plain"), 5);
    assert_int_equal(check("\xE6\xAD"), 0);
    assert_int_equal(check("12345678\xFF"), 8);
    assert_int_equal(check("1234567\xC0\x80"), 7);
    assert_int_equal(check("\xED\x9F\xBF|\xED\xA0\x80"), 4);
    assert_int_equal(check("\xF4\x8F\xBF\xBF|\xF4\x90\x80\x80"), 5);
    assert_int_equal(check("\xE0\x9F\x80"), 0);
    assert_int_equal(check("\xF0\x8F\x80\x80"), 0);
    assert_int_equal(utf8_check("a\0b", 3), 3);
}

static uint32_t next_random(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    return *x ^= *x << 5;
}

static size_t random_text(char *dst, uint32_t *seed)
{
    static const uint32_t pool[] = {'a', 'e', '<', 0x301, 0x316, 0x323, 0x307, 0x345, 0x1100, 0x1161, 0x11A8, 0xAC00, 0xAC01,
                                    0x212B, 0x0958, 0x0344, 0x1E9B, 0x3099, 0x30AB, 0x2ADC, 0x1D15E, 0x0DD9, 0x0DCF, 0x0DCA, 0x1F71,
                                    0x05D0, 0x05B8, 0x0F71, 0x0F72, 0x0F73, 0x114B9, 0x114BA, 0xE4, 0x1EA5, 0x2F800, ' ', 0x200D};
    size_t n = 0, chars = next_random(seed) % 24;
    for (size_t i = 0; i < chars; i++)
        n += (size_t)utf8proc_encode_char((utf8proc_int32_t)pool[next_random(seed) % (sizeof pool / sizeof *pool)],
                                          (utf8proc_uint8_t *)dst + n);
    return n;
}

static void nfc_equals_the_library_on_whole_texts(void **state)
{
    uint32_t seed = 2463534242u;
    for (int k = 0; k < 200000; k++) {
        char text[128], *got;
        size_t n = random_text(text, &seed), got_n;
        utf8proc_uint8_t *want;
        utf8proc_ssize_t want_n = utf8proc_map((utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &want,
                                               UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        struct q_err e;
        assert_int_equal(uc_nfc(&map, text, n, &got, &got_n, &e), 0);
        assert_int_equal(got_n, want_n);
        assert_memory_equal(got ? got : text, want, got_n);
        free(got);
        free(want);
    }
}

static void text_in_nfc_is_not_copied(void **state)
{
    const char *text = "English, 한국어, 日本語, tiếng Việt, code(); \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB";
    char *got;
    size_t n;
    assert_int_equal(uc_nfc(&map, text, strlen(text), &got, &n, NULL), 0);
    assert_null(got);
    assert_int_equal(n, strlen(text));
}

/* U+11A7 is no trailing consonant (Unicode 3.12: TBase + 0). utf8proc 2.8 takes it for one and loses it. */
static void what_is_no_trailing_consonant_stays(void **state)
{
    const char *text = "\u1112\u1161\u11A7\u0301", *want = "\uD558\u11A7\u0301";
    char *got;
    size_t n;
    assert_int_equal(uc_nfc(&map, text, strlen(text), &got, &n, NULL), 0);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(got, want, n);
    free(got);
}

/* Swapping neighbours until they are in order, as a library may, would need minutes here. */
static void a_long_run_of_marks_is_sorted_in_linear_time(void **state)
{
    enum { PAIRS = 200000 };
    char *text = malloc(1 + 4 * PAIRS), *got;
    size_t n;
    text[0] = 'a';
    for (int i = 0; i < PAIRS; i++) memcpy(text + 1 + 4 * i, "\xCC\x81\xCC\x96", 4); /* U+0301, class 230; U+0316, 220 */
    assert_int_equal(uc_nfc(&map, text, 1 + 4 * PAIRS, &got, &n, NULL), 0);
    assert_non_null(got);
    assert_int_equal(n, 4 * PAIRS); /* a + U+0301 became U+00E1 */
    assert_memory_equal(got, "\xC3\xA1\xCC\x96\xCC\x96", 6);
    assert_memory_equal(got + n - 4, "\xCC\x81\xCC\x81", 4);
    free(got);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_ascending_and_disjoint),
        cmocka_unit_test(classes_of_known_characters),
        cmocka_unit_test(quick_characters_are_inert),
        cmocka_unit_test(invalid_utf8_is_found_at_its_offset),
        cmocka_unit_test(nfc_equals_the_library_on_whole_texts),
        cmocka_unit_test(text_in_nfc_is_not_copied),
        cmocka_unit_test(what_is_no_trailing_consonant_stays),
        cmocka_unit_test(a_long_run_of_marks_is_sorted_in_linear_time),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
