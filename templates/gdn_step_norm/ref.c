/* gdn_step_norm: the case of gdn_step with z and w besides; the truth is that of gdn_step, then that of gated_norm. */
#include "templates/ref.h"
#include "args.h"
#include "templates/gdn_step/args.h"
#include "templates/gated_norm/args.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const f32 *copy(struct ref_case *c, const char *name, const f32 *from, size_t n)
{
    return memcpy(ref_buf(c, name, REF_IN, REF_F32, n, 0), from, n * sizeof *from);
}

/* Steps of one seed are equal, so gdn_step's buffers fit the step made here. */
static int fill_step(struct ref_case *c, struct gdn_step_norm_args *a, const struct q_shape *s, const struct ref_size *size,
                     unsigned long long *seed)
{
    size_t kh = (size_t)shape_int(s, "k_heads", 0), vh = (size_t)shape_int(s, "v_heads", 0), dim = (size_t)shape_int(s, "dim", 0);
    struct ref_case *other = ref_case_open();
    struct gdn_args from;
    int slots, pages, rc = ref_find("gdn_step")->make(other, &from, s, size, *seed);
    if (!rc) {
        struct step *step = ref_step(c, size, 0, 1, &slots, &pages, seed);
        size_t rows = (size_t)step->n_rows, kept = (size_t)slots * vh * dim * dim;
        a->step = step;
        a->c = copy(c, "c", from.c, rows * (2 * kh + vh) * dim);
        a->g = copy(c, "g", from.g, rows * vh);
        a->b = copy(c, "b", from.b, rows * vh);
        a->state = memcpy(ref_buf(c, "state", REF_INOUT, REF_F32, kept, 5e-6), from.state, kept * sizeof(f32));
    }
    ref_case_close(other);
    return rc;
}

/* Where a head's outputs are small, the norm lifts their errors too: tolerances are wider than gated_norm's. */
static struct act_q8 out_q8(struct ref_case *c, size_t n)
{
    size_t blocks = n / Q8_BLOCK;
    return (struct act_q8){ref_buf(c, "q.q", REF_OUT, REF_I8, n, 1), ref_buf(c, "q.d", REF_OUT, REF_F32, blocks, 1e-5),
                           ref_buf(c, "q.s", REF_OUT, REF_I32, blocks, 4)};
}

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct gdn_step_norm_args *a = args;
    memset(a, 0, sizeof *a);
    int rc = fill_step(c, a, s, size, &seed);
    if (rc) return rc;
    size_t dim = (size_t)shape_int(s, "dim", 0), n = (size_t)a->step->n_rows * (size_t)shape_int(s, "v_heads", 0) * dim;
    f32 *z = ref_buf(c, "z", REF_IN, REF_F32, n, 0), *w = ref_buf(c, "w", REF_IN, REF_F32, dim, 0);
    ref_fill_f32(z, n, &seed, 4);
    for (size_t i = 0; i < dim; i++) w[i] = (f32)ref_uniform(&seed, 0.2, 1.8);
    a->z = z, a->w = w, a->eps = 1e-6f;
    if (!shape_is(s, "out", "q8")) a->y = ref_buf(c, "y", REF_OUT, REF_F32, n, 1e-5);
    if (!shape_is(s, "out", "f32")) a->q = out_q8(c, n);
    return 0;
}

static void run(const void *args, const struct q_shape *s)
{
    const struct gdn_step_norm_args *a = args;
    long heads = shape_int(s, "v_heads", 0), dim = shape_int(s, "dim", 0);
    struct gdn_args step = {.step = a->step, .c = a->c, .g = a->g, .b = a->b, .state = a->state};
    struct q_shape shape;
    struct q_err e;
    char text[80];
    snprintf(text, sizeof text, "heads=%ld,dim=%ld,out=%s", heads, dim, shape_find(s, "out"));
    step.o = malloc((size_t)(a->step->n_rows * heads * dim) * sizeof *step.o);
    if (!step.o || shape_parse(&shape, text, &e)) abort();
    ref_find("gdn_step")->run(&step, s);
    struct gated_norm_args norm = {.n_rows = &a->step->n_rows, .o = step.o, .z = a->z, .w = a->w, .eps = a->eps,
                                   .y = a->y, .q = a->q};
    ref_find("gated_norm")->run(&norm, &shape);
    free(step.o);
}

const struct op_ref ref_gdn_step_norm = {"gdn_step_norm", sizeof(struct gdn_step_norm_args), make, run};
