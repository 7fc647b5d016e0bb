/* kv_append: case and truth. The pages are in and out: what belongs to other tokens must stay as it was, bit for bit. */
#include "templates/ref.h"
#include "args.h"

static void *pages_of(struct ref_case *c, const char *name, int f16, size_t n, unsigned long long *seed)
{
    void *p = ref_buf(c, name, REF_INOUT, f16 ? REF_F16 : REF_F32, n, 0);
    for (size_t i = 0; i < n; i++) {
        f32 x = (f32)ref_uniform(seed, -2, 2);
        if (f16) ((u16 *)p)[i] = ref_f32_to_half(x);
        else ((f32 *)p)[i] = x;
    }
    return p;
}

/* Values over the whole range of f16, subnormals and zeros among them. */
static f32 *rows_of(struct ref_case *c, const char *name, size_t n, unsigned long long *seed)
{
    static const f32 scale[8] = { 1, 1, 1, 100, 6e4f, 1e-4f, 1e-7f, 0 };
    f32 *p = ref_buf(c, name, REF_IN, REF_F32, n, 0);
    for (size_t i = 0; i < n; i++) p[i] = (f32)ref_uniform(seed, -1, 1) * scale[ref_next(seed) % 8];
    return p;
}

static int kv_append_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size,
                          unsigned long long seed)
{
    int slots, pages;
    struct step *step = ref_step(c, size, 0, 1000, &slots, &pages, &seed);
    size_t row = (size_t)shape_int(s, "kv_heads", 0) * (size_t)shape_int(s, "head_dim", 0), page = row * KV_PAGE;
    *(struct kv_append_args *)args = (struct kv_append_args){
        .step = step, .k = rows_of(c, "k", row * size->rows, &seed), .v = rows_of(c, "v", row * size->rows, &seed),
        .pages_k = pages_of(c, "pages_k", shape_is(s, "fk", "f16"), page * pages, &seed),
        .pages_v = pages_of(c, "pages_v", shape_is(s, "fv", "f16"), page * pages, &seed),
    };
    return 0;
}

static void append(const struct step *st, const f32 *x, void *pages, int f16, int kv_heads, int dim)
{
    for (int r = 0; r < st->n_rows; r++) {
        size_t page = (size_t)st->pages[st->seq[r] * st->page_stride + st->kv[r] / KV_PAGE];
        for (int j = 0; j < kv_heads; j++)
            for (int d = 0; d < dim; d++) {
                size_t to = ((page * kv_heads + j) * KV_PAGE + st->kv[r] % KV_PAGE) * dim + d;
                f32 value = x[((size_t)r * kv_heads + j) * dim + d];
                if (f16) ((u16 *)pages)[to] = ref_f32_to_half(value);
                else ((f32 *)pages)[to] = value;
            }
    }
}

static void kv_append_run(const void *args, const struct q_shape *s)
{
    const struct kv_append_args *a = args;
    int kv_heads = (int)shape_int(s, "kv_heads", 0), dim = (int)shape_int(s, "head_dim", 0);
    append(a->step, a->k, a->pages_k, shape_is(s, "fk", "f16"), kv_heads, dim);
    append(a->step, a->v, a->pages_v, shape_is(s, "fv", "f16"), kv_heads, dim);
}

const struct op_ref ref_kv_append = { "kv_append", sizeof(struct kv_append_args), kv_append_make, kv_append_run };
