/* Case and truth of matmul and matvec. The weights lie behind a second matrix (w_offset) in half of the cases, x rows are picked by a
 * list in half, the residual form has a stride wider than n. Weight bytes are arbitrary, -128 included. */
#include "templates/ref.h"

#include "runtime/layout.h"
#include "templates/matmul/args.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct weights {
    const struct q_format *format;
    const struct q_layout *layout;
    int n, k;
};

static struct weights weights_of(const struct q_shape *s)
{
    const char *type = shape_find(s, "type"), *layout = shape_find(s, "layout");
    struct weights w = { q_format_by_name(type ? type : ""), q_layout_find(layout ? layout : ""), (int)shape_int(s, "n", 0),
                         (int)shape_int(s, "k", 0) };
    return w;
}

/* Large matrices repeat after a prime number of blocks, so that no two rows are alike and a gigabyte is soon there. */
enum { PERIOD = 524287 };

static void fill_q8(unsigned char *p, size_t blocks, int k, unsigned long long *seed)
{
    for (size_t b = 0; b < blocks && b < PERIOD; b++) {
        u16 d = ref_f32_to_half((f32)(ref_uniform(seed, 0.5, 1.5) / 128));
        memcpy(p + b * 34, &d, 2);
        for (int i = 0; i < 32; i += 8) {
            unsigned long long bits = ref_next(seed);
            memcpy(p + b * 34 + 2 + i, &bits, 8);
        }
    }
    for (size_t b = PERIOD; b < blocks; b += PERIOD) memcpy(p + b * 34, p, (blocks - b < PERIOD ? blocks - b : PERIOD) * 34);
}

static void fill_file(const struct q_format *f, void *p, size_t count, int k, unsigned long long *seed)
{
    if (f->type == Q_TYPE_Q8_0) {
        fill_q8(p, count / 32, k, seed);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        f32 x = (f32)ref_normal(seed);
        f->quantise((char *)p + i * f->bytes, &x, 1);
    }
}

/* Bytes from one matrix to the next: whole 64-byte lines, but for rows as in the file, which experts keep. */
static size_t distance(const struct weights *w)
{
    size_t bytes = (size_t)w->layout->bytes(w->format, w->n, w->k);
    return w->layout->pack ? (bytes + 63) / 64 * 64 : bytes;
}

/* `copies` matrices one behind the other, in the shape's layout. */
static void *make_weights(struct ref_case *c, const struct weights *w, int copies, unsigned long long *seed)
{
    size_t bytes = distance(w);
    char *device = ref_buf(c, "w", REF_IN, REF_BYTES, bytes * copies, 0);
    void *file = malloc(bytes);
    if (!file) abort();
    for (int i = 0; i < copies; i++) {
        fill_file(w->format, file, (size_t)w->n * w->k, w->k, seed);
        if (w->layout->pack) w->layout->pack(w->format, device + i * bytes, file, w->n, w->k, 0, w->n);
        else memcpy(device + i * bytes, file, bytes);
    }
    free(file);
    return device;
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
 * errors and sums both grow by the root of k, of that of a whole y. This is |x| times 0.6, the deviation of w (fill_q8): 0.73 |x| / 2^11.
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
    struct weights w = weights_of(s);
    if (!w.format || !w.layout || !w.layout->fits(w.format, w.n, w.k)) return -1;
    int offset = (int)(ref_next(&seed) & 1) && !size->plain && (i64)w.n * w.k < LARGE, listed = (int)(ref_next(&seed) & 1) && !size->plain, x_rows = size->rows + (listed ? 3 : 0);
    memset(a, 0, sizeof *a);
    i32 *rows = ref_buf(c, "n_rows", REF_IN, REF_I32, 1, 0);
    *rows = size->rows;
    a->n_rows = rows;
    a->w = make_weights(c, &w, 1 + offset, &seed);
    if (offset) {
        i64 *at = ref_buf(c, "w_offset", REF_IN, REF_BYTES, sizeof *at, 0);
        *at = (i64)distance(&w);
        a->w_offset = at;
    }
    if (listed) a->list = make_list(c, size->rows, x_rows, &seed);
    if (shape_is(s, "act", "q8")) {
        a->a = ref_act_q8(c, x_rows, w.k, &seed);
    } else {
        f32 *x = ref_buf(c, "x", REF_IN, REF_F32, (size_t)x_rows * w.k, 0);
        ref_fill_f32(x, (size_t)x_rows * w.k, &seed, 1);
        a->x = x;
    }
    if (shape_is(s, "layout", "planes")) a->work = ref_buf(c, "work", REF_WORK, REF_F32, (size_t)matmul_work(size->rows) / 4, 0);
    if (shape_is(s, "epi", "parts")) make_parts(c, a, size->rows, w.n, &seed);
    else make_y(c, a, shape_is(s, "epi", "add"), size->rows, w.n, &seed);
    if (shape_is(s, "act", "q8")) accept_halves(c, a, x_rows, w.k);
    return 0;
}

static double x_at(const struct matmul_args *a, const struct weights *w, i64 row, int i)
{
    if (a->x) return a->x[row * w->k + i];
    return (double)a->a.q[row * w->k + i] * a->a.d[row * (w->k / 32) + i / 32];
}

static void matmul_run(const void *args, const struct q_shape *s)
{
    const struct matmul_args *a = args;
    struct weights w = weights_of(s);
    int add = shape_is(s, "epi", "add"), parts = shape_is(s, "epi", "parts");
    const char *base = (const char *)a->w + (a->w_offset ? *a->w_offset : 0);
    float *row = malloc((size_t)w.k * sizeof *row);
    double *x = malloc((size_t)*a->n_rows * (size_t)w.k * sizeof *x + 1);
    if (!row || !x) abort();
    for (int r = 0; r < *a->n_rows; r++)
        for (int i = 0; i < w.k; i++) x[(size_t)r * w.k + i] = x_at(a, &w, a->list ? a->list[r] : r, i);
    for (int j = 0; j < w.n; j++) {
        w.layout->row(w.format, row, base, w.n, w.k, j);
        for (int r = 0; r < *a->n_rows; r++) {
            double sum = 0;
            for (int i = 0; i < w.k; i++) sum += row[i] * x[(size_t)r * w.k + i];
            f32 *y = parts ? matmul_part(a, r, j) : a->y + r * a->y_stride + j;
            *y = (f32)(add ? *y + sum : sum);
        }
    }
    free(row);
    free(x);
}

const struct op_ref ref_matmul = { "matmul", sizeof(struct matmul_args), matmul_make, matmul_run };
