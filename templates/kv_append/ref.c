/* kv_append: case and truth. The pages are in and out: what belongs to other tokens must stay as it was, bit for bit. */
#include "templates/ref_kv.h"
#include "args.h"

struct side {
    enum kv_format format;
    int kv_heads, dim;
};

static struct side side_of(const struct q_shape *s, const char *format)
{
    return (struct side){ ref_kv_format(s, format), (int)shape_int(s, "kv_heads", 0), (int)shape_int(s, "head_dim", 0) };
}

static void *pages_of(struct ref_case *c, const char *name, const struct side *d, int pages, unsigned long long *seed)
{
    u8 *p = ref_kv_pages(c, name, REF_INOUT, d->format, d->kv_heads, d->dim, pages);
    size_t n = (size_t)pages * (size_t)d->kv_heads * (size_t)kv_piece_bytes(d->format, d->dim);
    for (size_t i = 0; d->format == KV_F32 && i < n / 4; i++) ((f32 *)p)[i] = (f32)ref_uniform(seed, -2, 2);
    for (size_t i = 0; d->format == KV_F16 && i < n / 2; i++) ((u16 *)p)[i] = ref_f32_to_half((f32)ref_uniform(seed, -2, 2));
    for (size_t i = 0; d->format >= KV_Q8 && i < n; i++) p[i] = (u8)ref_next(seed);
    return p;
}

/* Values over the whole range of f16, subnormals and zeros among them; heads and blocks that are small or zero as a whole. */
static f32 *rows_of(struct ref_case *c, const char *name, size_t rows, int dim, unsigned long long *seed)
{
    static const f32 scale[8] = { 1, 1, 1, 100, 6e4f, 1e-4f, 1e-7f, 0 };
    f32 *p = ref_buf(c, name, REF_IN, REF_F32, rows * (size_t)dim, 0);
    for (size_t r = 0; r < rows; r++) {
        int mixed = ref_next(seed) % 4 == 0, of_row = (int)(ref_next(seed) % 8), of_block = of_row;
        for (int d = 0; d < dim; d++) {
            if (d % 32 == 0 && ref_next(seed) % 4 == 0) of_block = (int)(ref_next(seed) % 8);
            p[r * (size_t)dim + (size_t)d] = (f32)ref_normal(seed) * scale[mixed ? (int)(ref_next(seed) % 8) : dim % 64 ? of_block : of_row];
        }
    }
    return p;
}

static int kv_append_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size,
                          unsigned long long seed)
{
    int slots, pages;
    struct step *step = ref_step(c, size, 0, 1000, &slots, &pages, &seed);
    struct side k = side_of(s, "fk"), v = side_of(s, "fv");
    size_t rows = (size_t)size->rows * (size_t)k.kv_heads;
    *(struct kv_append_args *)args = (struct kv_append_args){
        .step = step, .k = rows_of(c, "k", rows, k.dim, &seed), .v = rows_of(c, "v", rows, v.dim, &seed),
        .pages_k = pages_of(c, "pages_k", &k, pages, &seed), .pages_v = pages_of(c, "pages_v", &v, pages, &seed),
    };
    return 0;
}

static void append(const struct step *st, const f32 *x, void *pages, const struct side *d)
{
    for (int r = 0; r < st->n_rows; r++) {
        i64 page = st->pages[st->seq[r] * st->page_stride + st->kv[r] / KV_PAGE];
        for (int j = 0; j < d->kv_heads; j++)
            ref_kv_put(d->format, d->dim, (u8 *)pages + (page * d->kv_heads + j) * kv_piece_bytes(d->format, d->dim), st->kv[r] % KV_PAGE,
                       x + ((size_t)r * (size_t)d->kv_heads + (size_t)j) * (size_t)d->dim);
    }
}

static void kv_append_run(const void *args, const struct q_shape *s)
{
    const struct kv_append_args *a = args;
    struct side k = side_of(s, "fk"), v = side_of(s, "fv");
    append(a->step, a->k, a->pages_k, &k);
    append(a->step, a->v, a->pages_v, &v);
}

const struct op_ref ref_kv_append = { "kv_append", sizeof(struct kv_append_args), kv_append_make, kv_append_run };
