/* gated_norm: y[r][h] = o[r][h] * w / sqrt(mean(o[r][h]^2) + eps) * silu(z[r][h]).  shape: heads, dim */
#ifndef GATED_NORM_ARGS_H
#define GATED_NORM_ARGS_H
struct gated_norm_args {
    const i32 *n_rows;
    const f32 *o, *z;      /* [n_rows][heads][dim] */
    const f32 *w;          /* [dim] */
    f32 eps;
    f32 *y;                /* [n_rows][heads][dim] */
};
#endif
