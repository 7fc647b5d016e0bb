/* The truth of conv_silu: the filter along each sequence in double, segment by segment; the state is the last taps-1 rows. */
#include "templates/ref.h"
#include "args.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int make(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed)
{
    struct conv_silu_args *a = args;
    size_t channels = shape_int(s, "channels", 0), taps = shape_int(s, "taps", 0);
    int slots, pages;
    struct step *step = ref_step(c, size, 0, 1, &slots, &pages, &seed);
    size_t n = step->n_rows * channels, kept = slots * (taps - 1) * channels;
    f32 *u = ref_buf(c, "u", REF_IN, REF_F32, n, 0), *w = ref_buf(c, "w", REF_IN, REF_F32, channels * taps, 0);
    a->step = step;
    a->u = u, a->w = w;
    a->state = ref_buf(c, "state", REF_INOUT, REF_F32, kept, 0);
    a->y = ref_buf(c, "y", REF_OUT, REF_F32, n, 2e-6);
    ref_fill_f32(u, n, &seed, 2);
    ref_fill_f32(w, channels * taps, &seed, 0.7);
    ref_fill_f32(a->state, kept, &seed, 2);
    return 0;
}

/* Row i of a segment whose rows before 0 lie in `before` (taps-1 rows). */
static double input(const struct conv_silu_args *a, const struct segment *g, const f32 *before, long taps, long channels, long i, long c)
{
    return i < 0 ? before[(i + taps - 1) * channels + c] : a->u[(g->row + i) * channels + c];
}

static void segment(const struct conv_silu_args *a, const struct segment *g, f32 *before, long taps, long channels)
{
    size_t kept = (taps - 1) * channels;
    memset(before, 0, kept * sizeof *before);
    if (g->load >= 0) memcpy(before, a->state + g->load * kept, kept * sizeof *before);
    for (long i = 0; i < g->rows; i++)
        for (long c = 0; c < channels; c++) {
            double sum = 0;
            for (long j = 0; j < taps; j++) sum += a->w[c * taps + j] * input(a, g, before, taps, channels, i - (taps - 1) + j, c);
            a->y[(g->row + i) * channels + c] = (f32)(sum / (1 + exp(-sum)));
        }
    f32 *to = a->state + g->store * kept;
    for (long j = 0; j < taps - 1; j++)
        for (long c = 0; c < channels; c++) to[j * channels + c] = (f32)input(a, g, before, taps, channels, g->rows - (taps - 1) + j, c);
    if (g->copy >= 0) memcpy(a->state + g->copy * kept, to, kept * sizeof *to);
}

static void run(const void *args, const struct q_shape *s)
{
    const struct conv_silu_args *a = args;
    long channels = shape_int(s, "channels", 0), taps = shape_int(s, "taps", 0);
    f32 *before = malloc((taps - 1) * channels * sizeof *before);
    if (!before) abort();
    for (int g = 0; g < a->step->n_segments; g++) segment(a, &a->step->segments[g], before, taps, channels);
    free(before);
}

const struct op_ref ref_conv_silu = { "conv_silu", sizeof(struct conv_silu_args), make, run };
