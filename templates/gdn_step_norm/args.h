/* gdn_step_norm: gdn_step and gated_norm in one, for steps of few rows on a card: a head's recurrence, then its normed and gated output
 * y[r][h] = o[r][h] * w / sqrt(mean(o[r][h]^2) + eps) * silu(z[r][h]), as fp32, as int8 blocks, or both.
 * shape: k_heads, v_heads, dim, group = tiled | grouped, out = f32 | q8 | both (q8: dim % 32 == 0) */
#ifndef GDN_STEP_NORM_ARGS_H
#define GDN_STEP_NORM_ARGS_H
struct gdn_step_norm_args {
    const struct step *step;
    const f32 *c;          /* [n_rows][2*k_heads*dim + v_heads*dim]: q, k (after gdn_prep), v */
    const f32 *g, *b;      /* [n_rows][v_heads] */
    f32 *state;            /* [slots][v_heads][dim k][dim v] */
    const f32 *z;          /* [n_rows][v_heads][dim] */
    const f32 *w;          /* [dim] */
    f32 eps;
    f32 *y;                /* [n_rows][v_heads][dim] */
    struct act_q8 q;       /* [n_rows][v_heads * dim] */
};
#endif
