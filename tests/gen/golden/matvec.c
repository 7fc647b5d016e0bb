/* matvec_q8_0_q8_r16u_n3584_k1024_none_avx512vnni_hw_tm1_tn8_chunk_prefetch0: y[r][j] = sum over k of w[j][k] * x[row][k],
 *     row = list[r] or r; few rows.
 *   w: [3584][1024] q8_0, layout r16u; x: [.][1024] int8, blocks of 32; y: [n_rows][3584] fp32, rows y_stride apart
 *   a block's cell in w: 16 half scales, then 8 words of 4 weights for each of 16 rows; a byte is a weight + 128
 *   part p of the team owns the p-th run of rows of w and streams them once; 16 at a time meet 8 rows of x
 *   moves 3899392 bytes of w, 7340032 operations a row: bound by read bandwidth
 *   caller: n_rows >= 0 (beyond 8 in passes over cached rows of w), y overlaps nothing
 * made by: quarry-gen matvec --shape type=q8_0,act=q8,layout=r16u,n=3584,k=1024,epi=none --params isa=avx512vnni,fma=hw,tm=1,tn=8,chain=chunk,prefetch=0 */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(64)));
typedef i32 vi __attribute__((vector_size(64)));
typedef f32 vf_mem __attribute__((vector_size(64), aligned(4), may_alias));

static inline void vstore(f32 *p, vf v) { *(vf_mem *)p = v; }

/* x in every lane: a scalar meets a vector lane by lane, and x - 0 is x, -0 included. */
static inline vf vset(f32 x) { return x - (vf){0}; }

/* (u16)-1: all lanes; 4: the current rounding mode. */
static inline vf vfma(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, (u16)-1, 4); }

typedef u16 vh __attribute__((vector_size(32)));
typedef u16 vh_mem __attribute__((vector_size(32), aligned(2), may_alias));
typedef i16 vh_i16w __attribute__((vector_size(32)));

/* (u16)-1: all lanes; 4: the current rounding mode (a half to float is exact). */
static inline vf vfrom_f16(vh h) { return __builtin_ia32_vcvtph2ps512_mask((vh_i16w)h, (vf){0}, (u16)-1, 4); }

static inline vf vload_f16(const u16 *p) { return vfrom_f16(*(const vh_mem *)p); }

static inline i64 x_row(const struct matmul_args *a, i64 r) { return a->list ? a->list[r] : r; }

typedef i32 vi_mem __attribute__((vector_size(64), aligned(2), may_alias));
typedef i32 i32_mem __attribute__((aligned(4), may_alias));

/* Four weights of each of 16 rows; four activations into every lane (less 0 in each, which spreads a scalar). */
static inline vi load_w(const u8 *p) { return *(const vi_mem *)p; }
static inline vi load_x(const i8 *p) { return *(const i32_mem *)p - (vi){0}; }

/* acc + four products a lane. The weights are w + 128, so a sum starts at -128 * sum(x). */
static inline vi vdot4(vi acc, vi w, vi x) { return __builtin_ia32_vpdpbusd_v16si(acc, w, x); }

/* 16 rows of w from j by 8 rows of x from r. */
static void tile_1x8(const struct matmul_args *a, const u8 *w, i64 j, i64 r)
{
    w += j * 1088;
    i64 row0 = x_row(a, r);
    const i8 *q0 = a->a.q + row0 * 1024;
    const f32 *d0 = a->a.d + row0 * 32;
    const i32 *s0 = a->a.s + row0 * 32;
    i64 row1 = x_row(a, r + 1);
    const i8 *q1 = a->a.q + row1 * 1024;
    const f32 *d1 = a->a.d + row1 * 32;
    const i32 *s1 = a->a.s + row1 * 32;
    i64 row2 = x_row(a, r + 2);
    const i8 *q2 = a->a.q + row2 * 1024;
    const f32 *d2 = a->a.d + row2 * 32;
    const i32 *s2 = a->a.s + row2 * 32;
    i64 row3 = x_row(a, r + 3);
    const i8 *q3 = a->a.q + row3 * 1024;
    const f32 *d3 = a->a.d + row3 * 32;
    const i32 *s3 = a->a.s + row3 * 32;
    i64 row4 = x_row(a, r + 4);
    const i8 *q4 = a->a.q + row4 * 1024;
    const f32 *d4 = a->a.d + row4 * 32;
    const i32 *s4 = a->a.s + row4 * 32;
    i64 row5 = x_row(a, r + 5);
    const i8 *q5 = a->a.q + row5 * 1024;
    const f32 *d5 = a->a.d + row5 * 32;
    const i32 *s5 = a->a.s + row5 * 32;
    i64 row6 = x_row(a, r + 6);
    const i8 *q6 = a->a.q + row6 * 1024;
    const f32 *d6 = a->a.d + row6 * 32;
    const i32 *s6 = a->a.s + row6 * 32;
    i64 row7 = x_row(a, r + 7);
    const i8 *q7 = a->a.q + row7 * 1024;
    const f32 *d7 = a->a.d + row7 * 32;
    const i32 *s7 = a->a.s + row7 * 32;
    vf acc0_0 = {0};
    vf acc0_1 = {0};
    vf acc0_2 = {0};
    vf acc0_3 = {0};
    vf acc0_4 = {0};
    vf acc0_5 = {0};
    vf acc0_6 = {0};
    vf acc0_7 = {0};
    for (i64 b = 0; b < 32; b++, w += 544) {
        vi start0 = (vi){0} - 128 * s0[b], dot0_0 = start0;
        vi start1 = (vi){0} - 128 * s1[b], dot0_1 = start1;
        vi start2 = (vi){0} - 128 * s2[b], dot0_2 = start2;
        vi start3 = (vi){0} - 128 * s3[b], dot0_3 = start3;
        vi start4 = (vi){0} - 128 * s4[b], dot0_4 = start4;
        vi start5 = (vi){0} - 128 * s5[b], dot0_5 = start5;
        vi start6 = (vi){0} - 128 * s6[b], dot0_6 = start6;
        vi start7 = (vi){0} - 128 * s7[b], dot0_7 = start7;
#pragma GCC unroll 8
        for (int four = 0; four < 8; four++) {
            vi w0 = load_w(w + 32 + 64 * four);
            vi x0 = load_x(q0 + 32 * b + 4 * four);
            dot0_0 = vdot4(dot0_0, w0, x0);
            vi x1 = load_x(q1 + 32 * b + 4 * four);
            dot0_1 = vdot4(dot0_1, w0, x1);
            vi x2 = load_x(q2 + 32 * b + 4 * four);
            dot0_2 = vdot4(dot0_2, w0, x2);
            vi x3 = load_x(q3 + 32 * b + 4 * four);
            dot0_3 = vdot4(dot0_3, w0, x3);
            vi x4 = load_x(q4 + 32 * b + 4 * four);
            dot0_4 = vdot4(dot0_4, w0, x4);
            vi x5 = load_x(q5 + 32 * b + 4 * four);
            dot0_5 = vdot4(dot0_5, w0, x5);
            vi x6 = load_x(q6 + 32 * b + 4 * four);
            dot0_6 = vdot4(dot0_6, w0, x6);
            vi x7 = load_x(q7 + 32 * b + 4 * four);
            dot0_7 = vdot4(dot0_7, w0, x7);
        }
        vf dw0 = vload_f16((const u16 *)w);
        acc0_0 = vfma(__builtin_convertvector(dot0_0, vf) * dw0, vset(d0[b]), acc0_0);
        acc0_1 = vfma(__builtin_convertvector(dot0_1, vf) * dw0, vset(d1[b]), acc0_1);
        acc0_2 = vfma(__builtin_convertvector(dot0_2, vf) * dw0, vset(d2[b]), acc0_2);
        acc0_3 = vfma(__builtin_convertvector(dot0_3, vf) * dw0, vset(d3[b]), acc0_3);
        acc0_4 = vfma(__builtin_convertvector(dot0_4, vf) * dw0, vset(d4[b]), acc0_4);
        acc0_5 = vfma(__builtin_convertvector(dot0_5, vf) * dw0, vset(d5[b]), acc0_5);
        acc0_6 = vfma(__builtin_convertvector(dot0_6, vf) * dw0, vset(d6[b]), acc0_6);
        acc0_7 = vfma(__builtin_convertvector(dot0_7, vf) * dw0, vset(d7[b]), acc0_7);
    }
    f32 *y0 = a->y + r * a->y_stride + j;
    vstore(y0, acc0_0);
    f32 *y1 = a->y + (r + 1) * a->y_stride + j;
    vstore(y1, acc0_1);
    f32 *y2 = a->y + (r + 2) * a->y_stride + j;
    vstore(y2, acc0_2);
    f32 *y3 = a->y + (r + 3) * a->y_stride + j;
    vstore(y3, acc0_3);
    f32 *y4 = a->y + (r + 4) * a->y_stride + j;
    vstore(y4, acc0_4);
    f32 *y5 = a->y + (r + 5) * a->y_stride + j;
    vstore(y5, acc0_5);
    f32 *y6 = a->y + (r + 6) * a->y_stride + j;
    vstore(y6, acc0_6);
    f32 *y7 = a->y + (r + 7) * a->y_stride + j;
    vstore(y7, acc0_7);
}

/* 16 rows of w from j by 4 rows of x from r. */
static void tile_1x4(const struct matmul_args *a, const u8 *w, i64 j, i64 r)
{
    w += j * 1088;
    i64 row0 = x_row(a, r);
    const i8 *q0 = a->a.q + row0 * 1024;
    const f32 *d0 = a->a.d + row0 * 32;
    const i32 *s0 = a->a.s + row0 * 32;
    i64 row1 = x_row(a, r + 1);
    const i8 *q1 = a->a.q + row1 * 1024;
    const f32 *d1 = a->a.d + row1 * 32;
    const i32 *s1 = a->a.s + row1 * 32;
    i64 row2 = x_row(a, r + 2);
    const i8 *q2 = a->a.q + row2 * 1024;
    const f32 *d2 = a->a.d + row2 * 32;
    const i32 *s2 = a->a.s + row2 * 32;
    i64 row3 = x_row(a, r + 3);
    const i8 *q3 = a->a.q + row3 * 1024;
    const f32 *d3 = a->a.d + row3 * 32;
    const i32 *s3 = a->a.s + row3 * 32;
    vf acc0_0 = {0};
    vf acc0_1 = {0};
    vf acc0_2 = {0};
    vf acc0_3 = {0};
    for (i64 b = 0; b < 32; b++, w += 544) {
        vi start0 = (vi){0} - 128 * s0[b], dot0_0 = start0;
        vi start1 = (vi){0} - 128 * s1[b], dot0_1 = start1;
        vi start2 = (vi){0} - 128 * s2[b], dot0_2 = start2;
        vi start3 = (vi){0} - 128 * s3[b], dot0_3 = start3;
#pragma GCC unroll 8
        for (int four = 0; four < 8; four++) {
            vi w0 = load_w(w + 32 + 64 * four);
            vi x0 = load_x(q0 + 32 * b + 4 * four);
            dot0_0 = vdot4(dot0_0, w0, x0);
            vi x1 = load_x(q1 + 32 * b + 4 * four);
            dot0_1 = vdot4(dot0_1, w0, x1);
            vi x2 = load_x(q2 + 32 * b + 4 * four);
            dot0_2 = vdot4(dot0_2, w0, x2);
            vi x3 = load_x(q3 + 32 * b + 4 * four);
            dot0_3 = vdot4(dot0_3, w0, x3);
        }
        vf dw0 = vload_f16((const u16 *)w);
        acc0_0 = vfma(__builtin_convertvector(dot0_0, vf) * dw0, vset(d0[b]), acc0_0);
        acc0_1 = vfma(__builtin_convertvector(dot0_1, vf) * dw0, vset(d1[b]), acc0_1);
        acc0_2 = vfma(__builtin_convertvector(dot0_2, vf) * dw0, vset(d2[b]), acc0_2);
        acc0_3 = vfma(__builtin_convertvector(dot0_3, vf) * dw0, vset(d3[b]), acc0_3);
    }
    f32 *y0 = a->y + r * a->y_stride + j;
    vstore(y0, acc0_0);
    f32 *y1 = a->y + (r + 1) * a->y_stride + j;
    vstore(y1, acc0_1);
    f32 *y2 = a->y + (r + 2) * a->y_stride + j;
    vstore(y2, acc0_2);
    f32 *y3 = a->y + (r + 3) * a->y_stride + j;
    vstore(y3, acc0_3);
}

/* 16 rows of w from j by 2 rows of x from r. */
static void tile_1x2(const struct matmul_args *a, const u8 *w, i64 j, i64 r)
{
    w += j * 1088;
    i64 row0 = x_row(a, r);
    const i8 *q0 = a->a.q + row0 * 1024;
    const f32 *d0 = a->a.d + row0 * 32;
    const i32 *s0 = a->a.s + row0 * 32;
    i64 row1 = x_row(a, r + 1);
    const i8 *q1 = a->a.q + row1 * 1024;
    const f32 *d1 = a->a.d + row1 * 32;
    const i32 *s1 = a->a.s + row1 * 32;
    vf acc0_0 = {0};
    vf acc0_1 = {0};
    for (i64 b = 0; b < 32; b++, w += 544) {
        vi start0 = (vi){0} - 128 * s0[b], dot0_0 = start0;
        vi start1 = (vi){0} - 128 * s1[b], dot0_1 = start1;
#pragma GCC unroll 8
        for (int four = 0; four < 8; four++) {
            vi w0 = load_w(w + 32 + 64 * four);
            vi x0 = load_x(q0 + 32 * b + 4 * four);
            dot0_0 = vdot4(dot0_0, w0, x0);
            vi x1 = load_x(q1 + 32 * b + 4 * four);
            dot0_1 = vdot4(dot0_1, w0, x1);
        }
        vf dw0 = vload_f16((const u16 *)w);
        acc0_0 = vfma(__builtin_convertvector(dot0_0, vf) * dw0, vset(d0[b]), acc0_0);
        acc0_1 = vfma(__builtin_convertvector(dot0_1, vf) * dw0, vset(d1[b]), acc0_1);
    }
    f32 *y0 = a->y + r * a->y_stride + j;
    vstore(y0, acc0_0);
    f32 *y1 = a->y + (r + 1) * a->y_stride + j;
    vstore(y1, acc0_1);
}

/* 16 rows of w from j by 1 row of x from r. */
static void tile_1x1(const struct matmul_args *a, const u8 *w, i64 j, i64 r)
{
    w += j * 1088;
    i64 row0 = x_row(a, r);
    const i8 *q0 = a->a.q + row0 * 1024;
    const f32 *d0 = a->a.d + row0 * 32;
    const i32 *s0 = a->a.s + row0 * 32;
    vf acc0_0 = {0};
    for (i64 b = 0; b < 32; b++, w += 544) {
        vi start0 = (vi){0} - 128 * s0[b], dot0_0 = start0;
#pragma GCC unroll 8
        for (int four = 0; four < 8; four++) {
            vi w0 = load_w(w + 32 + 64 * four);
            vi x0 = load_x(q0 + 32 * b + 4 * four);
            dot0_0 = vdot4(dot0_0, w0, x0);
        }
        vf dw0 = vload_f16((const u16 *)w);
        acc0_0 = vfma(__builtin_convertvector(dot0_0, vf) * dw0, vset(d0[b]), acc0_0);
    }
    f32 *y0 = a->y + r * a->y_stride + j;
    vstore(y0, acc0_0);
}

/* 16 rows of w from j by rows [r, stop) of x. */
static void pass_1(const struct matmul_args *a, const u8 *w, i64 j, i64 r, i64 stop)
{
    for (; stop - r >= 8; r += 8) tile_1x8(a, w, j, r);
    for (; stop - r >= 4; r += 4) tile_1x4(a, w, j, r);
    for (; stop - r >= 2; r += 2) tile_1x2(a, w, j, r);
    for (; stop - r >= 1; r += 1) tile_1x1(a, w, j, r);
}

void matvec_q8_0_q8_r16u_n3584_k1024_none_avx512vnni_hw_tm1_tn8_chunk_prefetch0(const struct matmul_args *a, struct team *t)
{
    const u8 *w = (const u8 *)a->w + (a->w_offset ? *a->w_offset : 0);
    i64 j, end;
    team_share(t, 3584, 16, &j, &end);
    for (; j + 16 <= end; j += 16) pass_1(a, w, j, 0, *a->n_rows);
}
