/* Case and truth of embed: tokens of the step, some rows (token -1) from step->embd. Exact: a weight's value is one fp32 number. */
#include "templates/ref.h"

#include "runtime/layout.h"
#include "templates/embed/args.h"

#include <stdlib.h>
#include <string.h>

static void fill_weights(const struct q_format *f, unsigned char *p, size_t bytes, unsigned long long *seed)
{
    for (size_t i = 0; i < bytes; i += 8) {
        unsigned long long bits = ref_next(seed);
        memcpy(p + i, &bits, bytes - i < 8 ? bytes - i : 8);
    }
    if (f->type == Q_TYPE_Q8_0) {                      /* any int8, but scales below the infinities of half */
        for (size_t b = 1; b < bytes; b += 34) p[b] &= 0xbf;
        return;
    }
    for (size_t i = 0; i < bytes; i += f->bytes) {     /* floats: normal numbers */
        f32 x = (f32)ref_normal(seed);
        f->quantise(p + i, &x, 1);
    }
}

static void *make_weights(struct ref_case *c, const struct q_format *f, const struct q_layout *l, int vocab, int n,
                          unsigned long long *seed)
{
    size_t bytes = (size_t)l->bytes(f, vocab, n);
    void *device = ref_buf(c, "w", REF_IN, REF_BYTES, bytes, 0), *file = malloc(bytes);
    if (!file) abort();
    fill_weights(f, file, bytes, seed);
    if (l->pack) l->pack(f, device, file, vocab, n, 0, vocab);
    else memcpy(device, file, bytes);
    free(file);
    return device;
}

static int embed_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct embed_args *a = args;
    const char *type = shape_find(s, "type"), *layout = shape_find(s, "layout");
    const struct q_format *f = q_format_by_name(type ? type : "");
    const struct q_layout *l = q_layout_find(layout ? layout : "");
    int n = (int)shape_int(s, "n", 0), vocab = (int)shape_int(s, "vocab", 0), slots, pages;
    if (!f || !l || !l->fits(f, vocab, n)) return -1;
    memset(a, 0, sizeof *a);
    a->step = ref_step(c, size, n, vocab, &slots, &pages, &seed);
    a->w = make_weights(c, f, l, vocab, n, &seed);
    a->x = ref_buf(c, "x", REF_OUT, REF_F32, (size_t)size->rows * n, 0);
    return 0;
}

static void embed_run(const void *args, const struct q_shape *s)
{
    const struct embed_args *a = args;
    const struct q_format *f = q_format_by_name(shape_find(s, "type"));
    const struct q_layout *l = q_layout_find(shape_find(s, "layout"));
    int n = (int)shape_int(s, "n", 0), vocab = (int)shape_int(s, "vocab", 0);
    for (int r = 0; r < a->step->n_rows; r++) {
        i32 token = a->step->token[r];
        if (token < 0) memcpy(a->x + (size_t)r * n, a->step->embd + (size_t)r * n, n * sizeof(f32));
        else l->row(f, a->x + (size_t)r * n, a->w, vocab, n, token);
    }
}

const struct op_ref ref_embed = { "embed", sizeof(struct embed_args), embed_make, embed_run };
