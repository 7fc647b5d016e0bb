/* quantize_n1024_avx512vnni: rows of 1024 fp32 to int8 blocks of 32: d = max|x| / 127, q = round(x * (127 / max|x|)),
 *     ties to even, s = sum of q.
 *   x: [n_rows][1024] fp32; q: int8 [n_rows][1024], d (scale) and s (sum): [n_rows][32]
 *   the blocks of all rows are one array; part p of the team owns the p-th run of them
 *   moves 5376 bytes a row, 4 operations a value: bound by memory beyond the caches
 *   caller: n_rows >= 0, values are finite
 * made by: quarry-gen quantize --shape n=1024 --params isa=avx512vnni */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(64)));
typedef i32 vi __attribute__((vector_size(64)));
typedef f32 vf_mem __attribute__((vector_size(64), aligned(4), may_alias));

static inline vf vload(const f32 *p) { return *(const vf_mem *)p; }

/* The same bits as integers and back. */
static inline vi vbits(vf v) { union { vf f; vi i; } u = {.f = v}; return u.i; }
static inline vf vfloat(vi v) { union { vi i; vf f; } u = {.i = v}; return u.f; }
static inline vf vabs(vf v) { return vfloat(vbits(v) & 0x7FFFFFFF); }

/* (u16)-1: all lanes; 4: the current rounding mode. */
static inline vf vmaxf(vf a, vf b) { return __builtin_ia32_maxps512_mask(a, b, a, (u16)-1, 4); }

/* Nearest integer, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves it in the low bits. */
static inline vi vround(vf x) { return vbits(x + 12582912.0f) - 0x4B400000; }

typedef f32 vf4 __attribute__((vector_size(16)));
typedef f32 vf8 __attribute__((vector_size(32)));
typedef i32 vi4 __attribute__((vector_size(16)));
typedef i32 vi8 __attribute__((vector_size(32)));

static inline f32 vhmax(vf v)
{
    vf8 v8 = __builtin_ia32_maxps256(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                                     __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
    vf4 v4 = __builtin_ia32_maxps(__builtin_shufflevector(v8, v8, 0, 1, 2, 3), __builtin_shufflevector(v8, v8, 4, 5, 6, 7));
    vf4 v2 = __builtin_ia32_maxps(v4, __builtin_shufflevector(v4, v4, 2, 3, 2, 3));
    return v2[0] > v2[1] ? v2[0] : v2[1];
}

typedef i8 vq16 __attribute__((vector_size(16)));
typedef i8 vq_mem __attribute__((vector_size(16), aligned(1), may_alias));

/* One block of 32 values to int8, as kernel.h defines it. Blocks too small for 127 / max to be finite count as zero. */
static inline void vquant32(const vf *v, i8 *q, f32 *d, i32 *s)
{
    vi k[2];
    f32 max = vhmax(vmaxf(vabs(v[0]), vabs(v[1])));
    f32 inv = max > 0x1p-120f ? 127.0f / max : 0;
    for (int i = 0; i < 2; i++) k[i] = vround(v[i] * inv);
    vi sum = k[0] + k[1];
    for (int i = 0; i < 2; i++) *(vq_mem *)(q + i * 16) = __builtin_convertvector(k[i], vq16);
    vi8 s8 = __builtin_shufflevector(sum, sum, 0, 1, 2, 3, 4, 5, 6, 7)
           + __builtin_shufflevector(sum, sum, 8, 9, 10, 11, 12, 13, 14, 15);
    vi4 s4 = __builtin_shufflevector(s8, s8, 0, 1, 2, 3) + __builtin_shufflevector(s8, s8, 4, 5, 6, 7);
    *s = s4[0] + s4[1] + s4[2] + s4[3];
    *d = inv > 0 ? max / 127.0f : 0;
}

void quantize_n1024_avx512vnni(const struct quantize_args *a, struct team *t)
{
    i64 begin, end;
    team_share(t, (i64)*a->n_rows * 32, 4, &begin, &end);
    for (i64 b = begin; b < end; b++) {
        const f32 *x = a->x + b * 32;
        vf v[2];
        for (int j = 0; j < 2; j++) v[j] = vload(x + j * 16);
        vquant32(v, a->q.q + b * 32, a->q.d + b, a->q.s + b);
    }
}
