/* rmsnorm_n1024_both_avx2_hw: y[r] = x * w / sqrt(mean(x^2) + eps), where x is row list[r] of the input, or row r without a list.
 *   x: [.][1024] fp32, w: [1024] fp32, y: [n_rows][1024] fp32
 *   q: int8 [n_rows][1024], d (scale) and s (sum): [n_rows][32], blocks of 32
 *   part p of the team owns the p-th run of rows; the sum of squares: 32 strided partials, folded by halves
 *   moves 9472 bytes a row and w once, 4 operations a value: bound by memory beyond the caches
 *   caller: n_rows >= 0, x and outputs do not overlap unless y is x with no list
 * made by: quarry-gen rmsnorm --shape n=1024,out=both --params isa=avx2,fma=hw */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(32)));
typedef i32 vi __attribute__((vector_size(32)));
typedef f32 vf_mem __attribute__((vector_size(32), aligned(4), may_alias));

static inline vf vload(const f32 *p) { return *(const vf_mem *)p; }
static inline void vstore(f32 *p, vf v) { *(vf_mem *)p = v; }

/* The same bits as integers and back. */
static inline vi vbits(vf v) { union { vf f; vi i; } u = {.f = v}; return u.i; }
static inline vf vfloat(vi v) { union { vi i; vf f; } u = {.i = v}; return u.f; }
static inline vf vabs(vf v) { return vfloat(vbits(v) & 0x7FFFFFFF); }
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

void rmsnorm_n1024_both_avx2_hw(const struct rmsnorm_args *a, struct team *t)
{
    const f32 *w = a->w;
    i64 begin, end;
    team_share(t, *a->n_rows, 1, &begin, &end);
    for (i64 r = begin; r < end; r++) {
        const f32 *x = a->x + (a->list ? a->list[r] : r) * 1024;
        f32 scale = 1.0f / __builtin_sqrtf(vsumsq32(x, 1024) / 1024.0f + a->eps);
        f32 *y = a->y + r * 1024;
        i64 block = r * 32;
        for (int i = 0; i < 1024; i += 32, block++) {
            vf v[4];
            for (int j = 0; j < 4; j++) {
                v[j] = vload(x + i + j * 8) * scale * vload(w + i + j * 8);
                vstore(y + i + j * 8, v[j]);
            }
            vquant32(v, a->q.q + r * 1024 + i, a->q.d + block, a->q.s + block);
        }
    }
}
