/* fault_probe: case and truth. */
#include "templates/ref.h"
#include "args.h"
#include <string.h>

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    size_t n = (size_t)size->rows * (size_t)shape_int(s, "n", 0);
    i32 *rows = ref_buf(c, "n_rows", REF_IN, REF_I32, 1, 0);
    f32 *x = ref_buf(c, "x", REF_IN, REF_F32, n, 0);
    *rows = size->rows;
    ref_fill_f32(x, n, &seed, 1);
    *(struct fault_probe_args *)args = (struct fault_probe_args){rows, x, ref_buf(c, "y", REF_OUT, REF_F32, n, 1e-5)};
    return 0;
}

static void run(const void *args, const struct q_shape *s)
{
    const struct fault_probe_args *a = args;
    memcpy(a->y, a->x, (size_t)*a->n_rows * (size_t)shape_int(s, "n", 0) * sizeof *a->y);
}

const struct op_ref ref_fault_probe = {"fault_probe", sizeof(struct fault_probe_args), make, run};
