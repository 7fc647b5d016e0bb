/* Case and truth of synth: the formula of runtime/model_synth.c a block at a time, packed by runtime/layout.h, on all processors. Exact. */
#include "templates/ref.h"

#include "runtime/layout.h"
#include "templates/synth/args.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32, FILE_BLOCK = 34, ROWS = 16, MOST = 1 << 27 };     /* rows: packed at a time; most: elements that a case makes up */

static int synth_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    const char *type = shape_find(s, "type"), *layout = shape_find(s, "layout");
    const struct q_format *f = q_format_by_name(type ? type : "");
    const struct q_layout *l = q_layout_find(layout ? layout : "");
    i64 n = shape_int(s, "n", 0), k = shape_int(s, "k", 0);
    if (!f || !l || !l->fits(f, n, k)) return -1;
    void *dst = ref_buf(c, "dst", REF_OUT, REF_BYTES, (size_t)l->bytes(f, n, k), 0);
    /* With rows that stay as they are on both sides. */
    i64 rows = !l->pack || n <= 2 ? n : n / 2 <= MOST / k ? n / 2 : MOST / k, row0 = (n - rows) - (n - rows) / 3;
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

static void bytes_of(i8 q[BLOCK], const struct synth_args *a, i64 block)
{
    for (int i = 0; i < BLOCK / 8; i++) {
        unsigned long long bits = number(a->seed, (unsigned long long)(block * 5 + i));
        memcpy(q + 8 * i, &bits, sizeof bits);
    }
    for (int i = 0; i < BLOCK; i++) q[i] = q[i] == -128 ? 127 : q[i];
}

struct making {
    const struct synth_args *a;
    const struct q_format *f;
    const struct q_layout *l;
    i64 n, k;
    int vector;
};

/* Blocks as the file has them. */
static void make_q8(const struct synth_args *a, unsigned char *file, i64 first, i64 blocks)
{
    for (i64 b = first; b < first + blocks; b++, file += FILE_BLOCK) {
        u16 d = scale_of(a, b);
        memcpy(file, &d, sizeof d);
        bytes_of((i8 *)file + sizeof d, a, b);
    }
}

/* Pieces of ROWS rows of the tensor, by a file of as many, which the packing wants where they are in the whole one. */
static void pack_rows(void *arg, i64 begin, i64 end)
{
    const struct making *m = arg;
    const struct synth_args *a = m->a;
    i64 row_bytes = q_row_bytes(m->f, m->k);
    unsigned char *file = malloc((size_t)(ROWS * row_bytes));
    if (!file) abort();
    for (i64 row = begin * ROWS; row < end * ROWS && row < a->n_rows; row += ROWS) {
        i64 rows = a->n_rows - row < ROWS ? a->n_rows - row : ROWS, at = a->row0 + row;
        make_q8(a, file, row * (m->k / BLOCK), rows * (m->k / BLOCK));
        m->l->pack(m->f, a->dst, (const void *)((uintptr_t)file - (uintptr_t)(at * row_bytes)), m->n, m->k, at, at + rows);
    }
    free(file);
}

static void plain_blocks(void *arg, i64 begin, i64 end)
{
    const struct making *m = arg;
    const struct synth_args *a = m->a;
    for (i64 b = begin; b < end; b++) {
        i8 q[BLOCK];
        f32 x[BLOCK], d = ref_half_to_f32(scale_of(a, b));
        i64 at = b * BLOCK, count = m->n * m->k - at < BLOCK ? m->n * m->k - at : BLOCK;
        bytes_of(q, a, b);
        for (int i = 0; i < BLOCK; i++) x[i] = (f32)q[i] * d;
        for (int i = 0; i < BLOCK && m->vector; i++) x[i] = (f32)(a->from + (a->to - a->from) * unit(number(a->seed, (unsigned long long)(at + i))));
        m->f->quantise((char *)a->dst + at * m->f->bytes, x, count);
    }
}

static void synth_run(const void *args, const struct q_shape *s)
{
    const struct synth_args *a = args;
    struct making m = { a, q_format_by_name(shape_find(s, "type")), q_layout_find(shape_find(s, "layout")), shape_int(s, "n", 0),
                        shape_int(s, "k", 0), shape_is(s, "kind", "vector") };
    if (m.f->type != Q_TYPE_Q8_0) ref_share((m.n * m.k + BLOCK - 1) / BLOCK, 1024, plain_blocks, &m);
    else if (m.l->pack) ref_share((a->n_rows + ROWS - 1) / ROWS, 1 + (1 << 18) / (ROWS * m.k), pack_rows, &m);
    else make_q8(a, a->dst, 0, m.n * (m.k / BLOCK));
}

const struct op_ref ref_synth = { "synth", sizeof(struct synth_args), synth_make, synth_run };
