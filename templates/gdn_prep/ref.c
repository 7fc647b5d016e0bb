/* The truth of gdn_prep, in double. alpha covers both ends of softplus, and some heads are all zero. */
#include "templates/ref.h"
#include "args.h"
#include <math.h>

static void fill_gates(struct gdn_prep_args *a, f32 *alpha, f32 *beta, f32 *decay, f32 *dt, size_t n, size_t heads, unsigned long long *seed)
{
    for (size_t i = 0; i < n; i++) {
        alpha[i] = (f32)ref_uniform(seed, -40, 40);
        beta[i] = (f32)ref_uniform(seed, -100, 100);
    }
    for (size_t h = 0; h < heads; h++) {
        decay[h] = (f32)-exp(ref_uniform(seed, -3, 3));
        dt[h] = (f32)ref_normal(seed);
    }
    a->alpha = alpha, a->beta = beta, a->a = decay, a->dt = dt;
}

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct gdn_prep_args *a = args;
    size_t kh = shape_int(s, "k_heads", 0), vh = shape_int(s, "v_heads", 0), dim = shape_int(s, "dim", 0);
    size_t rows = size->rows, width = (2 * kh + vh) * dim;
    i32 *n_rows = ref_buf(c, "n_rows", REF_IN, REF_I32, 1, 0);
    *n_rows = (i32)rows;
    a->n_rows = n_rows;
    a->c = ref_buf(c, "c", REF_INOUT, REF_F32, rows * width, 1e-6);
    ref_fill_f32(a->c, rows * width, &seed, 1);
    for (size_t i = 0; i < dim; i++) a->c[(rows / 2) * width + i] *= rows % 2 ? 0 : 1e-4f;  /* where eps counts */
    f32 *alpha = ref_buf(c, "alpha", REF_IN, REF_F32, rows * vh, 0), *beta = ref_buf(c, "beta", REF_IN, REF_F32, rows * vh, 0);
    f32 *decay = ref_buf(c, "a", REF_IN, REF_F32, vh, 0), *dt = ref_buf(c, "dt", REF_IN, REF_F32, vh, 0);
    fill_gates(a, alpha, beta, decay, dt, rows * vh, vh, &seed);
    a->g = ref_buf(c, "g", REF_OUT, REF_F32, rows * vh, 1e-6);
    a->b = ref_buf(c, "b", REF_OUT, REF_F32, rows * vh, 1e-6);
    return 0;
}

static void normalise(f32 *x, long dim, double scale)
{
    double sum = 0;
    for (long i = 0; i < dim; i++) sum += (double)x[i] * x[i];
    for (long i = 0; i < dim; i++) x[i] = (f32)(x[i] / sqrt(sum + 1e-6) * scale);
}

static void run(const void *args, const struct q_shape *s)
{
    const struct gdn_prep_args *a = args;
    long kh = shape_int(s, "k_heads", 0), vh = shape_int(s, "v_heads", 0), dim = shape_int(s, "dim", 0), width = (2 * kh + vh) * dim;
    for (long r = 0; r < *a->n_rows; r++) {
        for (long h = 0; h < 2 * kh; h++) normalise(a->c + r * width + h * dim, dim, h < kh ? 1 / sqrt((double)dim) : 1);
        for (long h = 0; h < vh; h++) {
            double x = (double)a->alpha[r * vh + h] + a->dt[h];
            a->g[r * vh + h] = (f32)(a->a[h] * (x > 20 ? x : log1p(exp(x))));
            a->b[r * vh + h] = (f32)(1 / (1 + exp(-(double)a->beta[r * vh + h])));
        }
    }
}

const struct op_ref ref_gdn_prep = { "gdn_prep", sizeof(struct gdn_prep_args), make, run };
