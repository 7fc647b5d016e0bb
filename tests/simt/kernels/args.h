/* What every kernel of this folder is given. */
#ifndef SIMT_TEST_ARGS_H
#define SIMT_TEST_ARGS_H
struct test_args {
    const f32 *x;          /* [256] x[i] = i */
    f32 *y;                /* [256] out: x[i] + 1, or what the test says */
    u32 *work;             /* [10240] zeros */
    const i32 *a, *b;      /* [1024] each: small numbers for matrix.cu */
};
#endif
