/* kv_append: writes each row's K and V into its sequence's pages at kv[r].
 *
 * A page of one layer is [kv_heads] pieces, one a KV head: KV_PAGE tokens, first the codes of all of them, then the scales of all of them
 * (f16, none for f16 and f32). K is stored after rope. Page p, KV head j begins at byte (p * kv_heads + j) * kv_piece_bytes().
 *   f16, f32  the values
 *   q8        int8 [head_dim], a scale for 32 values: scale = f16(max|x| / 127), code = round-half-even(x * (127 / max|x|)); max|x| up to
 *             2^-120 counts as zero
 *   r4, r3    each run of W = kv_run() values is rotated: y = H (sign * x) / sqrt(W), with the Walsh-Hadamard matrix H in natural order and
 *             sign(i) = -1 where the top bit of (u32)(i * 0x9E3779B1u) is set, i within the run. In fp32: stages h = 1, 2, 4 .. W/2 of
 *             (a + b, a - b), then one multiplication. A scale a run; y ~ scale * L[code], L a codebook for the normal distribution:
 *               r3: magnitudes 13 40 71 114, in units of sigma / 53; code 0..7 ascending: 0 is -114, 3 is -13, 4 is 13, 7 is 114
 *               r4: magnitudes 6 18 31 44 58 75 96 127, in units of sigma / 46.5; code = sign << 3 | index of the magnitude
 *             |y|: 32 partial sums p[i % 32] of y * y, each product rounded and added ascending, folded by halves; then a square root
 *             code: the magnitude's index is how many midpoints m of neighbouring levels have |y_i| > m * unit, unit = |y| * kv_unit (one
 *             product each); negative only where y_i < 0
 *             scale = f16(|y| / |L|), |L| the root of the sum of the chosen magnitudes' squares; 0 where |y| < 2^-14 (codes as ever)
 *             r4: u32 [head_dim / 8], value j of 8 in bits 4j ..
 *             r3: u32 [head_dim / 32][3]: value 8b + j of 32 (b < 3) in bits 4j .. 4j + 2 of word b; bit b of value 24 + j is bit 4j + 3 of
 *             word b
 * A product scale * code is exact in fp32, so that every reader has the same value. All is defined in fp32 without fma: the same bits from
 * every kernel.
 * shape: kv_heads, head_dim, fk, fv = f16 | f32 | q8 | r4 | r3 (formats of K and V); formats with scales need head_dim % 32 == 0 */
#ifndef KV_APPEND_ARGS_H
#define KV_APPEND_ARGS_H
struct kv_append_args {
    const struct step *step;
    const f32 *k, *v;      /* [n_rows][kv_heads][head_dim] */
    void *pages_k, *pages_v;
};

enum kv_format { KV_F16, KV_F32, KV_Q8, KV_R4, KV_R3 };

/* Values that share a rotation, and a scale: the largest power of two that divides head_dim, at most 256. */
static inline int kv_run(int head_dim)
{
    int run = head_dim & -head_dim;
    return run < 256 ? run : 256;
}

/* Of one token of one KV head. */
static inline int kv_code_bytes(enum kv_format f, int head_dim)
{
    return f == KV_F32 ? 4 * head_dim : f == KV_F16 ? 2 * head_dim : f == KV_Q8 ? head_dim : f == KV_R4 ? head_dim / 2 : head_dim / 32 * 12;
}

static inline int kv_scales(enum kv_format f, int head_dim)
{
    return f == KV_F16 || f == KV_F32 ? 0 : f == KV_Q8 ? head_dim / 32 : head_dim / kv_run(head_dim);
}

/* A multiple of 64, given head_dim as the format needs it. */
static inline i64 kv_piece_bytes(enum kv_format f, int head_dim)
{
    return (i64)KV_PAGE * (kv_code_bytes(f, head_dim) + 2 * kv_scales(f, head_dim));
}
#endif
