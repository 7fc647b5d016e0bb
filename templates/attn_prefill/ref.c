/* attn_prefill and attn_decode: case and truth. Every place of a page that no row may see is NaN, so that reading past kv[r] shows.
 * Every third sequence has queries and keys of +-61440 (15 * 2^12): scores near 1e12, yet exact in fp32, so that equal ones stay equal. */
#include "templates/ref.h"
#include "args.h"
#include <math.h>
#include <string.h>

struct dims {
    int heads, kv_heads, dim, fk16, fv16;
};

static struct dims dims_of(const struct q_shape *s)
{
    return (struct dims){ (int)shape_int(s, "heads", 0), (int)shape_int(s, "kv_heads", 0), (int)shape_int(s, "head_dim", 0),
                          shape_is(s, "fk", "f16"), shape_is(s, "fv", "f16") };
}

static int is_large(int seq) { return seq % 3 == 1; }

static f32 large(unsigned long long *seed) { return ref_next(seed) & 1 ? 61440.0f : -61440.0f; }

/* Index of value d of token t, head j, in the pages of sequence `seq`. */
static size_t place(const struct step *st, const struct dims *d, int seq, int t, int j)
{
    size_t page = (size_t)st->pages[seq * st->page_stride + t / KV_PAGE];
    return ((page * d->kv_heads + j) * KV_PAGE + t % KV_PAGE) * d->dim;
}

static double get(const void *pages, int f16, size_t i) { return f16 ? ref_half_to_f32(((const u16 *)pages)[i]) : ((const f32 *)pages)[i]; }

static void put(void *pages, int f16, size_t i, f32 x)
{
    if (f16) ((u16 *)pages)[i] = ref_f32_to_half(x);
    else ((f32 *)pages)[i] = x;
}

/* NaN everywhere, then values for the tokens that the step's rows may see. */
static void *pages_of(struct ref_case *c, const char *name, const struct step *st, const struct dims *d, int f16, int keys, int pages,
                      unsigned long long *seed)
{
    size_t n = (size_t)pages * d->kv_heads * KV_PAGE * d->dim;
    void *p = ref_buf(c, name, REF_IN, f16 ? REF_F16 : REF_F32, n, 0);
    memset(p, 0xFF, n * (f16 ? 2 : 4));
    for (int q = 0; q < st->n_seqs; q++)
        for (int t = 0; t < st->kv[st->seq_row[q]] + st->seq_rows[q]; t++)
            for (int j = 0; j < d->kv_heads; j++)
                for (int i = 0; i < d->dim; i++)
                    put(p, f16, place(st, d, q, t, j) + i, keys && is_large(q) ? large(seed) : (f32)ref_normal(seed));
    return p;
}

static f32 *queries(struct ref_case *c, const struct step *st, size_t row, unsigned long long *seed)
{
    f32 *q = ref_buf(c, "q", REF_IN, REF_F32, st->n_rows * row, 0);
    for (int r = 0; r < st->n_rows; r++)
        for (size_t i = 0; i < row; i++) q[r * row + i] = is_large(st->seq[r]) ? large(seed) : 2 * (f32)ref_normal(seed);
    return q;
}

static int attn_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct dims d = dims_of(s);
    int slots, pages;
    struct step *step = ref_step(c, size, 0, 1000, &slots, &pages, &seed);
    size_t row = (size_t)d.heads * d.dim;
    f32 *qg = ref_buf(c, "qg", REF_IN, REF_F32, size->rows * row * 2, 0);
    ref_fill_f32(qg, size->rows * row * 2, &seed, 2.0);
    size_t work = (size_t)attn_work(size->rows, d.heads, d.dim, size->past + size->rows, size->parts);
    struct attn_args *a = args;
    *a = (struct attn_args){
        .step = step, .q = queries(c, step, row, &seed), .qg = qg, .scale = (f32)(1 / sqrt(d.dim)),
        .pages_k = pages_of(c, "pages_k", step, &d, d.fk16, 1, pages, &seed),
        .pages_v = pages_of(c, "pages_v", step, &d, d.fv16, 0, pages, &seed),
        .work = ref_buf(c, "work", REF_WORK, REF_BYTES, work, 0),
    };
    if (!shape_is(s, "out", "q8")) a->o = ref_buf(c, "o", REF_OUT, REF_F32, size->rows * row, 1e-5);
    if (!shape_is(s, "out", "f32")) a->oq = ref_out_q8(c, size->rows, (int)row, 0);
    return 0;
}

static double score(const struct attn_args *a, const struct dims *d, int r, int h, int t)
{
    size_t k = place(a->step, d, a->step->seq[r], t, h / (d->heads / d->kv_heads));
    const f32 *q = a->q + ((size_t)r * d->heads + h) * d->dim;
    double sum = 0;
    for (int i = 0; i < d->dim; i++) sum += q[i] * get(a->pages_k, d->fk16, k + i);
    return sum * a->scale;
}

/* Output of one row and head: two passes over the tokens, then the gate. */
static void row_head(const struct attn_args *a, const struct dims *d, int r, int h)
{
    int tokens = a->step->kv[r] + 1, j = h / (d->heads / d->kv_heads);
    double max = -INFINITY, sum = 0, o[1024] = { 0 };
    for (int t = 0; t < tokens; t++) max = fmax(max, score(a, d, r, h, t));
    for (int t = 0; t < tokens; t++) {
        double p = exp(score(a, d, r, h, t) - max);
        size_t v = place(a->step, d, a->step->seq[r], t, j);
        sum += p;
        for (int i = 0; i < d->dim; i++) o[i] += p * get(a->pages_v, d->fv16, v + i);
    }
    size_t at = ((size_t)r * d->heads + h) * d->dim;
    f32 y[1024];
    for (int i = 0; i < d->dim; i++) y[i] = (f32)(o[i] / sum / (1 + exp(-(double)a->qg[2 * at + d->dim + i])));
    if (a->o) memcpy(a->o + at, y, d->dim * sizeof *y);
    for (int b = 0; a->oq.q && b < d->dim / Q8_BLOCK; b++) ref_quant_block(y + b * Q8_BLOCK, &a->oq, at / Q8_BLOCK + b);
}

struct heads {
    const struct attn_args *a;
    struct dims d;
};

static void some_heads(void *arg, i64 begin, i64 end)
{
    const struct heads *p = arg;
    for (i64 i = begin; i < end; i++) row_head(p->a, &p->d, (int)(i / p->d.heads), (int)(i % p->d.heads));
}

static void attn_run(const void *args, const struct q_shape *s)
{
    struct heads p = { args, dims_of(s) };
    ref_share((i64)p.a->step->n_rows * p.d.heads, 4, some_heads, &p);
}

const struct op_ref ref_attn_prefill = { "attn_prefill", sizeof(struct attn_args), attn_make, attn_run };
