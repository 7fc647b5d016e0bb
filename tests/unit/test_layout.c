/* Layouts against the file format: every layout gives back the file's rows bit for bit, packed whole or in pieces, and writes no
 * byte outside its size. Weight bytes are arbitrary, so -128 (which quantisers avoid but files may hold) is among them. */
#include "layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { GUARD = 64 };

/* Random bytes with sane half scales (exponent below the infinities). */
static unsigned char *random_q8(int64_t n, int64_t k, unsigned seed)
{
    int64_t bytes = n * k / 32 * 34;
    unsigned char *p = malloc(bytes);
    assert_non_null(p);
    for (int64_t i = 0; i < bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = seed >> 24;
        if (i % 34 == 1) p[i] &= 0xbf;
    }
    return p;
}

static unsigned char *packed(const struct q_layout *l, const struct q_format *f, const void *src, int64_t n, int64_t k, int64_t piece)
{
    int64_t bytes = l->bytes(f, n, k);
    unsigned char *dst = malloc(bytes + GUARD);
    assert_non_null(dst);
    memset(dst, 0xa5, bytes + GUARD);
    for (int64_t row = 0; row < n; row += piece) l->pack(f, dst, src, n, k, row, row + piece < n ? row + piece : n);
    for (int i = 0; i < GUARD; i++) assert_int_equal(dst[bytes + i], 0xa5);
    return dst;
}

static void rows_survive(const char *name, int64_t n, int64_t k)
{
    const struct q_format *f = q_format_by_name("q8_0");
    const struct q_layout *l = q_layout_find(name), *file = q_layout_find("rows");
    assert_true(l->fits(f, n, k));
    assert_int_equal(l->bytes(f, n, k), file->bytes(f, n, k));
    unsigned char *src = random_q8(n, k, (unsigned)(n * 31 + k));
    unsigned char *whole = packed(l, f, src, n, k, n), *pieces = packed(l, f, src, n, k, 16);
    assert_memory_equal(whole, pieces, l->bytes(f, n, k));
    float *want = malloc(k * sizeof *want), *got = malloc(k * sizeof *got);
    assert_non_null(want);
    assert_non_null(got);
    for (int64_t row = 0; row < n; row++) {
        file->row(f, want, src, n, k, row);
        l->row(f, got, whole, n, k, row);
        assert_memory_equal(want, got, k * sizeof *want);
    }
    free(want), free(got), free(src), free(whole), free(pieces);
}

static void test_r16_keeps_rows(void **state)
{
    rows_survive("r16", 16, 32);
    rows_survive("r16", 48, 352);
}

static void test_r16u_keeps_rows(void **state)
{
    rows_survive("r16u", 16, 32);
    rows_survive("r16u", 80, 96);
}

static void test_planes_keep_rows(void **state)
{
    rows_survive("planes", 1, 32);
    rows_survive("planes", 37, 352);
}

/* The exact place of one element, so that packing and reading back cannot agree on a wrong layout. */
static void test_cell(void **state)
{
    const struct q_format *f = q_format_by_name("q8_0");
    unsigned char *src = random_q8(32, 64, 5);
    unsigned char *s = packed(q_layout_find("r16"), f, src, 32, 64, 32);
    unsigned char *u = packed(q_layout_find("r16u"), f, src, 32, 64, 32);
    const unsigned char *block = src + 21 * 68 + 34;               /* row 21, block 1 */
    int64_t cell = (1 * 2 + 1) * 544;                              /* group 1, block 1; lane 5 */
    assert_memory_equal(s + cell + 5 * 2, block, 2);
    assert_memory_equal(u + cell + 5 * 2, block, 2);
    for (int i = 0; i < 32; i++) {
        int64_t at = cell + 32 + i / 4 * 64 + 5 * 4 + i % 4;
        assert_int_equal(s[at], block[2 + i]);
        assert_int_equal(u[at], block[2 + i] ^ 0x80);
    }
    free(src), free(s), free(u);
}

static void test_planes(void **state)
{
    unsigned char *src = random_q8(5, 96, 7);
    unsigned char *p = packed(q_layout_find("planes"), q_format_by_name("q8_0"), src, 5, 96, 5);
    const unsigned char *block = src + 3 * 102 + 2 * 34;           /* row 3, block 2 */
    assert_memory_equal(p + 3 * 96 + 2 * 32, block + 2, 32);
    assert_memory_equal(p + 5 * 96 + (3 * 3 + 2) * 2, block, 2);
    free(src), free(p);
}

static void test_fits(void **state)
{
    const struct q_format *q8 = q_format_by_name("q8_0"), *f16 = q_format_by_name("f16");
    assert_false(q_layout_find("r16")->fits(q8, 17, 32));
    assert_false(q_layout_find("r16u")->fits(q8, 16, 33));
    assert_false(q_layout_find("r16u")->fits(f16, 16, 32));
    assert_false(q_layout_find("planes")->fits(f16, 16, 32));
    assert_true(q_layout_find("planes")->fits(q8, 17, 32));
    assert_true(q_layout_find("rows")->fits(f16, 3, 5));
    assert_false(q_layout_find("rows")->fits(q8, 3, 5));
    assert_null(q_layout_find("r17"));
    assert_null(q_layout_find("rows")->pack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_r16_keeps_rows),
        cmocka_unit_test(test_r16u_keeps_rows),
        cmocka_unit_test(test_planes_keep_rows),
        cmocka_unit_test(test_cell),
        cmocka_unit_test(test_planes),
        cmocka_unit_test(test_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
