/* rope_table: cs[r][i] = (cos, sin) of the fp32 product (float)p * freq[i], for the pairs i of the rotated part.
 * p is the row's t, h or w position by interleaved sections (s0, s1, s2): h if i % 3 == 1 and i < 3*s1, w if i % 3 == 2 and i < 3*s2, else t.
 * shape: pairs = rope_dims/2, s0, s1, s2.  Positions below 2^24. cos and sin are right to 1 ulp of fp32. */
#ifndef ROPE_TABLE_ARGS_H
#define ROPE_TABLE_ARGS_H
struct rope_table_args {
    const struct step *step;
    const f32 *freq;       /* [pairs] base^(-2i/rope_dims) */
    f32 scale;             /* multiplies cos and sin (YaRN's attention factor); 1 */
    f32 *cs;               /* [n_rows][pairs][2] */
};
#endif
