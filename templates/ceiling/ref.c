/* ceiling: every multiply-add adds one, so the truth is how many there are. */
#include "templates/ref.h"
#include "args.h"

/* Plain: the counts that speed is measured at. Words of the buffer follow from their index, so that filling it takes no time. */
static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct ceiling_args *a = args;
    i64 loops = size->plain ? CEILING_LOOPS : size->rows, bytes = size->plain ? CEILING_BYTES : (i64)size->rows * CEILING_PIECE;
    if (!shape_is(s, "what", "read")) bytes = 0;
    u32 *buf = ref_buf(c, "buf", REF_IN, REF_BYTES, (size_t)bytes, 0);
    u64 *out = ref_buf(c, "out", REF_INOUT, REF_I32, 2, 0);
    for (i64 i = 0; i < bytes / 4; i++) buf[i] = (u32)i * 2654435761u;
    *out = ref_next(&seed) >> 8;
    *a = (struct ceiling_args){.buf = buf, .bytes = bytes, .loops = loops, .out = out};
    return 0;
}

static void run(const void *args, const struct q_shape *s)
{
    const struct ceiling_args *a = args;
    const struct { const char *what; int log2; } kinds[] = {{"dp4a", 18}, {"hfma2", 17}, {"ffma", 16}, {"mma_f16", 20}, {"mma_i8", 21}};
    const u32 *word = a->buf;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (shape_is(s, "what", kinds[i].what)) *a->out += (u64)a->loops << kinds[i].log2;
    for (i64 i = 0; i < a->bytes / 4; i++) *a->out += (u64)word[i] * CEILING_PASSES;
}

const struct op_ref ref_ceiling = {"ceiling", sizeof(struct ceiling_args), make, run};
