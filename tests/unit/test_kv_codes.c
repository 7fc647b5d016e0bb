/* The formats of K and V with scales, as kv_append/args.h has them, by the truth that every kernel must equal bit for bit: how good they
 * are on normal numbers (what Lloyd-Max codebooks of 3 and 4 bits reach: 14.6 and 20.2 dB) and on outliers, that rotation keeps products,
 * that norms are kept, and the bits of a run worked out by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "templates/ref_kv.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024, TOKENS = 400 };

/* 10 log10(|x|^2 / |x - x'|^2) over TOKENS heads; every `outlier`-th value (0: none) is 50 times as large. */
static double sqnr(enum kv_format f, int dim, int outlier, double *norm_off)
{
    unsigned long long seed = 5;
    double signal = 0, noise = 0;
    u8 *piece = calloc(1, (size_t)kv_piece_bytes(f, dim));
    *norm_off = 0;
    for (int t = 0; t < TOKENS; t++) {
        f32 x[MOST];
        double y[MOST], nx = 0, ny = 0;
        for (int i = 0; i < dim; i++) x[i] = (f32)ref_normal(&seed) * (outlier && i % outlier == 3 ? 50.0f : 1.0f);
        ref_kv_put(f, dim, piece, t % KV_PAGE, x);
        ref_kv_get(f, dim, piece, t % KV_PAGE, y);
        if (ref_kv_rotated(f)) ref_kv_rotate_back(dim, y);
        for (int i = 0; i < dim; i++) {
            nx += (double)x[i] * x[i];
            ny += y[i] * y[i];
            noise += (x[i] - y[i]) * (x[i] - y[i]);
        }
        signal += nx;
        *norm_off = fmax(*norm_off, fabs(sqrt(ny / nx) - 1));
    }
    free(piece);
    return 10 * log10(signal / noise);
}

/* A short run knows its own sigma, so it does a little better. */
static void rotated_formats_reach_their_codebooks(void **state)
{
    static const int dims[] = { 32, 64, 96, 128, 256, 320, 512 };
    double off;
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        double r3 = sqnr(KV_R3, dims[i], 0, &off), r4 = sqnr(KV_R4, dims[i], 0, &off), more = 24.0 / kv_run(dims[i]);
        assert_true(r3 > 14.5 && r3 < 14.62 + more);
        assert_true(r4 > 20.1 && r4 < 20.22 + more);
    }
}

static void norms_are_kept(void **state)
{
    double off;
    sqnr(KV_R3, 256, 0, &off);
    assert_true(off < 6e-4);                  /* an f16 scale's rounding */
    sqnr(KV_R4, 96, 0, &off);
    assert_true(off < 6e-4);
}

/* One dimension in 64 that is 50 times as large: what a plain 3-bit grid for its block would lose. */
static void outliers_are_spread(void **state)
{
    double off;
    assert_true(sqnr(KV_R3, 256, 64, &off) > 13.5);
    assert_true(sqnr(KV_R4, 256, 64, &off) > 18.5);
    assert_true(sqnr(KV_Q8, 256, 0, &off) > 43);
}

static void rotation_keeps_products_and_comes_back(void **state)
{
    unsigned long long seed = 9;
    double a[256], b[256], c[256], before = 0, after = 0;
    for (int i = 0; i < 256; i++) {
        c[i] = a[i] = ref_normal(&seed);
        b[i] = ref_normal(&seed);
        before += a[i] * b[i];
    }
    ref_kv_rotate(256, a);
    ref_kv_rotate(256, b);
    for (int i = 0; i < 256; i++) after += a[i] * b[i];
    assert_true(fabs(after - before) < 1e-12 * 256);
    assert_true(fabs(a[0] - c[0]) > 1e-3);
    ref_kv_rotate_back(256, a);
    for (int i = 0; i < 256; i++) assert_true(fabs(a[i] - c[i]) < 1e-12);
}

/* Rotated values of one magnitude lie at 1 sigma: 40 of r3 (53 a sigma), 44 of r4 (46.5). The last eight of a block fill spare bits. */
static void bits_of_a_run(void **state)
{
    f32 y[32];
    u32 words[64 * 5];
    for (int i = 0; i < 32; i++) y[i] = i < 24 ? 80 : -80;
    memset(words, 0, sizeof words);
    ref_kv_put_rotated(KV_R3, 32, words, 1, y);
    assert_int_equal(words[3], 0x55555555);              /* code 5, and bit 0 of code 2 */
    assert_int_equal(words[4], 0xDDDDDDDD);              /* its bit 1 */
    assert_int_equal(words[5], 0x55555555);
    assert_int_equal(words[0], 0);
    assert_int_equal(((u16 *)((u8 *)words + 64 * 12))[1], ref_f32_to_half(2));
    for (int i = 0; i < 32; i++) y[i] = i % 8 ? 88 : -88;
    memset(words, 0, sizeof words);
    ref_kv_put_rotated(KV_R4, 32, words, 0, y);
    assert_int_equal(words[0], 0x3333333B);              /* index 3, a sign of its own */
    assert_int_equal(words[3], 0x3333333B);
    assert_int_equal(((u16 *)((u8 *)words + 64 * 16))[0], ref_f32_to_half(2));
}

static void nothing_and_almost_nothing(void **state)
{
    f32 x[64] = { 0 };
    double y[64];
    u8 piece[64 * 64];
    for (int f = KV_Q8; f <= KV_R3; f++)
        for (int small = 0; small < 2; small++) {
            x[5] = small ? 1e-30f : 0;
            memset(piece, 0xFF, sizeof piece);
            ref_kv_put((enum kv_format)f, 32, piece, 0, x);
            ref_kv_get((enum kv_format)f, 32, piece, 0, y);
            for (int i = 0; i < 32; i++) assert_true(y[i] == 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotated_formats_reach_their_codebooks), cmocka_unit_test(norms_are_kept),
        cmocka_unit_test(outliers_are_spread),                   cmocka_unit_test(rotation_keeps_products_and_comes_back),
        cmocka_unit_test(bits_of_a_run),                         cmocka_unit_test(nothing_and_almost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
