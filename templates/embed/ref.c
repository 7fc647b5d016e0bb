/* Case and truth of embed: tokens of the step, some rows (token -1) from step->embd. Exact: a weight's value is one fp32 number. */
#include "templates/ref.h"

#include "templates/embed/args.h"

#include <string.h>

/* Any int8, but scales below the infinities of half. */
static void draw_block(unsigned char *block, unsigned long long *seed)
{
    for (int i = 0; i < 34; i += 8) {
        unsigned long long bits = ref_next(seed);
        memcpy(block + i, &bits, 34 - i < 8 ? 34 - i : 8);
    }
    block[1] &= 0xbf;
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
    a->w = ref_weights(c, &(struct ref_weights){ f, l, vocab, n, draw_block, 5 }, 1, &seed);
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
