/* gdn_prep_k_heads16_v_heads16_dim128_avx2_hw: per row, q and k of every key head get unit length, q also times 1/sqrt(128),
 *     and each value head its gates:
 *     x <- x / sqrt(sum x^2 + 1e-6);  g = a * softplus(alpha + dt), softplus(x) = x > 20 ? x : log(1 + e^x);  b = sigmoid(beta)
 *   c: [n_rows][6144] fp32, 16 heads of q, 16 of k, then 16 of v (untouched), 128 each; in place
 *   alpha, beta, g, b: [n_rows][16]; a, dt: [16]
 *   part p of the team owns the p-th run of (row, key head) pairs and of (row, 8 gates) pairs
 *   the sum: 32 strided partials, folded by halves
 *   moves 33024 bytes a row: bound by memory beyond the caches
 *   caller: n_rows >= 0, no two buffers overlap
 * made by: quarry-gen gdn_prep --shape k_heads=16,v_heads=16,dim=128 --params isa=avx2,fma=hw */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(32)));
typedef i32 vi __attribute__((vector_size(32)));
typedef f32 vf_mem __attribute__((vector_size(32), aligned(4), may_alias));

static inline vf vload(const f32 *p) { return *(const vf_mem *)p; }
static inline void vstore(f32 *p, vf v) { *(vf_mem *)p = v; }

/* x in every lane: a scalar meets a vector lane by lane, and x - 0 is x, -0 included. */
static inline vf vset(f32 x) { return x - (vf){0}; }

/* The same bits as integers and back. */
static inline vi vbits(vf v) { union { vf f; vi i; } u = {.f = v}; return u.i; }
static inline vf vfloat(vi v) { union { vi i; vf f; } u = {.i = v}; return u.f; }

/* Masks: all bits of a lane set where true. */
static inline vi vless(vf a, vf b) { return a < b; }
static inline vf vselect(vi mask, vf yes, vf no) { return vfloat((mask & vbits(yes)) | (~mask & vbits(no))); }
static inline vf vminf(vf a, vf b) { return __builtin_ia32_minps256(a, b); }

static inline vf vfma(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps256(a, b, c); }

typedef f32 vf4 __attribute__((vector_size(16)));

/* Lanes folded by halves: 4 + i onto i, and so on. */
static inline f32 vsum(vf v)
{
    vf4 v4 = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    return (v4[0] + v4[2]) + (v4[1] + v4[3]);
}

/* e^x = 2^k e^r, k = round(x / ln 2), |r| <= ln(2) / 2; ln 2 in two parts, so that r is exact to its last bits; e^r by a
 * polynomial of degree 6 (error 3e-9). Below -87.33 the result is 0, above 88.72 infinite; NaN stays NaN. */
static inline vf vexp(vf x)
{
    vf t = vfma(x, vset(1.44269502f), vset(12582912.0f));
    vf k = t - 12582912.0f;
    vf r = vfma(k, vset(-0.693359375f), x);
    r = vfma(k, vset(0.000212194442f), r);
    vf p = vset(0.00138143206f);
    p = vfma(p, r, vset(0.00836885069f));
    p = vfma(p, r, vset(0.0416684002f));
    p = vfma(p, r, vset(0.166665196f));
    p = vfma(p, r, vset(0.49999994f));
    p = vfma(p * r, r, r) + 1.0f;
    vf y = vfloat(vbits(p) + (vbits(t) << 23));
    y = vselect(vless(x, vset(-87.33f)), vset(0), y);
    return vselect(vless(vset(88.72f), x), vset(__builtin_inff()), y);
}

static inline vf vsigmoid(vf x) { return 1.0f / (1.0f + vexp(-x)); }

/* Sum of a[i]^2, n a multiple of 32: 32 partial sums p[i % 32], each in ascending order, folded by halves 16, 8, 4, 2, 1. */
static inline f32 vsumsq32(const f32 *a, int n)
{
    vf p0 = {0}, p1 = {0}, p2 = {0}, p3 = {0};
    for (int i = 0; i < n; i += 32) {
        vf a0 = vload(a + i);
        p0 = vfma(a0, a0, p0);
        vf a1 = vload(a + i + 8);
        p1 = vfma(a1, a1, p1);
        vf a2 = vload(a + i + 16);
        p2 = vfma(a2, a2, p2);
        vf a3 = vload(a + i + 24);
        p3 = vfma(a3, a3, p3);
    }
    p0 += p2;
    p1 += p3;
    return vsum(p0 + p1);
}

/* log(1 + e) for e >= 0, error below 2 ulp. u = 1 + e loses (e - (u - 1)), which is worth that much over u in the logarithm.
 * u = 2^k (1 + f) with f in [-0.293, 0.415), and log(1 + f) = f - (f^2/2 - s (f^2/2 + s^2 p(s^2))), s = f / (2 + f): the
 * leading term stays exact. */
static inline vf vlog1p(vf e)
{
    vf u = e + 1.0f;
    vi k = (vbits(u) - 0x3F3504F3) >> 23;
    vf f = vfloat(vbits(u) - (k << 23)) - 1.0f;
    vf lost = (e - (u - 1.0f)) / u;
    vf s = f / (f + 2.0f), z = s * s;
    vf p = vfma(vset(0.24279078f), z, vset(0.28498787f));
    p = vfma(p, z, vset(0.40000972f));
    p = vfma(p, z, vset(0.66666663f));
    vf half = 0.5f * f * f;
    vf small = vfma(s, vfma(p, z, half), lost);
    vf kf = __builtin_convertvector(k, vf);
    small = vfma(kf, vset(9.0580006e-6f), small);
    return vfma(kf, vset(0.69313812f), f - (half - small));
}

static inline vf vsoftplus(vf x)
{
    vf y = vlog1p(vexp(vminf(x, vset(20.0f))));
    return vselect(vless(vset(20.0f), x), x, y);
}

/* One head of q or k to length `scale`. */
static inline void unit_length(f32 *x, f32 scale)
{
    f32 inv = scale / __builtin_sqrtf(vsumsq32(x, 128) + 1e-6f);
    for (int i = 0; i < 128; i += 8) vstore(x + i, vload(x + i) * inv);
}

/* The gates of heads h .. h+7 of a row; i = row * 16 + h. */
static inline void gates_8(const struct gdn_prep_args *a, i64 i, i64 h)
{
    vf x = vload(a->alpha + i) + vload(a->dt + h);
    vstore(a->g + i, vload(a->a + h) * vsoftplus(x));
    vstore(a->b + i, vsigmoid(vload(a->beta + i)));
}

void gdn_prep_k_heads16_v_heads16_dim128_avx2_hw(const struct gdn_prep_args *a, struct team *t)
{
    i64 i, end;
    team_share(t, (i64)*a->n_rows * 32, 1, &i, &end);
    for (; i < end; i++) {
        i64 row = i / 32, head = i % 32;
        unit_length(a->c + row * 6144 + head * 128, head < 16 ? 0.0883883476f : 1.0f);
    }
    team_share(t, (i64)*a->n_rows * 2, 1, &i, &end);
    for (; i < end; i++) {
        i64 row = i / 2, h = i % 2 * 8;
        gates_8(a, row * 16 + h, h);
    }
}
