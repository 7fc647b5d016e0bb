/* Weight formats: conversions against the compiler's own half type, exhaustively; Q8_0 against hand-worked blocks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "quant.h"
#include <math.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t b;
    memcpy(&b, &x, 4);
    return b;
}

static float from_bits(uint32_t b)
{
    float x;
    memcpy(&x, &b, 4);
    return x;
}

static uint16_t half_bits(float x)
{
    _Float16 h = (_Float16)x;
    uint16_t b;
    memcpy(&b, &h, 2);
    return b;
}

static void every_half_reads_right_and_round_trips(void **state)
{
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t u = (uint16_t)h;
        _Float16 f;
        memcpy(&f, &u, 2);
        float x = q_half_to_float(u);
        if ((h & 0x7C00) == 0x7C00 && (h & 0x3FF)) {
            assert_true(isnan(x) && isnan(q_half_to_float(q_float_to_half(x))));
            continue;
        }
        assert_int_equal(bits_of(x), bits_of((float)f));
        assert_int_equal(q_float_to_half(x), u);
    }
}

/* Every exponent with mantissas around each rounding point, both signs. */
static void floats_round_to_nearest_even_half(void **state)
{
    for (uint32_t e = 0; e < 255; e++)
        for (uint32_t top = 0; top < 1024; top += 7)
            for (uint32_t low = 0; low < 5; low++) {
                static const uint32_t tails[] = { 0, 1, 0xFFF, 0x1000, 0x1001 };
                uint32_t b = e << 23 | top << 13 | tails[low];
                assert_int_equal(q_float_to_half(from_bits(b)), half_bits(from_bits(b)));
                assert_int_equal(q_float_to_half(from_bits(b | 0x80000000)), half_bits(from_bits(b | 0x80000000)));
            }
    assert_int_equal(q_float_to_half(65519.996f), 0x7BFF);
    assert_int_equal(q_float_to_half(65520.0f), 0x7C00);
    assert_int_equal(q_float_to_half(-INFINITY), 0xFC00);
}

static void bf16_rounds_to_nearest_even(void **state)
{
    const struct q_format *f = q_format_find(Q_TYPE_BF16);
    static const struct { uint32_t in; uint16_t out; } rows[] = {
        { 0x3F800000, 0x3F80 }, { 0x3F808000, 0x3F80 }, { 0x3F818000, 0x3F82 }, { 0x3F808001, 0x3F81 },
        { 0x7F7FFFFF, 0x7F80 }, { 0x7F800000, 0x7F80 }, { 0x7F800001, 0x7FC0 }, { 0x80000000, 0x8000 }, { 0x00008000, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float x = from_bits(rows[i].in);
        uint16_t got;
        f->quantise(&got, &x, 1);
        assert_int_equal(got, rows[i].out);
    }
    for (uint32_t b = 0; b < 65536; b++) {
        uint16_t u = (uint16_t)b;
        float x;
        f->dequantise(&x, &u, 1);
        assert_int_equal(bits_of(x), b << 16);
    }
}

/* d = 127/127 = 1: quotients are the values, ties go away from zero. */
static void q8_0_ties_away_from_zero(void **state)
{
    const struct q_format *f = q_format_find(Q_TYPE_Q8_0);
    float x[32] = { 127, 0.5f, -0.5f, 1.5f, -1.5f, 2.4999f, -126.5f, 0.25f }, back[32];
    static const int8_t expected[8] = { 127, 1, -1, 2, -2, 2, -127, 0 };
    unsigned char block[34];
    f->quantise(block, x, 32);
    assert_int_equal(block[0] | block[1] << 8, 0x3C00);
    for (int i = 0; i < 32; i++) assert_int_equal((int8_t)block[2 + i], i < 8 ? expected[i] : 0);
    f->dequantise(back, block, 32);
    for (int i = 0; i < 32; i++) assert_true(back[i] == (i < 8 ? expected[i] : 0));
}

static void q8_0_edges(void **state)
{
    const struct q_format *f = q_format_find(Q_TYPE_Q8_0);
    unsigned char block[68];
    float x[64] = { 0 }, back[64];
    x[40] = 1e-42f;   /* the second block holds one subnormal: its scale is zero */
    f->quantise(block, x, 64);
    f->dequantise(back, block, 64);
    for (int i = 0; i < 64; i++) assert_true(back[i] == 0);
    for (int i = 0; i < 32; i++) x[i] = sinf((float)i) * 3;
    f->quantise(block, x, 32);
    f->dequantise(back, block, 32);
    for (int i = 0; i < 32; i++) assert_true(fabsf(back[i] - x[i]) < 3.0f / 127 * 0.502f);
}

static void formats_round_trip_their_own_values(void **state)
{
    static const char *const names[] = { "f32", "f16", "bf16", "q8_0" };
    for (int n = 0; n < 4; n++) {
        const struct q_format *f = q_format_by_name(names[n]);
        assert_non_null(f);
        assert_ptr_equal(f, q_format_find(f->type));
        assert_int_equal(f->block, q_type_block(f->type));
        assert_int_equal(f->bytes, q_type_bytes(f->type));
        unsigned char a[256], b[256];
        float x[64];
        for (int i = 0; i < 64; i++) x[i] = (float)((i * 37 % 64) - 32) / 8;
        f->quantise(a, x, 64);
        f->dequantise(x, a, 64);
        f->quantise(b, x, 64);
        assert_memory_equal(a, b, (size_t)q_row_bytes(f, 64));
    }
}

static void names_of_types(void **state)
{
    assert_string_equal(q_type_name(12), "Q4_K");
    assert_string_equal(q_type_name(39), "MXFP4");
    static const int none[] = { -1, 4, 5, 31, 33, 36, 38, 43, 199, 1 << 30 };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_string_equal(q_type_name(none[i]), "?");
        assert_int_equal(q_type_block(none[i]), 0);
        assert_null(q_format_find(none[i]));
    }
    assert_null(q_format_find(12));
    assert_null(q_format_by_name("q4_k"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_reads_right_and_round_trips), cmocka_unit_test(floats_round_to_nearest_even_half),
        cmocka_unit_test(bf16_rounds_to_nearest_even), cmocka_unit_test(q8_0_ties_away_from_zero),
        cmocka_unit_test(q8_0_edges), cmocka_unit_test(formats_round_trip_their_own_values), cmocka_unit_test(names_of_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
