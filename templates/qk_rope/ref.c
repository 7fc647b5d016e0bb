/* qk_rope: case and truth. One row of queries is far larger than the others (the norm must take it), one head is all zeros. */
#include "templates/ref.h"
#include "args.h"
#include <math.h>

struct dims {
    int heads, kv_heads, dim, pairs;
};

static struct dims dims_of(const struct q_shape *s)
{
    return (struct dims){ (int)shape_int(s, "heads", 0), (int)shape_int(s, "kv_heads", 0), (int)shape_int(s, "head_dim", 0),
                          (int)shape_int(s, "pairs", 0) };
}

static f32 *normals(struct ref_case *c, const char *name, enum ref_role role, size_t n, unsigned long long *seed)
{
    f32 *p = ref_buf(c, name, role, REF_F32, n, 1e-6);
    ref_fill_f32(p, n, seed, 1.0);
    return p;
}

static int qk_rope_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct dims d = dims_of(s);
    int slots, pages;
    size_t rows = (size_t)size->rows, dim = (size_t)d.dim;
    struct step *step = ref_step(c, size, 0, 1000, &slots, &pages, &seed);
    f32 *qg = normals(c, "qg", REF_IN, rows * d.heads * 2 * dim, &seed);
    f32 *k = normals(c, "k", REF_INOUT, rows * d.kv_heads * dim, &seed);
    for (size_t i = 0; i < dim; i++) {
        qg[i] *= 6e4f;
        k[(rows - 1) * d.kv_heads * dim + i] = 0;
    }
    f32 *cs = ref_buf(c, "cs", REF_IN, REF_F32, rows * d.pairs * 2, 0);
    for (size_t i = 0; i < rows * d.pairs; i++) {
        double angle = ref_uniform(&seed, 0, 6.28);
        cs[2 * i] = (f32)cos(angle);
        cs[2 * i + 1] = (f32)sin(angle);
    }
    *(struct qk_rope_args *)args = (struct qk_rope_args){
        .step = step, .qg = qg, .k = k, .cs = cs, .eps = 1e-6f,
        .q = ref_buf(c, "q", REF_OUT, REF_F32, rows * d.heads * dim, 1e-6),
        .wq = normals(c, "wq", REF_IN, dim, &seed), .wk = normals(c, "wk", REF_IN, dim, &seed),
    };
    return 0;
}

/* One head: x and y may be the same. */
static void head(const f32 *x, f32 *y, const f32 *w, f32 eps, const f32 *cs, const struct dims *d)
{
    double sum = 0;
    for (int i = 0; i < d->dim; i++) sum += (double)x[i] * x[i];
    double inv = 1 / sqrt(sum / d->dim + eps);
    for (int i = 0; i < d->pairs; i++) {
        double lo = x[i] * inv * w[i], hi = x[i + d->pairs] * inv * w[i + d->pairs];
        y[i] = (f32)(lo * cs[2 * i] - hi * cs[2 * i + 1]);
        y[i + d->pairs] = (f32)(lo * cs[2 * i + 1] + hi * cs[2 * i]);
    }
    for (int i = 2 * d->pairs; i < d->dim; i++) y[i] = (f32)(x[i] * inv * w[i]);
}

static void qk_rope_run(const void *args, const struct q_shape *s)
{
    const struct qk_rope_args *a = args;
    struct dims d = dims_of(s);
    for (size_t r = 0; r < (size_t)a->step->n_rows; r++) {
        const f32 *cs = a->cs + r * d.pairs * 2;
        for (int h = 0; h < d.heads; h++)
            head(a->qg + (r * d.heads + h) * 2 * d.dim, a->q + (r * d.heads + h) * d.dim, a->wq, a->eps, cs, &d);
        for (int j = 0; j < d.kv_heads; j++)
            head(a->k + (r * d.kv_heads + j) * d.dim, a->k + (r * d.kv_heads + j) * d.dim, a->wk, a->eps, cs, &d);
    }
}

const struct op_ref ref_qk_rope = { "qk_rope", sizeof(struct qk_rope_args), qk_rope_make, qk_rope_run };
