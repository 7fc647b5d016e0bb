/* A weight of a case, in its layout. Gigabytes are soon there: q8_0 blocks repeat after a prime number of them, so that no two rows are alike,
 * and go into the layout from that one period; all processors take part. */
#include "templates/ref.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PERIOD = 524287, BLOCK = 34, ROWS = 16 };     /* rows: what a layout packs at a time */

struct making {
    const struct ref_weights *w;
    unsigned long long seed;
    unsigned char *file;          /* a period and ROWS rows more, so that those of any piece lie one behind the other */
    char *device;
};

i64 ref_weights_bytes(const struct ref_weights *w)
{
    i64 bytes = w->layout->bytes(w->format, w->n, w->k);
    return w->layout->pack ? (bytes + 63) / 64 * 64 : bytes;
}

static void draw_blocks(void *arg, i64 begin, i64 end)
{
    const struct making *m = arg;
    unsigned long long seed = m->seed;
    ref_skip(&seed, (unsigned long long)begin * m->w->draws);
    for (i64 b = begin; b < end; b++) m->w->block(m->file + b * BLOCK, &seed);
}

static void draw_floats(void *arg, i64 begin, i64 end)
{
    const struct making *m = arg;
    const struct q_format *f = m->w->format;
    unsigned long long seed = m->seed;
    ref_skip(&seed, (unsigned long long)begin * REF_NORMAL_DRAWS);
    for (i64 i = begin; i < end; i++) {
        f32 x = (f32)ref_normal(&seed);
        f->quantise(m->device + i * f->bytes, &x, 1);
    }
}

/* Pieces of ROWS rows, each from where it begins in the period. */
static void place_rows(void *arg, i64 begin, i64 end)
{
    const struct making *m = arg;
    const struct ref_weights *w = m->w;
    i64 row_bytes = q_row_bytes(w->format, w->k);
    for (i64 row = begin * ROWS; row < end * ROWS && row < w->n; row += ROWS) {
        i64 to = row + ROWS < w->n ? row + ROWS : w->n;
        const unsigned char *from = m->file + row * (w->k / 32) % PERIOD * BLOCK;
        if (!w->layout->pack) memcpy(m->device + row * row_bytes, from, (size_t)((to - row) * row_bytes));
        else w->layout->pack(w->format, m->device, (const void *)((uintptr_t)from - (uintptr_t)(row * row_bytes)), w->n, w->k, row, to);
    }
}

static void make_q8(struct making *m)
{
    i64 blocks = m->w->n * (m->w->k / 32), drawn = blocks < PERIOD ? blocks : PERIOD, all = drawn + ROWS * (m->w->k / 32);
    ref_share(drawn, 4096, draw_blocks, m);
    ref_skip(&m->seed, (unsigned long long)drawn * m->w->draws);
    for (i64 b = drawn; b < all; b += drawn) memcpy(m->file + b * BLOCK, m->file, (size_t)((all - b < drawn ? all - b : drawn) * BLOCK));
    ref_share((m->w->n + ROWS - 1) / ROWS, 1 + (1 << 20) / (ROWS * m->w->k), place_rows, m);
}

static void make_floats(struct making *m)
{
    ref_share(m->w->n * m->w->k, 16384, draw_floats, m);
    ref_skip(&m->seed, (unsigned long long)(m->w->n * m->w->k) * REF_NORMAL_DRAWS);
}

void *ref_weights(struct ref_case *c, const struct ref_weights *w, int copies, unsigned long long *seed)
{
    i64 bytes = ref_weights_bytes(w), used = w->layout->bytes(w->format, w->n, w->k), blocks = w->n * (w->k / 32);
    int q8 = w->format->type == Q_TYPE_Q8_0;
    void *borrowed = ref_buf_borrowed(c, "w", (size_t)(bytes * copies));
    if (borrowed) return borrowed;
    char *all = ref_buf(c, "w", REF_IN, REF_BYTES, (size_t)(bytes * copies), 0);
    struct making m = { .w = w, .seed = *seed, .device = all };
    if (q8 && !(m.file = malloc((size_t)((blocks < PERIOD ? blocks : PERIOD) + ROWS * (w->k / 32)) * BLOCK))) abort();
    for (int i = 0; i < copies; i++, m.device += bytes) {
        if (q8) make_q8(&m);
        else make_floats(&m);
        memset(m.device + used, 0xFF, (size_t)(bytes - used));
    }
    free(m.file);
    *seed = m.seed;
    return all;
}
