/* rope_table_pairs32_s011_s111_s210_threads64: cs[r][i] = scale * (cos, sin) of the fp32 angle (float)p * freq[i],
 *     32 pairs a row.
 *   p is the row's t, h or w position: h for pairs 1, 4, .. below 33, w for pairs 2, 5, .. below 30, else t.
 *   pos: [n_rows][3]; freq: [32]; cs: [n_rows][32][2]
 *   block b owns rows b * 2 .. + 1, a thread a pair
 *   writes 256 bytes a row; bound by latency, about 30 operations in double a pair
 *   caller: at least n_rows / 2 blocks, 0 <= pos < 2^24 and |freq| <= 1
 * made by: quarry-gen rope_table --shape pairs=32,s0=11,s1=11,s2=10 --params threads=64 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

/* sin and cos of |x| <= pi/4 by their series; the first term left out is below 1e-11 of the value, fp32 needs 6e-8. */
static inline f64 sin_near_zero(f64 x)
{
    f64 z = x * x;
    return x + x * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 - z * (1.0 / 39916800)))));
}

static inline f64 cos_near_zero(f64 x)
{
    f64 z = x * x;
    return 1 + z * (-1.0 / 2 + z * (1.0 / 24 + z * (-1.0 / 720
             + z * (1.0 / 40320 - z * (1.0 / 3628800 - z * (1.0 / 479001600))))));
}

/* (cos, sin) of an angle: the rest after whole quarter turns, then the quarter says which of the two and with which sign.
 * Adding and subtracting 1.5 * 2^52 rounds to an integer. pi/2 comes in two pieces, the first of 29 bits:
 * turns times it is exact. */
static inline float2 rotation(f32 angle, f32 scale)
{
    f64 turns = ((f64)angle * 0x1.45f306dc9c883p-1 + 0x1.8p+52) - 0x1.8p+52;
    f64 rest = ((f64)angle - turns * 0x1.921fb54p+0) - turns * 0x1.10b4611a62633p-30;
    i32 quarter = (i32)turns;
    f64 s = sin_near_zero(rest), c = cos_near_zero(rest);
    f64 cosine = quarter & 1 ? s : c, sine = quarter & 1 ? c : s;
    return make_float2((f32)(((quarter + 1) & 2 ? -cosine : cosine) * scale), (f32)((quarter & 2 ? -sine : sine) * scale));
}

extern "C" __global__ void __launch_bounds__(64) rope_table_pairs32_s011_s111_s210_threads64(const struct rope_table_args a)
{
    pdl_launch();
    pdl_wait();
    const struct step *st = a.step;
    i64 r = (i64)blockIdx.x * 2 + threadIdx.x / 32;
    int i = threadIdx.x % 32;
    if (r >= st->n_rows) return;
    int axis = i % 3 == 1 && i < 33 ? 1 : i % 3 == 2 && i < 30 ? 2 : 0;
    ((float2 *)a.cs)[r * 32 + i] = rotation((f32)st->pos[r * 3 + axis] * a.freq[i], a.scale);
}
