/* What a product of halves may be off by (class half of matmul): the arithmetic of templates/matmul/hfma2.cu.in, done here in C, is accepted for
 * small and large k, and what a wrong kernel would give is not, nor what halves lost in any other class. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/trial.h"
#include "templates/matmul/args.h"
#include <stdio.h>
#include <string.h>

enum { N = 48, BLOCK = 32, FILE_BLOCK = 34 };

enum deed { RIGHT, BLOCK_LEFT_OUT, NEXT_SCALE, LAST_PAIR_LEFT_OUT, ONE_ROW_WRONG };

/* What the kernel below does, as trials call it with arguments alone. */
static enum deed deed;
static int k, add;

static f32 half(f32 x) { return ref_half_to_f32(ref_f32_to_half(x)); }

/* 32 products of a block: sums of even and of odd k, rounded to halves at every step. An eighth of every product is a multiple of an eighth
 * below 2^11, so that a step before its rounding is exact in fp32. */
static f32 dot(const i8 *w, const i8 *x, int n)
{
    f32 sum[2] = { 0, 0 };
    for (int i = 0; i < n; i++) sum[i % 2] = half((f32)w[i] / 8 * (f32)x[i] + sum[i % 2]);
    return sum[0] + sum[1];
}

static f32 scale_of(const unsigned char *block)
{
    u16 h;
    memcpy(&h, block, sizeof h);
    return ref_half_to_f32(h);
}

static f32 product(const struct matmul_args *a, const unsigned char *w, int j, i64 row)
{
    f32 sum = 0;
    for (int b = 0; b < k / BLOCK; b++) {
        const unsigned char *block = w + ((i64)j * (k / BLOCK) + b) * FILE_BLOCK;
        const i8 *x = a->a.q + row * k + b * BLOCK;
        int wrong = b == k / BLOCK / 2, last = wrong && deed == LAST_PAIR_LEFT_OUT ? BLOCK - 2 : BLOCK;
        f32 scale = scale_of(wrong && deed == NEXT_SCALE ? block + FILE_BLOCK : block) * 8;
        if (wrong && (deed == BLOCK_LEFT_OUT || (deed == ONE_ROW_WRONG && j == N - 1))) continue;
        sum += dot((const i8 *)block + 2, x, last) * scale * a->a.d[row * (k / BLOCK) + b];
    }
    return sum;
}

static void kernel(const void *args, struct team *t)
{
    const struct matmul_args *a = args;
    const unsigned char *w = (const unsigned char *)a->w + (a->w_offset ? *a->w_offset : 0);
    for (int r = 0; r < *a->n_rows; r++)
        for (int j = 0; j < N; j++) {
            f32 *y = a->y + r * a->y_stride + j, v = product(a, w, j, a->list ? a->list[r] : r);
            *y = add ? *y + v : v;
        }
    (void)t;
}

/* The verdict on what `d` gives, in a class. */
static int check(int length, int adds, int rows, enum deed d, const char *numerics, struct q_err *e)
{
    char text[128];
    struct q_shape shape;
    struct q_team *team;
    struct trial_truth truth;
    struct ref_size size = { .rows = rows, .seqs = 1, .parts = 1 };
    unsigned long long hash;
    snprintf(text, sizeof text, "type=q8_0,act=q8,layout=rows,n=%d,k=%d,epi=%s", N, length, adds ? "add" : "none");
    k = length, add = adds, deed = d;
    assert_int_equal(shape_parse(&shape, text, e), Q_OK);
    assert_int_equal(team_open(&team, 1, e), Q_OK);
    assert_int_equal(trial_truth_make(&truth, NULL, ref_find("matmul"), &shape, &size, 0x5EED0001ull, e), Q_OK);
    int rc = trial_truth_check(&truth, team, kernel, numerics, &hash, e);
    trial_truth_free(&truth);
    team_close(team);
    return rc;
}

static const int lengths[] = { 32, 352, 1024, 2080, 4096, 12288 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void sums_of_halves_are_accepted(void **state)
{
    static const char *const classes[] = { "half", "half_split2", "half_split4" };
    struct q_err e = { 0 };
    for (int i = 0; i < LENGTHS; i++)
        if (check(lengths[i], i % 2, 5, RIGHT, classes[i % 3], &e)) fail_msg("k = %d: %s", lengths[i], e.text);
    if (check(32, 0, 1, RIGHT, "half", &e) || check(32, 1, 500, RIGHT, "half", &e)) fail_msg("k = 32: %s", e.text);
}

static void no_other_class_accepts_them(void **state)
{
    static const char *const classes[] = { "canonical", "whole", "split2", "nofma", "" };
    struct q_err e;
    for (int i = 0; i < 5; i++) assert_int_equal(check(lengths[i + 1], i % 2, 5, RIGHT, classes[i], &e), Q_EINTERNAL);
}

/* In the middle of k; the smallest of these faults is two products of each row's 12288. */
static void a_wrong_kernel_is_caught(void **state)
{
    static const enum deed deeds[] = { BLOCK_LEFT_OUT, NEXT_SCALE, LAST_PAIR_LEFT_OUT, ONE_ROW_WRONG };
    struct q_err e;
    for (int i = 1; i < LENGTHS; i++)
        for (int j = 0; j < 4; j++)
            if (check(lengths[i], i % 2, 5, deeds[j], "half", &e) != Q_EINTERNAL) fail_msg("k = %d: fault %d is not seen", lengths[i], deeds[j]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums_of_halves_are_accepted), cmocka_unit_test(no_other_class_accepts_them),
                                        cmocka_unit_test(a_wrong_kernel_is_caught) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
