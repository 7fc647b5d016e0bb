/* quantize: fp32 rows to int8 blocks of 32 (struct act_q8).  shape: n (n % 32 == 0) */
#ifndef QUANTIZE_ARGS_H
#define QUANTIZE_ARGS_H
struct quantize_args {
    const i32 *n_rows;
    const f32 *x;          /* [n_rows][n] */
    struct act_q8 q;
};
#endif
