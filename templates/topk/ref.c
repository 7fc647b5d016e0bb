/* Case and truth of topk. Logits have ties (values on a coarse grid), now and then a NaN (counts as -inf) and -inf. */
#include "templates/ref.h"

#include "templates/topk/args.h"

#include <math.h>
#include <string.h>

static void fill_logits(f32 *p, size_t count, unsigned long long *seed)
{
    for (size_t i = 0; i < count; i++) {
        unsigned long long kind = ref_next(seed) % 64;
        p[i] = (f32)(4 * ref_normal(seed));
        if (kind < 16) p[i] = roundf(p[i]);
        if (kind == 63) p[i] = NAN;
        if (kind == 62) p[i] = -INFINITY;
    }
}

static int topk_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct topk_args *a = args;
    size_t n = shape_int(s, "n", 0), k = shape_int(s, "k", 0);
    memset(a, 0, sizeof *a);
    i32 *rows = ref_buf(c, "n_rows", REF_IN, REF_I32, 1, 0);
    *rows = size->rows;
    a->n_rows = rows;
    f32 *logits = ref_buf(c, "logits", REF_IN, REF_F32, size->rows * n, 0);
    fill_logits(logits, size->rows * n, &seed);
    a->logits = logits;
    a->id = ref_buf(c, "id", REF_OUT, REF_I32, size->rows * k, 0);
    a->value = ref_buf(c, "value", REF_OUT, REF_F32, size->rows * k, 0);
    a->lse = ref_buf(c, "lse", REF_OUT, REF_F32, size->rows, 1.5e-7);
    a->work = ref_buf(c, "work", REF_WORK, REF_BYTES, topk_work(size->rows), 0);
    return 0;
}

static f32 logit(const f32 *x, int i) { return x[i] != x[i] ? -INFINITY : x[i]; }

/* The best index that is worse than (value, id) in the order: larger first, then lower id. */
static int next_best(const f32 *x, int n, f32 value, int id)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        f32 v = logit(x, i);
        if (id >= 0 && (v > value || (v == value && i <= id))) continue;
        if (best < 0 || v > logit(x, best)) best = i;
    }
    return best;
}

static void topk_run(const void *args, const struct q_shape *s)
{
    const struct topk_args *a = args;
    int n = (int)shape_int(s, "n", 0), k = (int)shape_int(s, "k", 0);
    for (int r = 0; r < *a->n_rows; r++) {
        const f32 *x = a->logits + (size_t)r * n;
        f32 value = 0;
        int id = -1;
        for (int i = 0; i < k; i++) {
            id = next_best(x, n, value, id);
            value = logit(x, id);
            a->id[(size_t)r * k + i] = id;
            a->value[(size_t)r * k + i] = value;
        }
        f32 max = a->value[(size_t)r * k];
        double sum = 0;
        for (int i = 0; i < n; i++) sum += max == -INFINITY ? 0 : exp((double)logit(x, i) - max);
        a->lse[r] = (f32)(max == -INFINITY ? -INFINITY : max + log(sum));
    }
}

const struct op_ref ref_topk = { "topk", sizeof(struct topk_args), topk_make, topk_run };
