/* rope_table: case and truth. Positions reach the largest that the op promises (2^24 - 1), and t, h, w differ as in images. */
#include "templates/ref.h"
#include "args.h"
#include <math.h>

static int rope_table_make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size,
                           unsigned long long seed)
{
    struct rope_table_args *a = args;
    int slots, pages, pairs = (int)shape_int(s, "pairs", 0);
    struct step *step = ref_step(c, size, 0, 1000, &slots, &pages, &seed);
    i32 *pos = ref_buf(c, "pos", REF_IN, REF_I32, (size_t)size->rows * 3, 0);
    for (int i = 0; i < size->rows * 3; i++) pos[i] = (i32)ref_uniform(&seed, 0, i % 2 ? 16777215.0 : 4096.0);
    pos[0] = 0;
    step->pos = pos;
    f32 *freq = ref_buf(c, "freq", REF_IN, REF_F32, (size_t)pairs, 0);
    for (int i = 0; i < pairs; i++) freq[i] = (f32)pow(1e7, -(double)i / pairs);
    *a = (struct rope_table_args){
        .step = step, .freq = freq, .scale = 1,
        .cs = ref_buf(c, "cs", REF_OUT, REF_F32, (size_t)size->rows * pairs * 2, 1.2e-7),
    };
    return 0;
}

/* Which of the row's positions (0 t, 1 h, 2 w) pair i turns by. */
static int position_of_pair(int i, const struct q_shape *s)
{
    if (i % 3 == 1 && i < 3 * shape_int(s, "s1", 0)) return 1;
    if (i % 3 == 2 && i < 3 * shape_int(s, "s2", 0)) return 2;
    return 0;
}

static void rope_table_run(const void *args, const struct q_shape *s)
{
    const struct rope_table_args *a = args;
    int pairs = (int)shape_int(s, "pairs", 0);
    for (int r = 0; r < a->step->n_rows; r++)
        for (int i = 0; i < pairs; i++) {
            f32 angle = (f32)a->step->pos[r * 3 + position_of_pair(i, s)] * a->freq[i];
            f32 *cs = a->cs + ((size_t)r * pairs + i) * 2;
            cs[0] = (f32)(cos((double)angle) * a->scale);
            cs[1] = (f32)(sin((double)angle) * a->scale);
        }
}

const struct op_ref ref_rope_table = { "rope_table", sizeof(struct rope_table_args), rope_table_make, rope_table_run };
