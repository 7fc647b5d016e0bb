/* quantize: case and truth. Inputs hold ties, zero blocks, a block of one value, and numbers near both ends of fp32. */
#include "templates/ref.h"
#include "args.h"
#include <math.h>

static void fill_block(f32 *x, size_t b, unsigned long long *seed)
{
    static const double scale[] = {1, 1, 1e-30, 1e30, 1e-38, 0};
    double size = scale[b % 6];
    for (int i = 0; i < Q8_BLOCK; i++) x[i] = (f32)(size * ref_normal(seed));
    if (b % 7 == 3)      /* max is 127, so that x * (127 / max) is x and halves are ties */
        for (int i = 0; i < Q8_BLOCK; i++) x[i] = i ? (f32)(i % 2 ? 0.5 : -0.5) * (f32)(2 * i + 1) : -127;
    if (b % 11 == 5)
        for (int i = 0; i < Q8_BLOCK; i++) x[i] = i == 9 ? x[i] : 0;
}

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    size_t n = (size_t)size->rows * (size_t)shape_int(s, "n", 0);
    i32 *n_rows = ref_buf(c, "n_rows", REF_IN, REF_I32, 1, 0);
    f32 *x = ref_buf(c, "x", REF_IN, REF_F32, n, 0);
    *n_rows = size->rows;
    for (size_t b = 0; b < n / Q8_BLOCK; b++) fill_block(x + b * Q8_BLOCK, b, &seed);
    *(struct quantize_args *)args = (struct quantize_args){n_rows, x, ref_out_q8(c, 1, (int)n, 1)};
    return 0;
}

static void run(const void *args, const struct q_shape *s)
{
    const struct quantize_args *a = args;
    size_t blocks = (size_t)*a->n_rows * (size_t)(shape_int(s, "n", 0) / Q8_BLOCK);
    for (size_t b = 0; b < blocks; b++) ref_quant_block(a->x + b * Q8_BLOCK, &a->q, b);
}

const struct op_ref ref_quantize = {"quantize", sizeof(struct quantize_args), make, run};
