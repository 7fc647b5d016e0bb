/* gated_norm: y[r][h] = o[r][h] * w / sqrt(mean(o[r][h]^2) + eps) * silu(z[r][h]); written as fp32, as int8 blocks, or both.
 * shape: heads, dim, out = f32 | q8 | both   (q8 needs dim % 32 == 0: no block reaches into the next head) */
#ifndef GATED_NORM_ARGS_H
#define GATED_NORM_ARGS_H
struct gated_norm_args {
    const i32 *n_rows;
    const f32 *o, *z;      /* [n_rows][heads][dim] */
    const f32 *w;          /* [dim] */
    f32 eps;
    f32 *y;                /* [n_rows][heads][dim] */
    struct act_q8 q;       /* [n_rows][heads * dim] */
};
#endif
