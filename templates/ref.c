/* Random numbers and half floats for the refs: plain, exact, independent of the code under test. */
#include "templates/ref.h"
#include <math.h>
#include <string.h>

unsigned long long ref_next(unsigned long long *seed)
{
    unsigned long long z = *seed += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

void ref_skip(unsigned long long *seed, unsigned long long draws) { *seed += draws * 0x9E3779B97F4A7C15ull; }

double ref_uniform(unsigned long long *seed, double lo, double hi)
{
    return lo + (hi - lo) * (double)(ref_next(seed) >> 11) * 0x1p-53;
}

double ref_normal(unsigned long long *seed)
{
    double u = ref_uniform(seed, 0x1p-53, 1), v = ref_uniform(seed, 0, 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

struct fill {
    f32 *p;
    unsigned long long seed;
    double scale;
};

static void fill_part(void *arg, i64 begin, i64 end)
{
    const struct fill *f = arg;
    unsigned long long seed = f->seed;
    ref_skip(&seed, (unsigned long long)begin * REF_NORMAL_DRAWS);
    for (i64 i = begin; i < end; i++) f->p[i] = (f32)(f->scale * ref_normal(&seed));
}

void ref_fill_f32(f32 *p, size_t n, unsigned long long *seed, double scale)
{
    ref_share((i64)n, 16384, fill_part, &(struct fill){ p, *seed, scale });
    ref_skip(seed, n * REF_NORMAL_DRAWS);
}

f32 ref_half_to_f32(u16 h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double sign = h & 0x8000 ? -1 : 1;
    if (exponent == 31) return mantissa ? NAN : (f32)(sign * INFINITY);
    if (exponent == 0) return (f32)(sign * mantissa * 0x1p-24);
    const union { u32 bits; f32 value; } power = { (u32)(exponent + 102) << 23 };   /* 2^(exponent - 25) */
    return (f32)(sign * (1024 + mantissa) * power.value);
}

/* Nearest, ties to even: scaled so that the half's last place is 1, rounded, put together. */
u16 ref_f32_to_half(f32 x)
{
    u16 sign = signbit(x) ? 0x8000 : 0;
    double a = fabs((double)x);
    int e;
    if (isnan(x)) return sign | 0x7E00;
    if (a >= 65520) return sign | 0x7C00;
    frexp(a, &e);
    if (a < 0x1p-14) e = -13;
    double units = nearbyint(ldexp(a, 11 - e));      /* 1024..2048, or less for subnormals */
    if (a < 0x1p-14) return sign | (u16)units;
    return sign | (u16)(((e + 13) << 10) + (int)units);
}

struct act_q8 ref_act_q8(struct ref_case *c, int rows, int k, unsigned long long *seed)
{
    size_t n = (size_t)rows * (size_t)k, blocks = n / Q8_BLOCK;
    struct act_q8 a = {ref_buf(c, "a.q", REF_IN, REF_I8, n, 0), ref_buf(c, "a.d", REF_IN, REF_F32, blocks, 0),
                       ref_buf(c, "a.s", REF_IN, REF_I32, blocks, 0)};
    for (size_t b = 0; b < blocks; b++) {
        a.s[b] = 0;
        a.d[b] = (f32)(ref_next(seed) % 16 == 0 ? 0 : ref_uniform(seed, 0.001, 0.05));
        for (size_t i = b * Q8_BLOCK; i < (b + 1) * Q8_BLOCK; i++) {
            a.q[i] = a.d[b] > 0 ? (i8)(ref_next(seed) % 255 - 127) : 0;
            a.s[b] += a.q[i];
        }
    }
    return a;
}

struct act_q8 ref_out_q8(struct ref_case *c, int rows, int k, int exact)
{
    size_t n = (size_t)rows * (size_t)k, blocks = n / Q8_BLOCK;
    return (struct act_q8){ref_buf(c, "q.q", REF_OUT, REF_I8, n, exact ? 0 : 1), ref_buf(c, "q.d", REF_OUT, REF_F32, blocks, exact ? 0 : 2e-6),
                           ref_buf(c, "q.s", REF_OUT, REF_I32, blocks, exact ? 0 : 3)};
}

void ref_quant_block(const f32 *v, const struct act_q8 *a, size_t block)
{
    f32 max = 0;
    for (int i = 0; i < Q8_BLOCK; i++) max = fabsf(v[i]) > max ? fabsf(v[i]) : max;
    f32 inv = max > 0x1p-120f ? 127 / max : 0;
    a->d[block] = inv > 0 ? max / 127 : 0;
    a->s[block] = 0;
    for (int i = 0; i < Q8_BLOCK; i++) {
        i8 q = (i8)rintf(v[i] * inv);
        a->q[block * Q8_BLOCK + (size_t)i] = q;
        a->s[block] += q;
    }
}
