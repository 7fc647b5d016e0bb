/* Case and truth of matmul and matvec. The weights lie behind a second matrix (w_offset) in half of the cases, x rows are picked by a
 * list in half, the residual form has a stride wider than n. Weight bytes are arbitrary, -128 included. */
#include "templates/ref.h"

#include "runtime/layout.h"
#include "templates/matmul/args.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void draw_block(unsigned char *block, unsigned long long *seed)
{
    u16 d = ref_f32_to_half((f32)(ref_uniform(seed, 0.5, 1.5) / 128));
    memcpy(block, &d, 2);
    for (int i = 0; i < 32; i += 8) {
        unsigned long long bits = ref_next(seed);
        memcpy(block + 2 + i, &bits, 8);
    }
}

static struct ref_weights weights_of(const struct q_shape *s)
{
    const char *type = shape_find(s, "type"), *layout = shape_find(s, "layout");
    return (struct ref_weights){ q_format_by_name(type ? type : ""), q_layout_find(layout ? layout : ""), shape_int(s, "n", 0),
                                 shape_int(s, "k", 0), draw_block, 5 };
}

static const i32 *make_list(struct ref_case *c, int rows, int x_rows, unsigned long long *seed)
{
    i32 *list = ref_buf(c, "list", REF_IN, REF_I32, rows, 0);
    for (int r = 0; r < rows; r++) list[r] = (i32)(ref_next(seed) % x_rows);
    return list;
}

static void make_y(struct ref_case *c, struct matmul_args *a, int add, int rows, int n, unsigned long long *seed)
{
    a->y_stride = add ? n + 5 : n;
    size_t count = (size_t)rows * a->y_stride;
    a->y = ref_buf(c, "y", add ? REF_INOUT : REF_OUT, REF_F32, count, 1e-5);
    if (add) ref_fill_f32(a->y, count, seed, 1);
}

/* One to four parts of uneven widths. */
static void make_parts(struct ref_case *c, struct matmul_args *a, int rows, int n, unsigned long long *seed)
{
    static const char *const names[MATMUL_PARTS] = { "part 0", "part 1", "part 2", "part 3" };
    int parts = n < MATMUL_PARTS ? 1 : 1 + (int)(ref_next(seed) % MATMUL_PARTS);
    for (int i = 1; i <= MATMUL_PARTS; i++) a->first[i] = i < parts ? (i32)((i64)n * i / parts - (i64)(ref_next(seed) % ((unsigned)n / parts))) : n;
    for (int i = 0; i < parts; i++)
        a->part[i] = ref_buf(c, names[i], REF_OUT, REF_F32, (size_t)rows * (size_t)(a->first[i + 1] - a->first[i]), 1e-5);
}

/* What class half may be off by. A sum of 16 products is rounded at each step by 0.42 of 2^-11 of what it is then (root mean square), which
 * after i products is about sqrt(i) of one: sqrt(1 + 2 + .. + 16) * 0.42 / sqrt(16) = 1.2 parts in 2^11 of the sum's own deviation, and as
 * errors and sums both grow by the root of k, of that of a whole y. This is |x| times 0.6, the deviation of w (draw_block): 0.73 |x| / 2^11.
 * Accepted is eleven times that, |x| / 2^8 of the longest row. One 32-block of K = 12288 left out, 0.6 |x| / sqrt(384), is eight times as much. */
static double half_error(const struct act_q8 *a, int rows, int k)
{
    double longest = 0;
    for (i64 r = 0; r < rows; r++) {
        double sum = 0;
        for (i64 b = r * (k / 32); b < (r + 1) * (k / 32); b++)
            for (i64 i = b * 32; i < (b + 1) * 32; i++) sum += (double)a->q[i] * a->q[i] * a->d[b] * a->d[b];
        longest = fmax(longest, sum);
    }
    return sqrt(longest) / 256;
}

static void accept_halves(struct ref_case *c, const struct matmul_args *a, int x_rows, int k)
{
    double most = half_error(&a->a, x_rows, k);
    if (a->y) ref_buf_half(c, a->y, most);
    for (int i = 0; i < MATMUL_PARTS; i++)
        if (a->part[i]) ref_buf_half(c, a->part[i], most);
}

enum { LARGE = 1 << 28 };    /* elements of a matrix that is not doubled */

static int matmul_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct matmul_args *a = args;
    struct ref_weights w = weights_of(s);
    if (!w.format || !w.layout || !w.layout->fits(w.format, w.n, w.k)) return -1;
    int offset = (int)(ref_next(&seed) & 1) && !size->plain && w.n * w.k < LARGE, listed = (int)(ref_next(&seed) & 1) && !size->plain;
    int x_rows = size->rows + (listed ? 3 : 0);
    memset(a, 0, sizeof *a);
    i32 *rows = ref_buf(c, "n_rows", REF_IN, REF_I32, 1, 0);
    *rows = size->rows;
    a->n_rows = rows;
    a->w = ref_weights(c, &w, 1 + offset, &seed);
    if (offset) {
        i64 *at = ref_buf(c, "w_offset", REF_IN, REF_BYTES, sizeof *at, 0);
        *at = ref_weights_bytes(&w);
        a->w_offset = at;
    }
    if (listed) a->list = make_list(c, size->rows, x_rows, &seed);
    if (shape_is(s, "act", "q8")) {
        a->a = ref_act_q8(c, x_rows, (int)w.k, &seed);
    } else {
        f32 *x = ref_buf(c, "x", REF_IN, REF_F32, (size_t)x_rows * (size_t)w.k, 0);
        ref_fill_f32(x, (size_t)x_rows * (size_t)w.k, &seed, 1);
        a->x = x;
    }
    if (shape_is(s, "layout", "planes")) a->work = ref_buf(c, "work", REF_WORK, REF_F32, (size_t)matmul_work(size->rows) / 4, 0);
    if (shape_is(s, "epi", "parts")) make_parts(c, a, size->rows, (int)w.n, &seed);
    else make_y(c, a, shape_is(s, "epi", "add"), size->rows, (int)w.n, &seed);
    if (shape_is(s, "act", "q8")) accept_halves(c, a, x_rows, (int)w.k);
    return 0;
}

static double x_at(const struct matmul_args *a, const struct ref_weights *w, i64 row, i64 i)
{
    if (a->x) return a->x[row * w->k + i];
    return (double)a->a.q[row * w->k + i] * a->a.d[row * (w->k / 32) + i / 32];
}

/* Sixteen sums, over every sixteenth product each: independent of each other, so that a processor works on them at once. */
REF_WIDE static double dot(const f32 *w, const double *x, i64 k)
{
    enum { WIDE = 4, SUMS = 4 };
    typedef f32 floats __attribute__((vector_size(WIDE * sizeof(f32)), aligned(4)));
    typedef double doubles __attribute__((vector_size(WIDE * sizeof(double)), aligned(8)));
    doubles p0 = { 0 }, p1 = { 0 }, p2 = { 0 }, p3 = { 0 };
    double sum = 0;
    i64 i = 0;
    for (; i + SUMS * WIDE <= k; i += SUMS * WIDE) {
        const floats *a = (const floats *)(w + i);
        const doubles *b = (const doubles *)(x + i);
        p0 += __builtin_convertvector(a[0], doubles) * b[0];
        p1 += __builtin_convertvector(a[1], doubles) * b[1];
        p2 += __builtin_convertvector(a[2], doubles) * b[2];
        p3 += __builtin_convertvector(a[3], doubles) * b[3];
    }
    for (; i < k; i++) sum += w[i] * x[i];
    p0 += p1 + (p2 + p3);
    return sum + (p0[0] + p0[1]) + (p0[2] + p0[3]);
}

struct product {
    const struct matmul_args *a;
    struct ref_weights w;
    int add, parts;
    double *x;    /* [n_rows][k] */
};

static void columns(void *arg, i64 begin, i64 end)
{
    const struct product *p = arg;
    const struct matmul_args *a = p->a;
    const char *base = (const char *)a->w + (a->w_offset ? *a->w_offset : 0);
    f32 *row = malloc((size_t)p->w.k * sizeof *row);
    if (!row) abort();
    for (i64 j = begin; j < end; j++) {
        p->w.layout->row(p->w.format, row, base, p->w.n, p->w.k, j);
        for (i64 r = 0; r < *a->n_rows; r++) {
            double sum = dot(row, p->x + r * p->w.k, p->w.k);
            f32 *y = p->parts ? matmul_part(a, (int)r, (int)j) : a->y + r * a->y_stride + j;
            *y = (f32)(p->add ? *y + sum : sum);
        }
    }
    free(row);
}

static void matmul_run(const void *args, const struct q_shape *s)
{
    const struct matmul_args *a = args;
    struct product p = { a, weights_of(s), shape_is(s, "epi", "add"), shape_is(s, "epi", "parts"), NULL };
    i64 k = p.w.k;
    if (!(p.x = malloc((size_t)*a->n_rows * (size_t)k * sizeof *p.x + 1))) abort();
    for (i64 r = 0; r < *a->n_rows; r++)
        for (i64 i = 0; i < k; i++) p.x[r * k + i] = x_at(a, &p.w, a->list ? a->list[r] : r, i);
    ref_share(p.w.n, 16 + (1 << 18) / k, columns, &p);
    free(p.x);
}

const struct op_ref ref_matmul = { "matmul", sizeof(struct matmul_args), matmul_make, matmul_run };
