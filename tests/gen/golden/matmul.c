/* matmul_q8_0_q8_r16_n3584_k1024_add_avx2_hw_tm1_tn4_chunk: y[r][j] += sum over k of w[j][k] * x[row][k], row = list[r] or r;
 *     many rows.
 *   w: [3584][1024] q8_0, layout r16; x: [.][1024] int8, blocks of 32; y: [n_rows][3584] fp32, rows y_stride apart
 *   a block's cell in w: 16 half scales, then 8 words of 4 weights for each of 16 rows
 *   part p of the team owns the p-th run of rows of w; a tile is 16 of them by 4 rows of x in registers;
 *     w's rows stay in cache while all of x passes
 *   moves 3899392 bytes of w once, 7340032 operations a row: bound by the integer dot product
 *   caller: n_rows >= 0, y overlaps nothing
 * made by: quarry-gen matmul --shape type=q8_0,act=q8,layout=r16,n=3584,k=1024,epi=add --params isa=avx2,fma=hw,tm=1,tn=4,chain=chunk */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(32)));
typedef i32 vi __attribute__((vector_size(32)));
typedef f32 vf_mem __attribute__((vector_size(32), aligned(4), may_alias));

static inline vf vload(const f32 *p) { return *(const vf_mem *)p; }
static inline void vstore(f32 *p, vf v) { *(vf_mem *)p = v; }

/* x in every lane: a scalar meets a vector lane by lane, and x - 0 is x, -0 included. */
static inline vf vset(f32 x) { return x - (vf){0}; }

static inline vf vfma(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps256(a, b, c); }

typedef u16 vh __attribute__((vector_size(16)));
typedef u16 vh_mem __attribute__((vector_size(16), aligned(2), may_alias));
typedef i16 vh_i16 __attribute__((vector_size(16)));

static inline vf vfrom_f16(vh h) { return __builtin_ia32_vcvtph2ps256((vh_i16)h); }

static inline vf vload_f16(const u16 *p) { return vfrom_f16(*(const vh_mem *)p); }

static inline i64 x_row(const struct matmul_args *a, i64 r) { return a->list ? a->list[r] : r; }

typedef i32 vi_mem __attribute__((vector_size(32), aligned(2), may_alias));
typedef i32 i32_mem __attribute__((aligned(4), may_alias));

/* Four weights of each of 8 rows; four activations into every lane (less 0 in each, which spreads a scalar). */
static inline vi load_w(const u8 *p) { return *(const vi_mem *)p; }
static inline vi load_x(const i8 *p) { return *(const i32_mem *)p - (vi){0}; }

typedef char v_i8 __attribute__((vector_size(32)));
typedef i16 v_i16 __attribute__((vector_size(32)));

/* acc + four products a lane: |w| is unsigned, x takes the sign of w. 128 * 127 twice fits 16 bits. */
static inline vi vdot4(vi acc, vi w, vi x)
{
    v_i8 abs = __builtin_ia32_pabsb256((v_i8)w), sign = __builtin_ia32_psignb256((v_i8)x, (v_i8)w);
    return acc + __builtin_ia32_pmaddwd256(__builtin_ia32_pmaddubsw256(abs, sign), (v_i16){0} + 1);
}

/* 16 rows of w from j by 4 rows of x from r. */
static void tile_1x4(const struct matmul_args *a, const u8 *w, i64 j, i64 r)
{
    w += j * 1088;
    i64 row0 = x_row(a, r);
    const i8 *q0 = a->a.q + row0 * 1024;
    const f32 *d0 = a->a.d + row0 * 32;
    i64 row1 = x_row(a, r + 1);
    const i8 *q1 = a->a.q + row1 * 1024;
    const f32 *d1 = a->a.d + row1 * 32;
    i64 row2 = x_row(a, r + 2);
    const i8 *q2 = a->a.q + row2 * 1024;
    const f32 *d2 = a->a.d + row2 * 32;
    i64 row3 = x_row(a, r + 3);
    const i8 *q3 = a->a.q + row3 * 1024;
    const f32 *d3 = a->a.d + row3 * 32;
    vf acc0_0 = {0}, acc1_0 = {0};
    vf acc0_1 = {0}, acc1_1 = {0};
    vf acc0_2 = {0}, acc1_2 = {0};
    vf acc0_3 = {0}, acc1_3 = {0};
    for (i64 b = 0; b < 32; b++, w += 544) {
        vi dot0_0 = {0}, dot1_0 = {0};
        vi dot0_1 = {0}, dot1_1 = {0};
        vi dot0_2 = {0}, dot1_2 = {0};
        vi dot0_3 = {0}, dot1_3 = {0};
#pragma GCC unroll 2
        for (int four = 0; four < 8; four++) {
            vi w0 = load_w(w + 32 + 64 * four);
            vi w1 = load_w(w + 64 + 64 * four);
            vi x0 = load_x(q0 + 32 * b + 4 * four);
            dot0_0 = vdot4(dot0_0, w0, x0);
            dot1_0 = vdot4(dot1_0, w1, x0);
            vi x1 = load_x(q1 + 32 * b + 4 * four);
            dot0_1 = vdot4(dot0_1, w0, x1);
            dot1_1 = vdot4(dot1_1, w1, x1);
            vi x2 = load_x(q2 + 32 * b + 4 * four);
            dot0_2 = vdot4(dot0_2, w0, x2);
            dot1_2 = vdot4(dot1_2, w1, x2);
            vi x3 = load_x(q3 + 32 * b + 4 * four);
            dot0_3 = vdot4(dot0_3, w0, x3);
            dot1_3 = vdot4(dot1_3, w1, x3);
        }
        vf dw0 = vload_f16((const u16 *)w);
        vf dw1 = vload_f16((const u16 *)(w + 16));
        acc0_0 = vfma(__builtin_convertvector(dot0_0, vf) * dw0, vset(d0[b]), acc0_0);
        acc1_0 = vfma(__builtin_convertvector(dot1_0, vf) * dw1, vset(d0[b]), acc1_0);
        acc0_1 = vfma(__builtin_convertvector(dot0_1, vf) * dw0, vset(d1[b]), acc0_1);
        acc1_1 = vfma(__builtin_convertvector(dot1_1, vf) * dw1, vset(d1[b]), acc1_1);
        acc0_2 = vfma(__builtin_convertvector(dot0_2, vf) * dw0, vset(d2[b]), acc0_2);
        acc1_2 = vfma(__builtin_convertvector(dot1_2, vf) * dw1, vset(d2[b]), acc1_2);
        acc0_3 = vfma(__builtin_convertvector(dot0_3, vf) * dw0, vset(d3[b]), acc0_3);
        acc1_3 = vfma(__builtin_convertvector(dot1_3, vf) * dw1, vset(d3[b]), acc1_3);
    }
    f32 *y0 = a->y + r * a->y_stride + j;
    vstore(y0, vload(y0) + acc0_0);
    vstore(y0 + 8, vload(y0 + 8) + acc1_0);
    f32 *y1 = a->y + (r + 1) * a->y_stride + j;
    vstore(y1, vload(y1) + acc0_1);
    vstore(y1 + 8, vload(y1 + 8) + acc1_1);
    f32 *y2 = a->y + (r + 2) * a->y_stride + j;
    vstore(y2, vload(y2) + acc0_2);
    vstore(y2 + 8, vload(y2 + 8) + acc1_2);
    f32 *y3 = a->y + (r + 3) * a->y_stride + j;
    vstore(y3, vload(y3) + acc0_3);
    vstore(y3 + 8, vload(y3 + 8) + acc1_3);
}

/* 16 rows of w from j by 2 rows of x from r. */
static void tile_1x2(const struct matmul_args *a, const u8 *w, i64 j, i64 r)
{
    w += j * 1088;
    i64 row0 = x_row(a, r);
    const i8 *q0 = a->a.q + row0 * 1024;
    const f32 *d0 = a->a.d + row0 * 32;
    i64 row1 = x_row(a, r + 1);
    const i8 *q1 = a->a.q + row1 * 1024;
    const f32 *d1 = a->a.d + row1 * 32;
    vf acc0_0 = {0}, acc1_0 = {0};
    vf acc0_1 = {0}, acc1_1 = {0};
    for (i64 b = 0; b < 32; b++, w += 544) {
        vi dot0_0 = {0}, dot1_0 = {0};
        vi dot0_1 = {0}, dot1_1 = {0};
#pragma GCC unroll 2
        for (int four = 0; four < 8; four++) {
            vi w0 = load_w(w + 32 + 64 * four);
            vi w1 = load_w(w + 64 + 64 * four);
            vi x0 = load_x(q0 + 32 * b + 4 * four);
            dot0_0 = vdot4(dot0_0, w0, x0);
            dot1_0 = vdot4(dot1_0, w1, x0);
            vi x1 = load_x(q1 + 32 * b + 4 * four);
            dot0_1 = vdot4(dot0_1, w0, x1);
            dot1_1 = vdot4(dot1_1, w1, x1);
        }
        vf dw0 = vload_f16((const u16 *)w);
        vf dw1 = vload_f16((const u16 *)(w + 16));
        acc0_0 = vfma(__builtin_convertvector(dot0_0, vf) * dw0, vset(d0[b]), acc0_0);
        acc1_0 = vfma(__builtin_convertvector(dot1_0, vf) * dw1, vset(d0[b]), acc1_0);
        acc0_1 = vfma(__builtin_convertvector(dot0_1, vf) * dw0, vset(d1[b]), acc0_1);
        acc1_1 = vfma(__builtin_convertvector(dot1_1, vf) * dw1, vset(d1[b]), acc1_1);
    }
    f32 *y0 = a->y + r * a->y_stride + j;
    vstore(y0, vload(y0) + acc0_0);
    vstore(y0 + 8, vload(y0 + 8) + acc1_0);
    f32 *y1 = a->y + (r + 1) * a->y_stride + j;
    vstore(y1, vload(y1) + acc0_1);
    vstore(y1 + 8, vload(y1 + 8) + acc1_1);
}

/* 16 rows of w from j by 1 row of x from r. */
static void tile_1x1(const struct matmul_args *a, const u8 *w, i64 j, i64 r)
{
    w += j * 1088;
    i64 row0 = x_row(a, r);
    const i8 *q0 = a->a.q + row0 * 1024;
    const f32 *d0 = a->a.d + row0 * 32;
    vf acc0_0 = {0}, acc1_0 = {0};
    for (i64 b = 0; b < 32; b++, w += 544) {
        vi dot0_0 = {0}, dot1_0 = {0};
#pragma GCC unroll 2
        for (int four = 0; four < 8; four++) {
            vi w0 = load_w(w + 32 + 64 * four);
            vi w1 = load_w(w + 64 + 64 * four);
            vi x0 = load_x(q0 + 32 * b + 4 * four);
            dot0_0 = vdot4(dot0_0, w0, x0);
            dot1_0 = vdot4(dot1_0, w1, x0);
        }
        vf dw0 = vload_f16((const u16 *)w);
        vf dw1 = vload_f16((const u16 *)(w + 16));
        acc0_0 = vfma(__builtin_convertvector(dot0_0, vf) * dw0, vset(d0[b]), acc0_0);
        acc1_0 = vfma(__builtin_convertvector(dot1_0, vf) * dw1, vset(d0[b]), acc1_0);
    }
    f32 *y0 = a->y + r * a->y_stride + j;
    vstore(y0, vload(y0) + acc0_0);
    vstore(y0 + 8, vload(y0 + 8) + acc1_0);
}

/* 16 rows of w from j by rows [r, stop) of x. */
static void pass_1(const struct matmul_args *a, const u8 *w, i64 j, i64 r, i64 stop)
{
    for (; stop - r >= 4; r += 4) tile_1x4(a, w, j, r);
    for (; stop - r >= 2; r += 2) tile_1x2(a, w, j, r);
    for (; stop - r >= 1; r += 1) tile_1x1(a, w, j, r);
}

void matmul_q8_0_q8_r16_n3584_k1024_add_avx2_hw_tm1_tn4_chunk(const struct matmul_args *a, struct team *t)
{
    const u8 *w = (const u8 *)a->w + (a->w_offset ? *a->w_offset : 0);
    i64 rows = *a->n_rows, slabs = 1, begin, end;
    /* Little of w for a large team: rows of x are split too. */
    while (224 * slabs < 4 * t->parts && 16 * slabs < rows) slabs *= 2;
    i64 slab = (rows + 4 * slabs - 1) / (4 * slabs) * 4;
    team_share(t, 224 * slabs, 1, &begin, &end);
    for (i64 i = begin; i < end; i++) {
        i64 j = i / slabs * 16, last = j + 16 < 3584 ? j + 16 : 3584;
        i64 r = i % slabs * slab, stop = r + slab < rows ? r + slab : rows;
        for (; j + 16 <= last; j += 16) pass_1(a, w, j, r, stop);
    }
}
