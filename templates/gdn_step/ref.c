/* The truth of gdn_step and gdn_chunk: the token recurrence of args.h in double, the state rounded where a segment ends.
 * Decays reach from none (g = 0) to complete (g = -300), since a chunked form must not lose what follows a complete one. */
#include "templates/ref.h"
#include "args.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sizes {
    long kh, vh, dim, width;
    int tiled;
};

static struct sizes sizes(const struct q_shape *s)
{
    struct sizes z = { shape_int(s, "k_heads", 0), shape_int(s, "v_heads", 0), shape_int(s, "dim", 0), 0, shape_is(s, "group", "tiled") };
    z.width = (2 * z.kh + z.vh) * z.dim;
    return z;
}

/* q and k as gdn_prep leaves them: unit length, q divided by sqrt(dim). */
static void fill_c(f32 *c, long rows, const struct sizes *z, unsigned long long *seed)
{
    ref_fill_f32(c, rows * z->width, seed, 1);
    for (long r = 0; r < rows; r++)
        for (long h = 0; h < 2 * z->kh; h++) {
            f32 *x = c + r * z->width + h * z->dim;
            double sum = 1e-6;
            for (long i = 0; i < z->dim; i++) sum += (double)x[i] * x[i];
            double scale = 1 / sqrt(sum) / (h < z->kh ? sqrt((double)z->dim) : 1);
            for (long i = 0; i < z->dim; i++) x[i] = (f32)(x[i] * scale);
        }
}

static void fill_gates(f32 *g, f32 *b, long n, unsigned long long *seed)
{
    for (long i = 0; i < n; i++) {
        double kind = ref_uniform(seed, 0, 1);
        g[i] = kind < 0.05 ? 0 : kind < 0.1 ? -300 : (f32)-exp(ref_uniform(seed, -7, 1));
        b[i] = (f32)ref_uniform(seed, 0, 1);
    }
}

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct gdn_args *a = args;
    struct sizes z = sizes(s);
    int slots, pages;
    struct step *step = ref_step(c, size, 0, 1, &slots, &pages, &seed);
    long rows = step->n_rows;
    size_t kept = (size_t)slots * z.vh * z.dim * z.dim;
    f32 *in = ref_buf(c, "c", REF_IN, REF_F32, rows * z.width, 0);
    f32 *g = ref_buf(c, "g", REF_IN, REF_F32, rows * z.vh, 0), *b = ref_buf(c, "b", REF_IN, REF_F32, rows * z.vh, 0);
    fill_c(in, rows, &z, &seed);
    fill_gates(g, b, rows * z.vh, &seed);
    a->step = step, a->c = in, a->g = g, a->b = b;
    a->state = ref_buf(c, "state", REF_INOUT, REF_F32, kept, 5e-6);
    ref_fill_f32(a->state, kept, &seed, 0.5);
    a->o = ref_buf(c, "o", REF_OUT, REF_F32, rows * z.vh * z.dim, 5e-6);
    i64 work = gdn_work(z.dim, size->parts), card = gdn_work_cuda(rows, z.vh);
    a->work = ref_buf(c, "work", REF_WORK, REF_BYTES, work > card ? work : card, 0);
    return 0;
}

/* One token of one head; S is [dim k][dim v], d is 2 dim doubles of scratch. */
static void token(const struct gdn_args *a, const struct sizes *z, long r, long h, double *S, double *d)
{
    long n = z->dim, kh = z->tiled ? h % z->kh : h / (z->vh / z->kh);
    const f32 *q = a->c + r * z->width + kh * n, *k = q + z->kh * n, *v = a->c + r * z->width + (2 * z->kh + h) * n;
    double decay = exp(a->g[r * z->vh + h]), b = a->b[r * z->vh + h], *restrict o = d + n;
    memset(d, 0, 2 * n * sizeof *d);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) d[j] += (S[i * n + j] *= decay) * k[i];
    for (long j = 0; j < n; j++) d[j] = b * (v[j] - d[j]);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) o[j] += (S[i * n + j] += k[i] * d[j]) * q[i];
    for (long j = 0; j < n; j++) a->o[(r * z->vh + h) * n + j] = (f32)o[j];
}

static void segment(const struct gdn_args *a, const struct sizes *z, const struct segment *g, long h, double *S)
{
    long size = z->dim * z->dim;
    for (long i = 0; i < size; i++) S[i] = g->load < 0 ? 0 : a->state[(g->load * z->vh + h) * size + i];
    for (long r = g->row; r < g->row + g->rows; r++) token(a, z, r, h, S, S + size);
    f32 *to = a->state + (g->store * z->vh + h) * size;
    for (long i = 0; i < size; i++) to[i] = (f32)S[i];
    if (g->copy >= 0) memcpy(a->state + (g->copy * z->vh + h) * size, to, size * sizeof *to);
}

struct heads {
    const struct gdn_args *a;
    struct sizes z;
};

static void some_heads(void *arg, i64 begin, i64 end)
{
    const struct heads *p = arg;
    double *S = malloc((p->z.dim * p->z.dim + 2 * p->z.dim) * sizeof *S);
    if (!S) abort();
    for (long h = begin; h < end; h++)
        for (int g = 0; g < p->a->step->n_segments; g++) segment(p->a, &p->z, &p->a->step->segments[g], h, S);
    free(S);
}

static void run(const void *args, const struct q_shape *s)
{
    struct heads p = { args, sizes(s) };
    ref_share(p.z.vh, 1 + 100000 / (p.z.dim * p.z.dim * (p.a->step->n_rows + 1)), some_heads, &p);
}

const struct op_ref ref_gdn_step = { "gdn_step", sizeof(struct gdn_args), make, run };
