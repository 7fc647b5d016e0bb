/* Case and truth of repack: some rows somewhere in the matrix, out of a stage that may be aligned to 2 bytes only; other rows stay. */
#include "templates/ref.h"

#include "runtime/layout.h"
#include "templates/repack/args.h"

#include <stdint.h>

static int repack_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    const struct q_format *f = q_format_by_name("q8_0");
    const struct q_layout *l = q_layout_find(shape_find(s, "layout"));
    i64 n = shape_int(s, "n", 0), k = shape_int(s, "k", 0), rows = size->rows < n ? size->rows : n;
    if (!l || !l->pack || !l->fits(f, n, k)) return -1;
    size_t bytes = (size_t)(rows * q_row_bytes(f, k)), shift = ref_next(&seed) % 2 * 2;
    unsigned char *src = ref_buf(c, "src", REF_IN, REF_BYTES, bytes + shift, 0);
    unsigned char *dst = ref_buf(c, "dst", REF_OUT, REF_BYTES, (size_t)l->bytes(f, n, k), 0);
    for (size_t i = 0; i < bytes + shift; i++) src[i] = (unsigned char)ref_next(&seed);
    *(struct repack_args *)args = (struct repack_args){ src + shift, dst, (i64)(ref_next(&seed) % (unsigned long long)(n - rows + 1)), rows };
    return 0;
}

/* By the host's packing, which wants the file's rows where they are in the file. */
static void repack_run(const void *args, const struct q_shape *s)
{
    const struct repack_args *a = args;
    const struct q_format *f = q_format_by_name("q8_0");
    const struct q_layout *l = q_layout_find(shape_find(s, "layout"));
    i64 n = shape_int(s, "n", 0), k = shape_int(s, "k", 0);
    uintptr_t file = (uintptr_t)a->src - (uintptr_t)(a->row0 * q_row_bytes(f, k));
    l->pack(f, a->dst, (const void *)file, n, k, a->row0, a->row0 + a->n_rows);
}

const struct op_ref ref_repack = { "repack", sizeof(struct repack_args), repack_make, repack_run };
