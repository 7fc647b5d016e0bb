/* The truth of gdn_conv_prep: those of conv_silu and gdn_prep, one after the other. */
#include "templates/ref.h"

#include "args.h"
#include "templates/conv_silu/args.h"
#include "templates/gdn_prep/args.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct sizes {
    size_t k_heads, v_heads, dim, taps, channels;
};

static struct sizes sizes_of(const struct q_shape *s)
{
    struct sizes z = { .k_heads = shape_int(s, "k_heads", 0), .v_heads = shape_int(s, "v_heads", 0) };
    z.dim = shape_int(s, "dim", 0);
    z.taps = shape_int(s, "taps", 0);
    z.channels = (2 * z.k_heads + z.v_heads) * z.dim;
    return z;
}

/* alpha covers both ends of softplus. */
static void make_gates(struct ref_case *c, struct gdn_conv_prep_args *a, size_t rows, size_t heads, unsigned long long *seed)
{
    size_t n = rows * heads;
    f32 *alpha = ref_buf(c, "alpha", REF_IN, REF_F32, n, 0), *beta = ref_buf(c, "beta", REF_IN, REF_F32, n, 0);
    f32 *decay = ref_buf(c, "a", REF_IN, REF_F32, heads, 0), *dt = ref_buf(c, "dt", REF_IN, REF_F32, heads, 0);
    for (size_t i = 0; i < n; i++) {
        alpha[i] = (f32)ref_uniform(seed, -40, 40);
        beta[i] = (f32)ref_uniform(seed, -100, 100);
    }
    for (size_t h = 0; h < heads; h++) decay[h] = (f32)-exp(ref_uniform(seed, -3, 3));
    ref_fill_f32(dt, heads, seed, 1);
    a->alpha = alpha, a->beta = beta, a->a = decay, a->dt = dt;
    a->g = ref_buf(c, "g", REF_OUT, REF_F32, n, 1e-6);
    a->b = ref_buf(c, "b", REF_OUT, REF_F32, n, 1e-6);
}

/* The first head's weights are small enough for eps to count. v is not much larger than k: one tolerance serves all of c. */
static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct gdn_conv_prep_args *a = args;
    struct sizes z = sizes_of(s);
    int slots, pages;
    struct step *step = ref_step(c, size, 0, 1, &slots, &pages, &seed);
    size_t n = step->n_rows * z.channels, weights = z.channels * z.taps, kept = slots * (z.taps - 1) * z.channels;
    f32 *u = ref_buf(c, "u", REF_IN, REF_F32, n, 0), *w = ref_buf(c, "w", REF_IN, REF_F32, weights, 0);
    a->step = step, a->u = u, a->w = w;
    a->state = ref_buf(c, "state", REF_INOUT, REF_F32, kept, 0);
    a->c = ref_buf(c, "c", REF_OUT, REF_F32, n, 3e-6);
    ref_fill_f32(u, n, &seed, 1);
    ref_fill_f32(w, weights, &seed, 0.3);
    ref_fill_f32(a->state, kept, &seed, 1);
    for (size_t i = 0; i < z.dim * z.taps; i++) w[i] *= 1e-3f;
    make_gates(c, a, step->n_rows, z.v_heads, &seed);
    return 0;
}

static void run_op(const char *op, const void *args, const char *shape)
{
    const struct op_ref *ref = ref_find(op);
    struct q_shape s;
    if (!ref || shape_parse(&s, shape, NULL)) abort();
    ref->run(args, &s);
}

static void run(const void *args, const struct q_shape *s)
{
    const struct gdn_conv_prep_args *a = args;
    struct sizes z = sizes_of(s);
    struct conv_silu_args conv = { a->step, a->u, a->w, a->state, a->c };
    struct gdn_prep_args prep = { &a->step->n_rows, a->c, a->alpha, a->beta, a->a, a->dt, a->g, a->b };
    char shape[128];
    snprintf(shape, sizeof shape, "channels=%zu,taps=%zu", z.channels, z.taps);
    run_op("conv_silu", &conv, shape);
    snprintf(shape, sizeof shape, "k_heads=%zu,v_heads=%zu,dim=%zu", z.k_heads, z.v_heads, z.dim);
    run_op("gdn_prep", &prep, shape);
}

const struct op_ref ref_gdn_conv_prep = { "gdn_conv_prep", sizeof(struct gdn_conv_prep_args), make, run };
