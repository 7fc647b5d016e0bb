/* rmsnorm: case and truth. One row is tiny (eps decides), one block is zero (d = 0). */
#include "templates/ref.h"
#include "args.h"
#include <math.h>

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct rmsnorm_args *a = args;
    size_t n = (size_t)shape_int(s, "n", 0), rows = (size_t)size->rows, inputs = rows + 2;
    i32 *n_rows = ref_buf(c, "n_rows", REF_IN, REF_I32, 1, 0), *list = ref_buf(c, "list", REF_IN, REF_I32, rows, 0);
    f32 *x = ref_buf(c, "x", REF_IN, REF_F32, inputs * n, 0), *w = ref_buf(c, "w", REF_IN, REF_F32, n, 0);
    *n_rows = size->rows;
    ref_fill_f32(x, inputs * n, &seed, 2);
    for (size_t i = 0; i < n; i++) {
        x[i] *= 1e-4f;
        if (i < Q8_BLOCK && inputs * n > n) x[n + i] = 0;
        w[i] = (f32)ref_uniform(&seed, 0.2, 1.8);
    }
    for (size_t r = 0; r < rows; r++) list[r] = (i32)(ref_next(&seed) % inputs);
    *a = (struct rmsnorm_args){.n_rows = n_rows, .list = size->seqs > 1 ? list : NULL, .x = x, .w = w, .eps = 1e-6f};
    if (!shape_is(s, "out", "q8")) a->y = ref_buf(c, "y", REF_OUT, REF_F32, rows * n, 1e-6);
    if (!shape_is(s, "out", "f32")) a->q = ref_out_q8(c, size->rows, (int)n, 0);
    return 0;
}

static void run(const void *args, const struct q_shape *s)
{
    const struct rmsnorm_args *a = args;
    int n = (int)shape_int(s, "n", 0);
    for (int r = 0; r < *a->n_rows; r++) {
        const f32 *x = a->x + (size_t)(a->list ? a->list[r] : r) * (size_t)n;
        double sum = 0;
        for (int i = 0; i < n; i++) sum += (double)x[i] * x[i];
        double scale = 1 / sqrt(sum / n + a->eps);
        for (int i = 0; a->y && i < n; i++) a->y[(size_t)r * (size_t)n + (size_t)i] = (f32)(x[i] * scale * a->w[i]);
        for (int b = 0; a->q.q && b < n / Q8_BLOCK; b++) {
            f32 v[Q8_BLOCK];
            for (int i = 0; i < Q8_BLOCK; i++) v[i] = (f32)(x[b * Q8_BLOCK + i] * scale * a->w[b * Q8_BLOCK + i]);
            ref_quant_block(v, &a->q, (size_t)r * (size_t)(n / Q8_BLOCK) + (size_t)b);
        }
    }
}

const struct op_ref ref_rmsnorm = {"rmsnorm", sizeof(struct rmsnorm_args), make, run};
