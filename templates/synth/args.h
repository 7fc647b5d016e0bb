/* synth: the made-up weights of a tensor, bit for bit those of runtime/model_synth.c: matrices as hashed bytes times a block's scale, vectors
 * uniform in [from, to).  shape: type, layout (rows, planes), n, k, kind = matrix | vector */
#ifndef SYNTH_ARGS_H
#define SYNTH_ARGS_H
struct synth_args {
    void *dst;             /* [n][k] in `layout` */
    i64 row0, n_rows;      /* planes: the tensor is rows [row0, row0 + n_rows) of it; other layouts: 0, n */
    u64 seed;              /* of the tensor's name */
    f32 std;               /* matrix: deviation of the values */
    f64 from, to;          /* vector */
};
#endif
