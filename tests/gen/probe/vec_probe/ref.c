/* vec_probe: what each part of the vector prelude means, in double. Results of exp and its kin are compared as bit patterns: a
 * tolerance of one there is one unit in the last place. */
#include "templates/ref.h"
#include "args.h"
#include <math.h>
#include <string.h>

enum { FOLD = 16, DOT = 96 };

static int exp_like(const struct q_shape *s) { return shape_is(s, "part", "exp") || shape_is(s, "part", "sexp"); }

/* A sweep over the range of exp with its ends, NaN and infinities; small and large numbers of all signs for the others. */
static void fill_x(f32 *x, size_t n, const struct q_shape *s, unsigned long long *seed)
{
    static const f32 ends[] = {-87.33f, -87.34f, 88.72f, 88.73f, -INFINITY, INFINITY, 0, -0.0f, 1, -1, 1e-30f, -1e-30f, 1e30f, -1e30f};
    for (size_t i = 0; i < n; i++) {
        if (exp_like(s)) x[i] = (f32)(-88 + 177.0 * (double)i / (double)n);
        else if (shape_is(s, "part", "to_f16")) x[i] = (f32)(ref_normal(seed) * exp2(ref_uniform(seed, -28, 17)));
        else x[i] = (f32)(ref_normal(seed) * 20);
        if (i % 17 == 16 && exp_like(s)) x[i] = ends[i / 17 % (sizeof ends / sizeof *ends)];
    }
}

/* to_f16: every half exactly, and the ties between neighbours, come before the random ones. */
static void fill_halves(u16 *h, f32 *x, size_t n, const struct q_shape *s)
{
    for (size_t i = 0; i < n; i++) h[i] = (u16)(i * 40503u);
    for (size_t i = 0; i < n && i < 131072 && shape_is(s, "part", "to_f16"); i++) {
        u16 low = (u16)(i / 2), high = (u16)(low + 1);
        x[i] = i % 2 ? (ref_half_to_f32(low) + ref_half_to_f32(high)) / 2 : ref_half_to_f32(low);
        if (isnan(x[i])) x[i] = INFINITY;
    }
}

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    size_t n = (size_t)size->rows;
    i32 *count = ref_buf(c, "n", REF_IN, REF_I32, 1, 0);
    f32 *x = ref_buf(c, "x", REF_IN, REF_F32, n, 0), *z = ref_buf(c, "z", REF_IN, REF_F32, n, 0);
    u16 *h = ref_buf(c, "h", REF_IN, REF_F16, n, 0);
    *count = size->rows;
    fill_x(x, n, s, &seed);
    ref_fill_f32(z, n, &seed, 3);
    fill_halves(h, x, n, s);
    *(struct vec_probe_args *)args = (struct vec_probe_args){.n = count, .x = x, .z = z, .h = h};
    struct vec_probe_args *a = args;
    if (shape_is(s, "part", "to_f16")) a->g = ref_buf(c, "g", REF_OUT, REF_F16, n, 0);
    else if (exp_like(s)) a->y = ref_buf(c, "y as bits", REF_OUT, REF_I32, n, 1);
    else a->y = ref_buf(c, "y", REF_OUT, REF_F32, n, shape_is(s, "part", "from_f16") ? 0 : 3e-7);
    return 0;
}

static double exp_truth(f32 x) { return x < -87.33f ? 0 : x > 88.72f ? INFINITY : exp(x); }

static double lane(const struct vec_probe_args *a, const char *part, int i)
{
    double x = a->x[i], z = a->z[i];
    u32 wide = (u32)a->h[i] << 16;
    f32 bf16;
    memcpy(&bf16, &wide, 4);
    if (strstr(part, "exp")) return exp_truth(a->x[i]);
    if (!strcmp(part, "sigmoid")) return 1 / (1 + exp(-x));
    if (!strcmp(part, "silu")) return x / (1 + exp(-x));
    if (!strcmp(part, "from_f16")) return ref_half_to_f32(a->h[i]);
    if (!strcmp(part, "from_bf16")) return bf16;
    if (!strcmp(part, "minmax")) return fabs(x - z);
    return nearbyint(x);
}

/* Sum or largest of the 16 around i; beyond the end there are zeros. */
static double fold(const struct vec_probe_args *a, int sum, int i)
{
    int first = i / FOLD * FOLD, last = first + FOLD < *a->n ? first + FOLD : *a->n;
    double r = sum || last < first + FOLD ? 0 : a->x[first];
    for (int j = first; j < last; j++) r = sum ? r + a->x[j] : fmax(r, a->x[j]);
    return r;
}

static double dot(const struct vec_probe_args *a, const f32 *z, int i, int granule)
{
    int n = *a->n - i < DOT ? *a->n - i : DOT, less = i / DOT % 40;
    double sum = 0;
    if (i % DOT) return 0;
    n = (n - (less < n ? less : 0)) / granule * granule;
    for (int j = 0; j < n; j++) sum += (double)a->x[i + j] * z[i + j];
    return sum;
}

static void run(const void *args, const struct q_shape *s)
{
    const struct vec_probe_args *a = args;
    const char *part = shape_find(s, "part");
    for (int i = 0; i < *a->n; i++) {
        if (a->g) a->g[i] = ref_f32_to_half(a->x[i]);
        else if (!strncmp(part, "dot32", 5)) a->y[i] = (f32)dot(a, a->z, i, part[5] ? 32 : 1);
        else if (!strcmp(part, "sumsq32")) a->y[i] = (f32)dot(a, a->x, i, 1);
        else if (!strcmp(part, "sum") || !strcmp(part, "hmax")) a->y[i] = (f32)fold(a, part[0] == 's', i);
        else a->y[i] = (f32)lane(a, part, i);
    }
}

const struct op_ref ref_vec_probe = {"vec_probe", sizeof(struct vec_probe_args), make, run};
