/* rope_table_pairs32_s011_s111_s210_avx2: cs[r][i] = scale * (cos, sin) of the fp32 angle (float)p * freq[i], 32 pairs a row.
 *   p is the row's t, h or w position: h for pairs 1, 4, .. below 33, w for pairs 2, 5, .. below 30, else t.
 *   pos: [n_rows][3]; freq: [32]; cs: [n_rows][32][2]
 *   part p of the team owns the p-th run of rows
 *   writes 256 bytes a row; bound by arithmetic, about 30 operations in double a pair
 *   caller: 0 <= pos < 2^24 and |freq| <= 1
 * made by: quarry-gen rope_table --shape pairs=32,s0=11,s1=11,s2=10 --params isa=avx2 */
#include "kernel.h"
#include "args.h"

/* pi/2 in two pieces: 29 bits, so that turns * HALF_PI_HI is exact up to 2^24 turns, and the rest. */
static const f64 HALF_PI_HI = 0x1.921fb54p+0, HALF_PI_LO = 0x1.10b4611a62633p-30;
static const f64 TURNS_PER_RADIAN = 0x1.45f306dc9c883p-1;

/* Adding and subtracting 1.5 * 2^52 rounds to an integer. */
static const f64 ROUND = 0x1.8p+52;

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

/* (cos, sin) of an angle: the rest after whole quarter turns, then the quarter says which of the two and with which sign. */
static inline void rotate(f32 angle, f32 scale, f32 *cs)
{
    f64 turns = ((f64)angle * TURNS_PER_RADIAN + ROUND) - ROUND;
    f64 rest = ((f64)angle - turns * HALF_PI_HI) - turns * HALF_PI_LO;
    f64 s = sin_near_zero(rest), c = cos_near_zero(rest);
    i32 quarter = (i32)turns;
    f64 cosine = quarter & 1 ? s : c, sine = quarter & 1 ? c : s;
    cs[0] = (f32)(((quarter + 1) & 2 ? -cosine : cosine) * scale);
    cs[1] = (f32)((quarter & 2 ? -sine : sine) * scale);
}

void rope_table_pairs32_s011_s111_s210_avx2(const struct rope_table_args *a, struct team *t)
{
    static const u8 position[32] = {
        0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1,
    };
    i64 begin, end;
    team_share(t, a->step->n_rows, 1, &begin, &end);
    for (i64 r = begin; r < end; r++) {
        const i32 *pos = a->step->pos + r * 3;
        for (int i = 0; i < 32; i++) rotate((f32)pos[position[i]] * a->freq[i], a->scale, a->cs + (r * 32 + i) * 2);
    }
}
