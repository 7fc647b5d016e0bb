/* attn_prefill and attn_decode: case and truth. Every place of a page that no row may see is NaN (in formats with scales: the scales are),
 * so that reading past kv[r] shows. Every third sequence has queries and keys of one large magnitude each: scores near 1e12, yet exact in
 * fp32, so that equal ones stay equal. Where rotation is not exact (runs of an odd power of two) all sequences are usual ones. */
#include "templates/ref_kv.h"
#include "args.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dims {
    int heads, kv_heads, dim;
    enum kv_format fk, fv;
};

static struct dims dims_of(const struct q_shape *s)
{
    return (struct dims){ (int)shape_int(s, "heads", 0), (int)shape_int(s, "kv_heads", 0), (int)shape_int(s, "head_dim", 0),
                          ref_kv_format(s, "fk"), ref_kv_format(s, "fv") };
}

/* Magnitudes of large sequences. A rotated key of equal magnitudes has them at one level, here with a scale of 256; a rotated query is at
 * most 16 times as large. */
static f32 large_query(const struct dims *d) { return ref_kv_rotated(d->fk) ? 960 : 61440; }

static f32 large_key(const struct dims *d)
{
    return d->fk == KV_R3 ? 40 * 256 : d->fk == KV_R4 ? 44 * 256 : d->fk == KV_Q8 ? 127 * 256 : 61440;
}

static int is_large(const struct dims *d, int seq)
{
    int run = kv_run(d->dim);
    return seq % 3 == 1 && (!ref_kv_rotated(d->fk) || run == 64 || run == 256);
}

static f32 either(f32 x, unsigned long long *seed) { return ref_next(seed) & 1 ? x : -x; }

/* The piece of K or V that holds token t of sequence `seq`, head j. */
static u8 *piece_of(const struct step *st, const struct dims *d, enum kv_format f, const void *pages, int seq, int t, int j)
{
    i64 page = st->pages[seq * st->page_stride + t / KV_PAGE];
    return (u8 *)pages + (page * d->kv_heads + j) * kv_piece_bytes(f, d->dim);
}

static void put_key(const struct dims *d, u8 *piece, int token, int large, unsigned long long *seed)
{
    f32 x[REF_KV_WIDEST];
    for (int i = 0; i < d->dim; i++) x[i] = large ? either(large_key(d), seed) : (f32)ref_normal(seed);
    if (large && ref_kv_rotated(d->fk)) ref_kv_put_rotated(d->fk, d->dim, piece, token, x);
    else ref_kv_put(d->fk, d->dim, piece, token, x);
}

static void put_value(const struct dims *d, u8 *piece, int token, unsigned long long *seed)
{
    f32 x[REF_KV_WIDEST];
    for (int i = 0; i < d->dim; i++) x[i] = (f32)ref_normal(seed);
    ref_kv_put(d->fv, d->dim, piece, token, x);
}

/* Longer sequences repeat their first tokens: made values take as long as a minute for some hundred thousand. */
enum { FRESH = 2048 };

static void repeat(const struct step *st, const struct dims *d, enum kv_format f, const void *pages, int seq, int t, int j)
{
    const u8 *from = piece_of(st, d, f, pages, seq, t % FRESH, j);
    u8 *to = piece_of(st, d, f, pages, seq, t, j);
    size_t token = (size_t)(t % KV_PAGE), code = (size_t)kv_code_bytes(f, d->dim), scale = 2 * (size_t)kv_scales(f, d->dim);
    memcpy(to + token * code, from + token * code, code);
    memcpy(to + KV_PAGE * code + token * scale, from + KV_PAGE * code + token * scale, scale);
}

/* NaN everywhere, then values for the tokens that the step's rows may see. */
static void fill(const struct attn_args *a, const struct dims *d, unsigned long long *seed)
{
    const struct step *st = a->step;
    for (int q = 0; q < st->n_seqs; q++)
        for (int t = 0; t < st->kv[st->seq_row[q]] + st->seq_rows[q]; t++)
            for (int j = 0; j < d->kv_heads; j++) {
                if (t >= FRESH) {
                    repeat(st, d, d->fk, a->pages_k, q, t, j);
                    repeat(st, d, d->fv, a->pages_v, q, t, j);
                    continue;
                }
                put_key(d, piece_of(st, d, d->fk, a->pages_k, q, t, j), t % KV_PAGE, is_large(d, q), seed);
                put_value(d, piece_of(st, d, d->fv, a->pages_v, q, t, j), t % KV_PAGE, seed);
            }
}

static f32 *queries(struct ref_case *c, const struct step *st, const struct dims *d, unsigned long long *seed)
{
    size_t row = (size_t)d->heads * (size_t)d->dim;
    f32 *q = ref_buf(c, "q", REF_IN, REF_F32, (size_t)st->n_rows * row, 0);
    for (int r = 0; r < st->n_rows; r++)
        for (size_t i = 0; i < row; i++)
            q[(size_t)r * row + i] = is_large(d, st->seq[r]) ? either(large_query(d), seed) : 2 * (f32)ref_normal(seed);
    return q;
}

/* Cases of more rows than decode has, behind whole pages: each block of rows reads a third of the pages, and its own. */
static const i32 *picks(struct ref_case *c, const struct step *st, const struct dims *d, unsigned long long *seed)
{
    int blocks = 0, at = 0;
    for (int q = 0; q < st->n_seqs; q++) blocks += (st->seq_rows[q] + ATTN_PICK_ROWS - 1) / ATTN_PICK_ROWS;
    size_t stride = (size_t)(1 + st->page_stride);
    i32 *pick = ref_buf(c, "pick", REF_IN, REF_I32, (size_t)(blocks * d->kv_heads) * stride, 0);
    for (int q = 0; q < st->n_seqs; q++)
        for (int from = 0; from < st->seq_rows[q]; from += ATTN_PICK_ROWS)
            for (int j = 0; j < d->kv_heads; j++) {
                int end = from + ATTN_PICK_ROWS < st->seq_rows[q] ? from + ATTN_PICK_ROWS : st->seq_rows[q], n = 0;
                const i32 *kv = st->kv + st->seq_row[q];
                i32 *list = pick + (size_t)at++ * stride;
                for (int page = 0; page <= kv[end - 1] / KV_PAGE; page++)
                    if (page >= kv[from] / KV_PAGE || ref_next(seed) % 3 == 0) list[1 + n++] = page;
                list[0] = n;
            }
    return pick;
}

/* As ref_out_q8, with the tolerance of o: a score near 100 that is summed in one go is off by as much. */
static struct act_q8 out_q8(struct ref_case *c, size_t n)
{
    return (struct act_q8){ ref_buf(c, "q.q", REF_OUT, REF_I8, n, 1), ref_buf(c, "q.d", REF_OUT, REF_F32, n / Q8_BLOCK, 1e-5),
                            ref_buf(c, "q.s", REF_OUT, REF_I32, n / Q8_BLOCK, 3) };
}

/* Queries and weights as halves: an output errs by some 2^-11 of what its values and scores are, which are of size 1. Those of 15 bits for dp4a
 * (class half_dp4a) err by no more: of each tile the largest product of weight and scale is rounded by 2^-11 of itself at most. */
static void allow_halves(struct ref_case *c, const struct attn_args *a)
{
    if (a->o) ref_buf_half(c, a->o, 4e-3);
    if (!a->oq.q) return;
    ref_buf_half(c, a->oq.q, 2);
    ref_buf_half(c, a->oq.d, 4e-3 / 127);
    ref_buf_half(c, a->oq.s, 12);
}

static int attn_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct dims d = dims_of(s);
    int slots, pages;
    struct step *step = ref_step(c, size, 0, 1000, &slots, &pages, &seed);
    size_t row = (size_t)d.heads * (size_t)d.dim, rows = (size_t)size->rows;
    f32 *qg = ref_buf(c, "qg", REF_IN, REF_F32, rows * row * 2, 0);
    ref_fill_f32(qg, rows * row * 2, &seed, 2.0);
    size_t work = (size_t)attn_work(size->rows, d.heads, d.dim, size->past + size->rows, size->parts);
    struct attn_args *a = args;
    *a = (struct attn_args){
        .step = step, .q = queries(c, step, &d, &seed), .qg = qg, .scale = (f32)(1 / sqrt(d.dim)),
        .pages_k = ref_kv_pages(c, "pages_k", REF_IN, d.fk, d.kv_heads, d.dim, pages),
        .pages_v = ref_kv_pages(c, "pages_v", REF_IN, d.fv, d.kv_heads, d.dim, pages),
        .work = ref_buf(c, "work", REF_WORK, REF_BYTES, work, 0),
    };
    fill(a, &d, &seed);
    if (!size->plain && size->rows > ATTN_PICK_ROWS && size->past && size->past % KV_PAGE == 0) a->pick = picks(c, step, &d, &seed);
    if (!shape_is(s, "out", "q8")) a->o = ref_buf(c, "o", REF_OUT, REF_F32, rows * row, 1e-5);
    if (!shape_is(s, "out", "f32")) a->oq = out_q8(c, rows * row);
    allow_halves(c, a);
    return 0;
}

/* Whether row r may see token t for KV head j: all before it, or what the picks of its block name. */
static int sees(const struct attn_args *a, const struct dims *d, int r, int j, int t)
{
    if (!a->pick) return 1;
    const struct step *st = a->step;
    int seq = st->seq[r], block = (r - st->seq_row[seq]) / ATTN_PICK_ROWS;
    for (int q = 0; q < seq; q++) block += (st->seq_rows[q] + ATTN_PICK_ROWS - 1) / ATTN_PICK_ROWS;
    const i32 *list = a->pick + ((i64)block * d->kv_heads + j) * (1 + st->page_stride);
    for (int i = 0; i < list[0]; i++)
        if (list[1 + i] == t / KV_PAGE) return 1;
    return 0;
}

/* Weights of `tokens` tokens for the group's heads, [group][tokens]: exp(score - max), and their sums. */
static void weigh(const struct attn_args *a, const struct dims *d, int r, int j, int tokens, double *p, double *sum)
{
    int group = d->heads / d->kv_heads;
    double q[16][REF_KV_WIDEST], k[REF_KV_WIDEST], max[16];
    for (int g = 0; g < group; g++) {
        const f32 *from = a->q + ((size_t)r * d->heads + j * group + g) * d->dim;
        for (int i = 0; i < d->dim; i++) q[g][i] = from[i];
        if (ref_kv_rotated(d->fk)) ref_kv_rotate(d->dim, q[g]);
        max[g] = -INFINITY;
        sum[g] = 0;
    }
    for (int t = 0; t < tokens; t++) {
        int seen = sees(a, d, r, j, t);
        if (seen) ref_kv_get(d->fk, d->dim, piece_of(a->step, d, d->fk, a->pages_k, a->step->seq[r], t, j), t % KV_PAGE, k);
        for (int g = 0; g < group; g++) {
            double s = 0;
            for (int i = 0; seen && i < d->dim; i++) s += q[g][i] * k[i];
            p[(size_t)g * tokens + t] = s = seen ? s * a->scale : -INFINITY;
            max[g] = fmax(max[g], s);
        }
    }
    for (int g = 0; g < group; g++)
        for (int t = 0; t < tokens; t++) sum[g] += p[(size_t)g * tokens + t] = exp(p[(size_t)g * tokens + t] - max[g]);
}

/* o [dim], the sum of weighed values, to its place: divided, rotated back, gated. */
static void put_out(const struct attn_args *a, const struct dims *d, size_t head, double *o, double sum)
{
    size_t at = head * (size_t)d->dim;
    f32 y[REF_KV_WIDEST];
    if (ref_kv_rotated(d->fv)) ref_kv_rotate_back(d->dim, o);
    for (int i = 0; i < d->dim; i++) y[i] = (f32)(o[i] / sum / (1 + exp(-(double)a->qg[2 * at + (size_t)(d->dim + i)])));
    if (a->o) memcpy(a->o + at, y, (size_t)d->dim * sizeof *y);
    for (int b = 0; a->oq.q && b < d->dim / Q8_BLOCK; b++) ref_quant_block(y + b * Q8_BLOCK, &a->oq, at / Q8_BLOCK + (size_t)b);
}

/* Outputs of one row for the heads of one KV head. */
static void row_group(const struct attn_args *a, const struct dims *d, int r, int j)
{
    int tokens = a->step->kv[r] + 1, group = d->heads / d->kv_heads;
    double *p = malloc((size_t)group * (size_t)tokens * sizeof *p), sum[16], o[16][REF_KV_WIDEST] = { { 0 } }, v[REF_KV_WIDEST];
    if (!p) abort();
    weigh(a, d, r, j, tokens, p, sum);
    for (int t = 0; t < tokens; t++) {
        if (!sees(a, d, r, j, t)) continue;
        ref_kv_get(d->fv, d->dim, piece_of(a->step, d, d->fv, a->pages_v, a->step->seq[r], t, j), t % KV_PAGE, v);
        for (int g = 0; g < group; g++)
            for (int i = 0; i < d->dim; i++) o[g][i] += p[(size_t)g * tokens + t] * v[i];
    }
    for (int g = 0; g < group; g++) put_out(a, d, (size_t)r * d->heads + j * group + g, o[g], sum[g]);
    free(p);
}

struct groups {
    const struct attn_args *a;
    struct dims d;
};

static void some_groups(void *arg, i64 begin, i64 end)
{
    const struct groups *p = arg;
    for (i64 i = begin; i < end; i++) row_group(p->a, &p->d, (int)(i / p->d.kv_heads), (int)(i % p->d.kv_heads));
}

static void attn_run(const void *args, const struct q_shape *s)
{
    struct groups p = { args, dims_of(s) };
    ref_share((i64)p.a->step->n_rows * p.d.kv_heads, 1, some_groups, &p);
}

const struct op_ref ref_attn_prefill = { "attn_prefill", sizeof(struct attn_args), attn_make, attn_run };
