/* swiglu: y = silu(gate) * up, written as fp32, as int8 blocks, or both.  shape: n, out = f32 | q8 | both (q8: n % 32 == 0) */
#ifndef SWIGLU_ARGS_H
#define SWIGLU_ARGS_H
struct swiglu_args {
    const i32 *n_rows;
    const f32 *gate, *up;  /* [n_rows][n] */
    f32 *y;                /* [n_rows][n] */
    struct act_q8 q;       /* [n_rows][n] */
};
#endif
