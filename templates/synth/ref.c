/* Case and truth of synth: the formula of runtime/model_synth.c an element at a time, packed by runtime/layout.h. Exact. */
#include "templates/ref.h"

#include "runtime/layout.h"
#include "templates/synth/args.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int synth_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    const char *type = shape_find(s, "type"), *layout = shape_find(s, "layout");
    const struct q_format *f = q_format_by_name(type ? type : "");
    const struct q_layout *l = q_layout_find(layout ? layout : "");
    i64 n = shape_int(s, "n", 0), k = shape_int(s, "k", 0);
    if (!f || !l || !l->fits(f, n, k)) return -1;
    void *dst = ref_buf(c, "dst", REF_OUT, REF_BYTES, (size_t)l->bytes(f, n, k), 0);
    i64 row0 = l->pack && n > 2 ? n / 3 : 0, rows = l->pack && n > 2 ? n / 2 : n;     /* with rows that stay as they are on both sides */
    *(struct synth_args *)args = (struct synth_args){ .dst = dst, .row0 = row0, .n_rows = rows, .seed = ref_next(&seed),
                                                      .std = 1.0f / sqrtf((f32)k), .from = -16, .to = -1 };
    return 0;
}

/* The counter-th number of a seed: ref_next keeps its counter in the seed. */
static unsigned long long number(unsigned long long seed, unsigned long long counter)
{
    seed += counter * 0x9E3779B97F4A7C15ull;
    return ref_next(&seed);
}

static double unit(unsigned long long bits) { return (double)(bits >> 11) * 0x1p-53; }

static u16 scale_of(const struct synth_args *a, i64 block)
{
    f32 part = (f32)unit(number(a->seed, (unsigned long long)block * 5 + 4));
    return ref_f32_to_half(a->std / 73.6f * (0.75f + 0.5f * part));
}

static i8 byte_at(const struct synth_args *a, i64 i)
{
    unsigned long long bits = number(a->seed, (unsigned long long)(i / 32 * 5 + i % 32 / 8));
    i8 q = (i8)(bits >> i % 8 * 8 & 255);
    return q == -128 ? 127 : q;
}

static void make_q8(const struct synth_args *a, unsigned char *file, i64 count)
{
    for (i64 i = 0; i < count; i++) {
        u16 d = scale_of(a, i / 32);
        memcpy(file + i / 32 * 34, &d, 2);
        file[i / 32 * 34 + 2 + i % 32] = (unsigned char)byte_at(a, i);
    }
}

static void synth_run(const void *args, const struct q_shape *s)
{
    const struct synth_args *a = args;
    const struct q_format *f = q_format_by_name(shape_find(s, "type"));
    const struct q_layout *l = q_layout_find(shape_find(s, "layout"));
    i64 n = shape_int(s, "n", 0), k = shape_int(s, "k", 0), bytes = l->bytes(f, n, k);
    unsigned char *file = calloc((size_t)bytes, 1);
    if (!file) abort();
    if (f->type == Q_TYPE_Q8_0) make_q8(a, file + a->row0 * q_row_bytes(f, k), a->n_rows * k);
    for (i64 i = 0; i < n * k && f->type != Q_TYPE_Q8_0; i++) {
        f32 x = (f32)byte_at(a, i) * ref_half_to_f32(scale_of(a, i / 32));
        if (shape_is(s, "kind", "vector")) x = (f32)(a->from + (a->to - a->from) * unit(number(a->seed, (unsigned long long)i)));
        f->quantise(file + i * f->bytes, &x, 1);
    }
    if (l->pack) l->pack(f, a->dst, file, n, k, a->row0, a->row0 + a->n_rows);
    else memcpy(a->dst, file, (size_t)bytes);
    free(file);
}

const struct op_ref ref_synth = { "synth", sizeof(struct synth_args), synth_make, synth_run };
