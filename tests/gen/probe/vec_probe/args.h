/* vec_probe: one part of vec.c.in at work on arrays, so that op_check can hold it against its meaning.  shape: part */
#ifndef VEC_PROBE_ARGS_H
#define VEC_PROBE_ARGS_H
struct vec_probe_args {
    const i32 *n;
    const f32 *x, *z;      /* [n] */
    const u16 *h;          /* [n] */
    f32 *y;                /* [n] */
    u16 *g;                /* [n] */
};
#endif
