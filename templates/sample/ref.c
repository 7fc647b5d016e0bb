/* The truth of sample: every id sorted, every sum in double. A case is drawn again until its decisions stand clear of rounding: no
 * cumulative sum within 1e-6 of a threshold, no probability within 1e-5 of min_p's, so that the id has one right answer. */
#include "templates/ref.h"
#include "args.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct item {
    double w;      /* weight, 1 for the largest */
    f32 x;         /* logit after penalties, bias and mask */
    i32 id;
};

static int by_rank(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    return a->x != b->x ? (a->x < b->x ? 1 : -1) : (a->id > b->id) - (a->id < b->id);
}

static int by_id(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    return (a->id > b->id) - (a->id < b->id);
}

/* First word of Philox4x32-10 (Salmon et al., SC 2011) as a fraction. */
static double uniform(u64 seed, u64 position)
{
    u32 c[4] = { (u32)position, (u32)(position >> 32), 0, 0 }, k[2] = { (u32)seed, (u32)(seed >> 32) };
    for (int round = 0; round < 10; round++) {
        u64 p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
        u32 next[4] = { (u32)(p1 >> 32) ^ c[1] ^ k[0], (u32)p1, (u32)(p0 >> 32) ^ c[3] ^ k[1], (u32)p0 };
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u, k[1] += 0xBB67AE85u;
    }
    return c[0] / 4294967296.0;
}

static f32 clean(f32 x) { return isnan(x) ? -INFINITY : x > 3.40282347e38f ? 3.40282347e38f : x; }

/* Penalties, bias, mask, in fp32: an exact tie has to be one here too. */
static void adjust(struct item *t, long n, const struct sampling *p)
{
    for (int i = 0; i < p->n_history; i++) {
        i32 id = p->history[2 * i], count = p->history[2 * i + 1];
        if (id < 0 || id >= n || count <= 0) continue;
        f32 x = t[id].x;
        x = x > 0 ? x / p->repeat : x * p->repeat;
        f32 minus = (f32)count * p->frequency;
        minus += p->presence;
        t[id].x = clean(x - minus);
    }
    for (int i = 0; i < p->n_bias; i++)
        if (p->bias_id[i] >= 0 && p->bias_id[i] < n) t[p->bias_id[i]].x = clean(t[p->bias_id[i]].x + p->bias[i]);
    for (long i = 0; i < n; i++)
        if (p->mask && !(p->mask[i / 32] >> (i % 32) & 1)) t[i].x = -INFINITY;
}

static void near(double *margin, double distance, double unit)
{
    if (fabs(distance) / unit < *margin) *margin = fabs(distance) / unit;
}

/* How many of the `kept` best stay under top_p: the smallest count whose weight reaches p of theirs. */
static long cut_p(const struct item *t, long kept, double p, double *margin)
{
    double total = 0, sum = 0;
    long m = 0;
    for (long i = 0; i < kept; i++) total += t[i].w;
    while (m < kept && (m == 0 || sum < p * total)) {
        sum += t[m++].w;
        near(margin, sum - p * total, total * 1e-6);
    }
    if (m < kept && t[m].x != t[m - 1].x) near(margin, t[m - 1].w - t[m].w, t[m - 1].w * 1e-6);
    return m;
}

static long cut_min_p(const struct item *t, long kept, double p, double *margin)
{
    long m = 0;
    for (; m < kept && (m == 0 || t[m].w >= p); m++) near(margin, t[m].w - p, p * 1e-5);
    if (m < kept) near(margin, t[m].w - p, p * 1e-5);
    return m;
}

static i32 draw(struct item *t, long kept, double u, double *margin)
{
    double total = 0, sum = 0;
    i32 id = -1;
    qsort(t, kept, sizeof *t, by_id);
    for (long i = 0; i < kept; i++) total += t[i].w;
    for (long i = 0; i < kept; i++) {
        sum += t[i].w;
        if (t[i].w > 0 && i < kept - 1) near(margin, sum - u * total, total * 1e-6);
        if (id < 0 && sum > u * total) id = t[i].id;
    }
    return id;
}

/* The id for one row. t: n items of scratch. *margin: 1 or more when no decision is within rounding. */
static i32 choose(const f32 *logits, long n, const struct sampling *p, struct item *t, double *margin)
{
    *margin = 1e9;
    for (long i = 0; i < n; i++) t[i] = (struct item){ 0, clean(logits[i]), (i32)i };
    adjust(t, n, p);
    qsort(t, n, sizeof *t, by_rank);
    if (t[0].x == -INFINITY) return -1;
    if (p->temp <= 0) return t[0].id;
    f32 most = t[0].x;
    long kept = p->top_k > 0 && p->top_k < n ? p->top_k : n;
    for (long i = 0; i < n; i++) t[i].w = t[i].x == most ? 1 : exp(((double)t[i].x - most) / p->temp);
    if (p->top_p < 1) kept = cut_p(t, kept, p->top_p, margin);
    if (p->min_p > 0) kept = cut_min_p(t, kept, p->min_p, margin);
    return draw(t, kept, uniform(p->seed, (u64)p->position), margin);
}

static f32 logprob(const f32 *logits, long n, i32 id)
{
    double most = -INFINITY, sum = 0;
    if (id < 0) return -INFINITY;
    for (long i = 0; i < n; i++) most = fmax(most, clean(logits[i]));
    for (long i = 0; i < n; i++) sum += exp(clean(logits[i]) - most);
    return (f32)(clean(logits[id]) - most - log(sum));
}

/* What a row tries. The first is how people sample; the rest are its stages alone, and the corners. */
static const struct kind {
    f32 temp, top_p, min_p;
    i32 top_k;
    int penalties, bias, mask;    /* mask: one id in `mask` is allowed, 0: no mask, -1: none allowed */
    f32 spread;                   /* of the logits */
    int ties, odd;                /* logits rounded to eighths; NaN and infinities among them */
} kinds[] = {
    { 0.7f, 0.9f, 0, 20, 1, 0, 0, 4, 0, 0 },    { 0, 1, 0, 0, 0, 0, 0, 4, 0, 0 },        { 1, 1, 0, 0, 0, 0, 0, 2, 0, 0 },
    { 1, 0.8f, 0, 0, 0, 0, 0, 6, 0, 0 },        { 5, 0.7f, 0, 0, 0, 0, 0, 1, 0, 0 },     { 1, 1, 0.05f, 0, 1, 1, 0, 3, 0, 0 },
    { 0, 1, 0, 0, 1, 1, 3, 1, 1, 1 },           { 1, 0.5f, 0.01f, 300, 1, 1, 2, 2, 1, 1 }, { 2, 0.9f, 0, 0, 0, 0, 5, 0.2f, 1, 0 },
    { 1, 0.9f, 0.1f, 5, 0, 0, -1, 1, 0, 0 },    { 1e-3f, 1, 0, 1, 0, 1, 0, 1, 1, 0 },    { 1, 1, 0, 7, 0, 0, 0, 0.1f, 1, 1 },
};

static void fill_logits(f32 *x, long n, const struct kind *k, unsigned long long *seed)
{
    ref_fill_f32(x, n, seed, k->spread);
    for (long i = 0; k->ties && i < n; i++) x[i] = roundf(x[i] * 8) / 8;
    for (long i = 0; k->odd && i < n; i += 7) x[i] = i % 2 ? NAN : -INFINITY;
}

static void fill_lists(struct ref_case *c, struct sampling *p, long n, const struct kind *k, unsigned long long *seed)
{
    long words = (n + 31) / 32, many = n < 40 ? n : 40;
    i32 *history = ref_buf(c, "history", REF_IN, REF_I32, 2 * many, 0), *bias_id = ref_buf(c, "bias_id", REF_IN, REF_I32, 3, 0);
    f32 *bias = ref_buf(c, "bias", REF_IN, REF_F32, 3, 0);
    u32 *mask = ref_buf(c, "mask", REF_IN, REF_I32, words, 0);
    for (long i = 0; i < many; i++) history[2 * i] = (i32)(i * n / many), history[2 * i + 1] = 1 + (i32)(ref_next(seed) % 5);
    for (long i = 0; i < 3; i++) bias_id[i] = (i32)(ref_next(seed) % n), bias[i] = (f32)ref_normal(seed) * 5;
    memset(mask, 0, words * sizeof *mask);
    for (long i = 0; k->mask > 0 && i < n; i++)
        if (ref_next(seed) % k->mask == 0) mask[i / 32] |= 1u << (i % 32);
    p->n_history = k->penalties ? (i32)many : 0, p->n_bias = k->bias ? 3 : 0;
    p->history = history, p->bias_id = bias_id, p->bias = bias, p->mask = k->mask ? mask : NULL;
}

/* Moves p_top, p_min and position until no decision is within rounding. */
static void settle(struct sampling *p, const f32 *logits, long n, unsigned long long *seed)
{
    struct item *t = malloc(n * sizeof *t);
    if (!t) abort();
    for (int tries = 0; tries < 1000; tries++) {
        double margin;
        choose(logits, n, p, t, &margin);
        if (margin >= 1) break;
        p->position++;
        if (p->top_p < 1) p->top_p = (f32)ref_uniform(seed, 0.3, 0.97);
        if (p->min_p > 0) p->min_p = (f32)ref_uniform(seed, 0.005, 0.2);
    }
    free(t);
}

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct sample_args *a = args;
    long n = shape_int(s, "n", 0), rows = size->rows;
    i64 cpu = sample_work(n, size->parts), cuda = sample_work_cuda(n, rows);
    struct step *step = ref_buf(c, "step", REF_IN, REF_POINTERS, sizeof *step, 0);
    struct sampling *p = ref_buf(c, "sampling", REF_IN, REF_POINTERS, rows * sizeof *p, 0);
    memset(step, 0, sizeof *step);
    step->n_out = (i32)rows, step->sampling = p;
    a->step = step;
    a->logits = ref_buf(c, "logits", REF_WORK, REF_F32, rows * n, 0);
    a->id = ref_buf(c, "id", REF_OUT, REF_I32, rows, 0);
    a->logprob = ref_buf(c, "logprob", REF_OUT, REF_F32, rows, 2e-6);
    a->work = ref_buf(c, "work", REF_WORK, REF_BYTES, cpu > cuda ? cpu : cuda, 0);
    for (long r = 0; r < rows; r++) {
        const struct kind *k = &kinds[r % (sizeof kinds / sizeof *kinds)];
        p[r] = (struct sampling){ .temp = k->temp, .top_p = k->top_p, .min_p = k->min_p, .top_k = k->top_k, .repeat = 1.3f,
                                  .frequency = 0.2f, .presence = 0.5f, .seed = ref_next(&seed), .position = r << 33 };
        fill_logits(a->logits + r * n, n, k, &seed);
        fill_lists(c, &p[r], n, k, &seed);
        settle(&p[r], a->logits + r * n, n, &seed);
    }
    return 0;
}

struct rows {
    const struct sample_args *a;
    long n;
};

static void some_rows(void *arg, i64 begin, i64 end)
{
    const struct rows *p = arg;
    const struct sample_args *a = p->a;
    struct item *t = malloc(p->n * sizeof *t);
    double margin;
    if (!t) abort();
    for (i64 r = begin; r < end; r++) {
        a->id[r] = choose(a->logits + r * p->n, p->n, &a->step->sampling[r], t, &margin);
        a->logprob[r] = logprob(a->logits + r * p->n, p->n, a->id[r]);
    }
    free(t);
}

static void run(const void *args, const struct q_shape *s)
{
    struct rows p = { args, shape_int(s, "n", 0) };
    ref_share(p.a->step->n_out, 1 + 4096 / p.n, some_rows, &p);
}

const struct op_ref ref_sample = { "sample", sizeof(struct sample_args), make, run };
