/* rmsnorm: y[r] = x * w / sqrt(mean(x^2) + eps), x being row list[r] of the input, or row r without a list; written as fp32,
 * as int8 blocks, or both.
 * shape: n, out = f32 | q8 | both   (q8 needs n % 32 == 0) */
#ifndef RMSNORM_ARGS_H
#define RMSNORM_ARGS_H
struct rmsnorm_args {
    const i32 *n_rows;     /* device count of output rows */
    const i32 *list;       /* input row of each output row; NULL: the same */
    const f32 *x;          /* [.][n] */
    const f32 *w;          /* [n] */
    f32 eps;
    f32 *y;                /* [n_rows][n] */
    struct act_q8 q;       /* [n_rows][n] */
};
#endif
