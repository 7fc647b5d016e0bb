/* swiglu: case and truth. Gates reach to where silu is 0 and where it is the identity. */
#include "templates/ref.h"
#include "args.h"
#include <math.h>

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct swiglu_args *a = args;
    size_t n = (size_t)size->rows * (size_t)shape_int(s, "n", 0);
    i32 *n_rows = ref_buf(c, "n_rows", REF_IN, REF_I32, 1, 0);
    f32 *gate = ref_buf(c, "gate", REF_IN, REF_F32, n, 0), *up = ref_buf(c, "up", REF_IN, REF_F32, n, 0);
    *n_rows = size->rows;
    for (size_t i = 0; i < n; i++) gate[i] = (f32)(i % 13 ? 3 * ref_normal(&seed) : ref_uniform(&seed, -120, 120));
    ref_fill_f32(up, n, &seed, 2);
    *a = (struct swiglu_args){.n_rows = n_rows, .gate = gate, .up = up};
    if (!shape_is(s, "out", "q8")) a->y = ref_buf(c, "y", REF_OUT, REF_F32, n, 5e-7);
    if (!shape_is(s, "out", "f32")) a->q = ref_out_q8(c, 1, (int)n, 0);
    return 0;
}

static f32 truth(f32 gate, f32 up) { return (f32)(gate / (1 + exp(-(double)gate)) * up); }

static void run(const void *args, const struct q_shape *s)
{
    const struct swiglu_args *a = args;
    size_t n = (size_t)*a->n_rows * (size_t)shape_int(s, "n", 0);
    for (size_t i = 0; a->y && i < n; i++) a->y[i] = truth(a->gate[i], a->up[i]);
    for (size_t b = 0; a->q.q && b < n / Q8_BLOCK; b++) {
        f32 v[Q8_BLOCK];
        for (size_t i = 0; i < Q8_BLOCK; i++) v[i] = truth(a->gate[b * Q8_BLOCK + i], a->up[b * Q8_BLOCK + i]);
        ref_quant_block(v, &a->q, b);
    }
}

const struct op_ref ref_swiglu = {"swiglu", sizeof(struct swiglu_args), make, run};
