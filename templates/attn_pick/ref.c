/* attn_pick: case and truth. Values lie on a coarse grid, so that every path has the same scores, and lists must be equal. Keys of some tokens
 * lean towards what all queries have in common: vertical lines. */
#include "templates/ref_kv.h"
#include "args.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dims {
    int heads, kv_heads, group, dim;
    enum kv_format fk;
};

static struct dims dims_of(const struct q_shape *s)
{
    struct dims d = { .heads = (int)shape_int(s, "heads", 0), .kv_heads = (int)shape_int(s, "kv_heads", 0),
                      .dim = (int)shape_int(s, "head_dim", 0), .fk = ref_kv_format(s, "fk") };
    d.group = d.heads / d.kv_heads;
    return d;
}

static void *piece_of(const struct attn_pick_args *a, const struct dims *d, int seq, int page, int j)
{
    i64 id = a->step->pages[seq * a->step->page_stride + page];
    return (u8 *)a->pages_k + (id * d->kv_heads + j) * kv_piece_bytes(d->fk, d->dim);
}

/* What the queries of KV head j have in common. */
static double common(int j, int i) { return (((u32)(i + 1) * 0x9E3779B1u ^ (u32)j * 0x85EBCA6Bu) >> 13 & 1) ? 1 : -1; }

static f32 on_grid(double x, double unit, double most) { return (f32)(rint(fmax(-most, fmin(most, x)) / unit) * unit); }

/* A key: with scales, so that each of them is a power of two. Rotated: one magnitude, whose signs lean. */
static void put_key(const struct dims *d, void *piece, int token, int j, double lean, unsigned long long *seed)
{
    f32 x[REF_KV_WIDEST];
    for (int i = 0; i < d->dim; i++) {
        double v = 0.5 * ref_normal(seed) + lean * common(j, i);
        x[i] = ref_kv_rotated(d->fk) ? (v < 0 ? -1 : 1) * (d->fk == KV_R3 ? 40 : 44) / 64.0f : on_grid(v, 1 / 32.0, 127 / 32.0);
        if (d->fk == KV_Q8 && i % 32 == 0) x[i] = 127 / 32.0f;
    }
    if (ref_kv_rotated(d->fk)) ref_kv_put_rotated(d->fk, d->dim, piece, token, x);
    else ref_kv_put(d->fk, d->dim, piece, token, x);
}

static void fill_keys(const struct attn_pick_args *a, const struct dims *d, unsigned long long *seed)
{
    const struct step *st = a->step;
    for (int q = 0; q < st->n_seqs; q++)
        for (int t = 0; t < st->kv[st->seq_row[q]] + st->seq_rows[q]; t++)
            for (int j = 0; j < d->kv_heads; j++)
                put_key(d, piece_of(a, d, q, t / KV_PAGE, j), t % KV_PAGE, j, (t + 31 * j) % 89 == 0 ? 0.6 : 0, seed);
}

/* Rotated formats: the grid is that of the rotated query. */
static f32 *queries(struct ref_case *c, const struct step *st, const struct dims *d, unsigned long long *seed)
{
    f32 *q = ref_buf(c, "q", REF_IN, REF_F32, (size_t)st->n_rows * (size_t)(d->heads * d->dim), 0);
    double y[REF_KV_WIDEST];
    for (int r = 0; r < st->n_rows; r++)
        for (int h = 0; h < d->heads; h++) {
            for (int i = 0; i < d->dim; i++) y[i] = on_grid(ref_normal(seed) + 0.75 * common(h / d->group, i), 1 / 8.0, 8);
            if (ref_kv_rotated(d->fk)) ref_kv_rotate_back(d->dim, y);
            for (int i = 0; i < d->dim; i++) q[((size_t)r * (size_t)d->heads + (size_t)h) * (size_t)d->dim + (size_t)i] = (f32)y[i];
        }
    return q;
}

/* Wanted: the last rows of every other sequence from the second on, for else no block of a small step had probes. */
static void want_few(struct step *st)
{
    i32 *out = (i32 *)st->out;
    st->n_out = 0;
    for (int q = 1; q < st->n_seqs; q += 2) out[st->n_out++] = st->seq_row[q] + st->seq_rows[q] - 1;
}

static int pick_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct dims d = dims_of(s);
    int slots, pages;
    struct step *step = ref_step(c, size, 0, 1000, &slots, &pages, &seed);
    want_few(step);
    i64 lists = (i64)pick_first_block(step, step->n_seqs) * d.kv_heads;
    struct attn_pick_args *a = args;
    *a = (struct attn_pick_args){
        .step = step, .q = queries(c, step, &d, &seed), .scale = (f32)(1 / sqrt(d.dim)), .mass = (f32)ref_uniform(&seed, 0.4, 0.95),
        .dense = size->plain ? 0 : 192, .pages_k = ref_kv_pages(c, "pages_k", REF_IN, d.fk, d.kv_heads, d.dim, pages),
        .pick = ref_buf(c, "pick", REF_OUT, REF_I32, (size_t)lists * (size_t)(1 + step->page_stride), 0),
        .work = ref_buf(c, "work", REF_WORK, REF_BYTES, (size_t)attn_pick_work(size->rows, step->n_seqs, d.heads, d.kv_heads, step->page_stride), 0),
    };
    fill_keys(a, &d, &seed);
    return 0;
}

/* Of a block and KV head. */
struct truth {
    const struct attn_pick_args *a;
    struct dims d;
    int seq, row, end, block, j, pages;
    double *p;                 /* [PICK_PROBES][group][pages] masses */
    u8 *step[2];               /* [pages] */
};

/* Masses of the pages in one probe's row for head h: two passes over the scores. */
static void row_masses(const struct truth *t, int probe, int h, double *p)
{
    const struct attn_pick_args *a = t->a;
    int dim = t->d.dim, r = pick_probe(t->row, probe), seen = a->step->kv[r] + 1;
    double q[REF_KV_WIDEST], k[REF_KV_WIDEST], *s = malloc((size_t)seen * sizeof *s), max = -INFINITY, sum = 0;
    if (!s) abort();
    for (int i = 0; i < dim; i++) q[i] = a->q[((size_t)r * (size_t)t->d.heads + (size_t)h) * (size_t)dim + (size_t)i];
    if (ref_kv_rotated(t->d.fk)) ref_kv_rotate(dim, q);
    for (int n = 0; n < seen; n++) {
        ref_kv_get(t->d.fk, dim, piece_of(a, &t->d, t->seq, n / KV_PAGE, t->j), n % KV_PAGE, k);
        s[n] = 0;
        for (int i = 0; i < dim; i++) s[n] += q[i] * k[i];
        max = fmax(max, s[n] *= a->scale);
    }
    memset(p, 0, (size_t)t->pages * sizeof *p);
    for (int n = 0; n < seen; n++) {
        p[n / KV_PAGE] += exp(s[n] - max);
        sum += exp(s[n] - max);
    }
    for (int i = 0; i < t->pages; i++) p[i] /= sum;
    free(s);
}

static double mass_of(const struct truth *t, int half, int g, int page)
{
    const double *p = t->p + page;
    size_t pages = (size_t)t->pages, group = (size_t)t->d.group;
    return (p[((size_t)half * group + (size_t)g) * pages] + p[((size_t)(half + 2) * group + (size_t)g) * pages]) / 2;
}

static void find_steps(struct truth *t)
{
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < t->pages; i++) {
            double most = 0;
            i32 bits;
            for (int g = 0; g < t->d.group; g++) most = fmax(most, mass_of(t, half, g, i));
            memcpy(&bits, &(f32){ (f32)most }, sizeof bits);
            t->step[half][i] = (u8)pick_step(bits);
        }
}

static int suffices(const struct truth *t, int step)
{
    int kv = t->a->step->kv[t->row];
    for (int g = 0; g < t->d.group; g++) {
        double held = 0;
        for (int half = 0; half < 2; half++)
            for (int i = 0; i < t->pages; i++)
                if (t->step[half][i] >= step || pick_is_kept(i, kv)) held += mass_of(t, !half, g, i);
        if (held / 2 < t->a->mass) return 0;
    }
    return 1;
}

static void one_list(struct truth *t)
{
    const struct step *st = t->a->step;
    i32 *out = t->a->pick + ((i64)t->block * t->d.kv_heads + t->j) * (1 + st->page_stride), n = 0;
    int dense = pick_is_dense(st, t->row, t->end, t->a->dense), step = 255, last = t->row + PICK_ROWS < t->end ? t->row + PICK_ROWS : t->end;
    t->pages = st->kv[last - 1] / KV_PAGE + 1;
    size_t pages = (size_t)t->pages, group = (size_t)t->d.group;
    t->p = calloc(PICK_PROBES * group * pages, sizeof *t->p);
    t->step[0] = calloc(2, pages);
    t->step[1] = t->step[0] + pages;
    if (!t->p || !t->step[0]) abort();
    for (int i = 0; i < PICK_PROBES && !dense; i++)
        for (int g = 0; g < t->d.group; g++) row_masses(t, i, t->j * t->d.group + g, t->p + ((size_t)i * group + (size_t)g) * pages);
    if (!dense) find_steps(t);
    while (!dense && step > 0 && !suffices(t, step)) step--;
    for (int i = 0; i < t->pages; i++)
        if (dense || t->step[0][i] >= step || t->step[1][i] >= step || pick_is_kept(i, st->kv[t->row])) out[++n] = i;
    out[0] = n;
    free(t->p);
    free(t->step[0]);
}

struct all {
    const struct attn_pick_args *a;
    struct dims d;
};

static void some_lists(void *arg, i64 begin, i64 end)
{
    const struct all *p = arg;
    const struct step *st = p->a->step;
    i64 at = 0;
    for (int seq = 0, block = 0; seq < st->n_seqs; seq++)
        for (int from = 0; from < st->seq_rows[seq]; from += PICK_ROWS, block++)
            for (int j = 0; j < p->d.kv_heads; j++, at++) {
                struct truth t = { .a = p->a, .d = p->d, .seq = seq, .row = st->seq_row[seq] + from, .end = st->seq_row[seq] + st->seq_rows[seq],
                                   .block = block, .j = j };
                if (at >= begin && at < end) one_list(&t);
            }
}

static void pick_run(const void *args, const struct q_shape *s)
{
    struct all p = { args, dims_of(s) };
    ref_share((i64)pick_first_block(p.a->step, p.a->step->n_seqs) * p.d.kv_heads, 1, some_lists, &p);
}

const struct op_ref ref_attn_pick = { "attn_pick", sizeof(struct attn_pick_args), pick_make, pick_run };
