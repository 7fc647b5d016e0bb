/* qk_rope_heads8_kv_heads2_head_dim256_pairs32_avx2_hw: rmsnorm of each query and key head, then rotation of the pairs
 *     (i, i + 32) of its first 64 values.
 *   qg: [n_rows][8][512], the query is the first half; q: [n_rows][8][256]
 *   k: [n_rows][2][256], in place; cs: [n_rows][32][2]; wq, wk: [256]
 *   part p of the team owns the p-th run of the n_rows * 10 heads
 *   moves 20736 bytes a row (each value in and out once); bound by the cache it comes from
 *   sum of squares by 32 strided partials and a pairwise tree
 * made by: quarry-gen qk_rope --shape heads=8,kv_heads=2,head_dim=256,pairs=32 --params isa=avx2,fma=hw */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(32)));
typedef i32 vi __attribute__((vector_size(32)));
typedef f32 vf_mem __attribute__((vector_size(32), aligned(4), may_alias));

static inline vf vload(const f32 *p) { return *(const vf_mem *)p; }

/* The first n lanes, 0 <= n <= 8; the rest reads as 0 and is not written. */
static inline vi vlanes(int n) { return (vi){0, 1, 2, 3, 4, 5, 6, 7} < n; }
static inline vf vload_n(const f32 *p, int n) { return __builtin_ia32_maskloadps256((const vf *)p, vlanes(n)); }

static inline vf vfma(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps256(a, b, c); }

typedef f32 vf4 __attribute__((vector_size(16)));

/* Lanes folded by halves: 4 + i onto i, and so on. */
static inline f32 vsum(vf v)
{
    vf4 v4 = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    return (v4[0] + v4[2]) + (v4[1] + v4[3]);
}

/* Sum of a[i]^2: 32 partial sums p[i % 32], each in ascending order, folded by halves 16, 8, 4, 2, 1. */
static inline f32 vsumsq32(const f32 *a, int n)
{
    vf p0 = {0}, p1 = {0}, p2 = {0}, p3 = {0};
    int i = 0;
    for (; i + 32 <= n; i += 32) {
        vf a0 = vload(a + i);
        p0 = vfma(a0, a0, p0);
        vf a1 = vload(a + i + 8);
        p1 = vfma(a1, a1, p1);
        vf a2 = vload(a + i + 16);
        p2 = vfma(a2, a2, p2);
        vf a3 = vload(a + i + 24);
        p3 = vfma(a3, a3, p3);
    }
    if (n - i > 0) {
        int left = n - i < 8 ? n - i : 8;
        vf a0 = vload_n(a + i, left);
        p0 = vfma(a0, a0, p0);
    }
    if (n - i - 8 > 0) {
        int left = n - i - 8 < 8 ? n - i - 8 : 8;
        vf a1 = vload_n(a + i + 8, left);
        p1 = vfma(a1, a1, p1);
    }
    if (n - i - 16 > 0) {
        int left = n - i - 16 < 8 ? n - i - 16 : 8;
        vf a2 = vload_n(a + i + 16, left);
        p2 = vfma(a2, a2, p2);
    }
    if (n - i - 24 > 0) {
        int left = n - i - 24 < 8 ? n - i - 24 : 8;
        vf a3 = vload_n(a + i + 24, left);
        p3 = vfma(a3, a3, p3);
    }
    p0 += p2;
    p1 += p3;
    return vsum(p0 + p1);
}

/* cos and sin of a row's pairs, apart, so that the loop over pairs is one of vectors. */
struct angles {
    f32 cos[32], sin[32];
};

static void split(struct angles *angle, const f32 *cs)
{
    for (int i = 0; i < 32; i++) {
        angle->cos[i] = cs[2 * i];
        angle->sin[i] = cs[2 * i + 1];
    }
}

/* One head, x to y; they may be the same. The products are rounded before they are added, on every path. */
static void norm_turn(const f32 *x, f32 *y, const f32 *w, f32 eps, const struct angles *angle)
{
    f32 unit[256], inv = 1 / __builtin_sqrtf(vsumsq32(x, 256) / 256 + eps);
    for (int i = 0; i < 256; i++) unit[i] = x[i] * inv * w[i];
    for (int i = 0; i < 32; i++) {
        f32 lo = unit[i], hi = unit[i + 32], c = angle->cos[i], s = angle->sin[i];
        y[i] = lo * c - hi * s;
        y[i + 32] = lo * s + hi * c;
    }
    for (int i = 64; i < 256; i++) y[i] = unit[i];
}

void qk_rope_heads8_kv_heads2_head_dim256_pairs32_avx2_hw(const struct qk_rope_args *a, struct team *t)
{
    struct angles angle;
    i64 begin, end, row = -1;
    team_share(t, (i64)a->step->n_rows * 10, 1, &begin, &end);
    for (i64 i = begin; i < end; i++) {
        i64 r = i / 10, h = i % 10;
        if (r != row) split(&angle, a->cs + r * 64);
        row = r;
        f32 *k = a->k + (r * 2 + h - 8) * 256;
        if (h < 8) norm_turn(a->qg + (r * 8 + h) * 512, a->q + (r * 8 + h) * 256, a->wq, a->eps, &angle);
        else norm_turn(k, k, a->wk, a->eps, &angle);
    }
}
