/* gated_norm: case and truth. The first head is tiny (eps decides). */
#include "templates/ref.h"
#include "args.h"
#include <math.h>

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    size_t dim = (size_t)shape_int(s, "dim", 0), n = (size_t)size->rows * (size_t)shape_int(s, "heads", 0) * dim;
    i32 *n_rows = ref_buf(c, "n_rows", REF_IN, REF_I32, 1, 0);
    f32 *o = ref_buf(c, "o", REF_IN, REF_F32, n, 0), *z = ref_buf(c, "z", REF_IN, REF_F32, n, 0);
    f32 *w = ref_buf(c, "w", REF_IN, REF_F32, dim, 0);
    *n_rows = size->rows;
    ref_fill_f32(o, n, &seed, 0.3);
    ref_fill_f32(z, n, &seed, 4);
    for (size_t i = 0; i < dim; i++) {
        o[i] *= 1e-4f;
        w[i] = (f32)ref_uniform(&seed, 0.2, 1.8);
    }
    struct gated_norm_args *a = args;
    *a = (struct gated_norm_args){.n_rows = n_rows, .o = o, .z = z, .w = w, .eps = 1e-6f};
    if (!shape_is(s, "out", "q8")) a->y = ref_buf(c, "y", REF_OUT, REF_F32, n, 1e-6);
    if (!shape_is(s, "out", "f32")) a->q = ref_out_q8(c, size->rows, (int)(n / (size_t)size->rows), 0);
    return 0;
}

/* Element i of head h. */
static f32 value(const struct gated_norm_args *a, size_t h, size_t dim, size_t i, double scale)
{
    double z = a->z[h * dim + i];
    return (f32)(a->o[h * dim + i] * scale * a->w[i] * z / (1 + exp(-z)));
}

static void run(const void *args, const struct q_shape *s)
{
    const struct gated_norm_args *a = args;
    size_t dim = (size_t)shape_int(s, "dim", 0), heads = (size_t)*a->n_rows * (size_t)shape_int(s, "heads", 0);
    for (size_t h = 0; h < heads; h++) {
        double sum = 0;
        for (size_t i = 0; i < dim; i++) sum += (double)a->o[h * dim + i] * a->o[h * dim + i];
        double scale = 1 / sqrt(sum / (double)dim + a->eps);
        for (size_t i = 0; a->y && i < dim; i++) a->y[h * dim + i] = value(a, h, dim, i, scale);
        for (size_t b = 0; a->q.q && b < dim / Q8_BLOCK; b++) {
            f32 v[Q8_BLOCK];
            for (size_t i = 0; i < Q8_BLOCK; i++) v[i] = value(a, h, dim, b * Q8_BLOCK + i, scale);
            ref_quant_block(v, &a->q, h * (dim / Q8_BLOCK) + b);
        }
    }
}

const struct op_ref ref_gated_norm = {"gated_norm", sizeof(struct gated_norm_args), make, run};
