/* gated_norm_heads16_dim128_q8_avx2_hw: y = o * w / sqrt(mean(o^2) + eps) * silu(z) in each head, silu(x) = x / (1 + e^-x).
 *   o, z: [n_rows][16][128] fp32, w: [128]
 *   q: int8 [n_rows][2048], d (scale) and s (sum): [n_rows][64], blocks of 32
 *   part p of the team owns the p-th run of heads; the sum of squares: 32 strided partials, folded by halves
 *   moves 18944 bytes a row, about 28 operations a value: bound by the exponential within the caches, by memory beyond
 *   caller: n_rows >= 0
 * made by: quarry-gen gated_norm --shape heads=16,dim=128,out=q8 --params isa=avx2,fma=hw */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(32)));
typedef i32 vi __attribute__((vector_size(32)));
typedef f32 vf_mem __attribute__((vector_size(32), aligned(4), may_alias));

static inline vf vload(const f32 *p) { return *(const vf_mem *)p; }

/* x in every lane: a scalar meets a vector lane by lane, and x - 0 is x, -0 included. */
static inline vf vset(f32 x) { return x - (vf){0}; }

/* The same bits as integers and back. */
static inline vi vbits(vf v) { union { vf f; vi i; } u = {.f = v}; return u.i; }
static inline vf vfloat(vi v) { union { vi i; vf f; } u = {.i = v}; return u.f; }
static inline vf vabs(vf v) { return vfloat(vbits(v) & 0x7FFFFFFF); }

/* Masks: all bits of a lane set where true. */
static inline vi vless(vf a, vf b) { return a < b; }
static inline vf vselect(vi mask, vf yes, vf no) { return vfloat((mask & vbits(yes)) | (~mask & vbits(no))); }
static inline vf vmaxf(vf a, vf b) { return __builtin_ia32_maxps256(a, b); }

/* Nearest integer, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves it in the low bits. */
static inline vi vround(vf x) { return vbits(x + 12582912.0f) - 0x4B400000; }

static inline vf vfma(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps256(a, b, c); }

typedef f32 vf4 __attribute__((vector_size(16)));
typedef i32 vi4 __attribute__((vector_size(16)));

/* Lanes folded by halves: 4 + i onto i, and so on. */
static inline f32 vsum(vf v)
{
    vf4 v4 = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    return (v4[0] + v4[2]) + (v4[1] + v4[3]);
}

static inline f32 vhmax(vf v)
{
    vf4 v4 = __builtin_ia32_maxps(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7));
    vf4 v2 = __builtin_ia32_maxps(v4, __builtin_shufflevector(v4, v4, 2, 3, 2, 3));
    return v2[0] > v2[1] ? v2[0] : v2[1];
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

static inline vf vsilu(vf x) { return x / (1.0f + vexp(-x)); }

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

typedef i16 vq16h __attribute__((vector_size(32)));
typedef i8 vq32 __attribute__((vector_size(32)));
typedef i8 vq_mem __attribute__((vector_size(32), aligned(1), may_alias));

/* Thirty-two ints within int8 to memory. Packing works in each half alone, so the four-byte groups are put in order after it. */
static inline void vstore_i8(i8 *q, const vi *k)
{
    vq16h low = __builtin_ia32_packssdw256(k[0], k[1]), high = __builtin_ia32_packssdw256(k[2], k[3]);
    vi packed = (vi)(vq32)__builtin_ia32_packsswb256(low, high);
    *(vq_mem *)q = (vq32)__builtin_shufflevector(packed, packed, 0, 4, 1, 5, 2, 6, 3, 7);
}

/* One block of 32 values to int8, as kernel.h defines it. Blocks too small for 127 / max to be finite count as zero. */
static inline void vquant32(const vf *v, i8 *q, f32 *d, i32 *s)
{
    vi k[4];
    vf m = vabs(v[0]);
    for (int i = 1; i < 4; i++) m = vmaxf(m, vabs(v[i]));
    f32 max = vhmax(m);
    f32 inv = max > 0x1p-120f ? 127.0f / max : 0;
    for (int i = 0; i < 4; i++) k[i] = vround(v[i] * inv);
    vi sum = k[0] + k[1] + k[2] + k[3];
    vstore_i8(q, k);
    vi4 s4 = __builtin_shufflevector(sum, sum, 0, 1, 2, 3) + __builtin_shufflevector(sum, sum, 4, 5, 6, 7);
    *s = s4[0] + s4[1] + s4[2] + s4[3];
    *d = inv > 0 ? max / 127.0f : 0;
}

void gated_norm_heads16_dim128_q8_avx2_hw(const struct gated_norm_args *a, struct team *t)
{
    const f32 *w = a->w;
    i64 begin, end;
    team_share(t, (i64)*a->n_rows * 16, 1, &begin, &end);
    for (i64 h = begin; h < end; h++) {
        const f32 *o = a->o + h * 128, *z = a->z + h * 128;
        f32 scale = 1.0f / __builtin_sqrtf(vsumsq32(o, 128) / 128.0f + a->eps);
        i64 block = h * 4;
        for (int i = 0; i < 128; i += 32, block++) {
            vf v[4];
            for (int j = 0; j < 4; j++) {
                int at = i + j * 8;
                v[j] = vload(o + at) * scale * vload(w + at) * vsilu(vload(z + at));
            }
            vquant32(v, a->q.q + block * 32, a->q.d + block, a->q.s + block);
        }
    }
}
