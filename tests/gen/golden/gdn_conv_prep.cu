/* gdn_conv_prep_k_heads16_v_heads32_dim128_taps4_lanes128_threads128:
 *     the filter y[r][c] = silu(sum_j w[c][j] * u[r-3+j][c]) along each sequence, j = 0..3; then
 *     heads of q and k: x <- x / sqrt(sum x^2 + 1e-6), q also times 1/sqrt(128)
 *     gates of v heads: g = a * softplus(alpha + dt), softplus(x) = x > 20 ? x : log(1 + e^x);  b = sigmoid(beta)
 *   u, c: [n_rows][8192] fp32, 16 heads of q, 16 of k, 32 of v, 128 channels each
 *   w: [8192][4]; state: [slots][3][8192], oldest row first; alpha, beta, g, b: [n_rows][32]; a, dt: [32]
 *   block (x, y) works on sequence y, along all its rows; it has item x: below 64 a head, thread l its
 *     channel l; from 64 on a warp has 32 gates in every 4th row
 *   the 3 rows before stay in registers: whoever reads a channel's old state writes the new ones, at the end of each segment
 *   sums: the filter's is the product of tap 0, then fma over ascending taps; a head's 32 strided partials, folded by halves
 *   moves 65536 bytes a row and 327680 a sequence: bound by latency
 *   caller: a step has a sequence, and at least n_seqs blocks along y; w is aligned to 16 bytes; a sequence's rows and segments
 *     are consecutive, segments have rows, and each loads what the one before it stored; no two sequences share a slot;
 *     no two buffers overlap
 * made by: quarry-gen gdn_conv_prep --shape k_heads=16,v_heads=32,dim=128,taps=4 --params lanes=128,threads=128 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

/* log(1 + e) for e >= 0, error below 2 ulp. u = 1 + e loses (e - (u - 1)), which is worth that much over u in the logarithm.
 * u = 2^k (1 + f) with f in [-0.293, 0.415), and log(1 + f) = f - (f^2/2 - s (f^2/2 + s^2 p(s^2))), s = f / (2 + f): the
 * leading term stays exact. */
static inline f32 log1p_f32(f32 e)
{
    f32 u = e + 1.0f;
    i32 k = (as_i32(u) - 0x3F3504F3) >> 23;
    f32 f = as_f32(as_i32(u) - (i32)((u32)k << 23)) - 1.0f;
    f32 lost = (e - (u - 1.0f)) / u;
    f32 s = f / (f + 2.0f), z = s * s;
    f32 p = fmaf(0.24279078f, z, 0.28498787f);
    p = fmaf(p, z, 0.40000972f);
    p = fmaf(p, z, 0.66666663f);
    f32 half = 0.5f * f * f;
    f32 small = fmaf(s, fmaf(p, z, half), lost);
    small = fmaf((f32)k, 9.0580006e-6f, small);
    return fmaf((f32)k, 0.69313812f, f - (half - small));
}

static inline f32 softplus(f32 x) { return x > 20.0f ? x : log1p_f32(exp_f32(fminf(x, 20.0f))); }

/* A channel's weights. */
struct __align__(16) filter {
    f32 tap[4];
};

/* A sequence in this step: its rows, and the segment that it is in. */
struct run {
    i64 row;
    int rows, segment;
    int load, store, copy, end;   /* slots of the segment; its end, counted from the first row */
};

/* From tables that no kernel writes. Sequences beyond the step's have no rows; they read the first one's places,
 * so that no load waits for a branch. */
static inline struct run run_early(const struct step *step, int seq)
{
    int real = seq < load_early(&step->n_seqs), at = real ? seq : 0;
    struct run q;
    q.row = load_early(step->seq_row + at);
    q.rows = load_early(step->seq_rows + at);
    q.segment = load_early(step->seq_segment + at);
    const struct segment *s = step->segments + q.segment;
    q.load = load_early(&s->load);
    q.store = load_early(&s->store);
    q.copy = load_early(&s->copy);
    q.end = load_early(&s->rows);
    if (!real) q.rows = 0;
    return q;
}

static inline void next_segment(struct run &q, const struct step *step)
{
    const struct segment *s = step->segments + ++q.segment;
    q.store = s->store;
    q.copy = s->copy;
    q.end += s->rows;
}

/* x: a channel's 3 rows before and the row itself. `state`: its place in a slot. */
static inline void recall(f32 (&x)[4], const f32 *state)
{
    for (int j = 0; j < 3; j++) x[j] = state[j * 8192];
}

static inline void keep(f32 *state, const f32 (&x)[4])
{
    for (int j = 0; j < 3; j++) state[j * 8192] = x[j + 1];
}

static inline f32 filtered(const f32 (&x)[4], const struct filter &w)
{
    f32 sum = x[0] * w.tap[0];
    for (int j = 1; j < 4; j++) sum = fmaf(x[j], w.tap[j], sum);
    return silu_f32(sum);
}

static inline void next_row(f32 (&x)[4])
{
    for (int j = 0; j < 3; j++) x[j] = x[j + 1];
}

/* Over the channels of a head. */
static inline f32 sum_of_squares(f32 (&head)[128], const f32 y, int lane)
{
    head[lane] = y;
    __syncthreads();
    const f32 *part = head + lane % 32;
    f32 sum = 0;
    for (int i = 0; i < 4; i++) sum = fmaf(part[i * 32], part[i * 32], sum);
    return warp_sum(sum);
}

/* A head along all rows of a sequence. */
static inline void channels_of(const struct gdn_conv_prep_args &a, int head, int lane)
{
    __shared__ f32 heads[2][128];   /* in turn, so that a row's sum may still be read while the next row arrives */
    int c = head * 128 + lane;
    const struct filter w = ((const struct filter *)a.w)[c];
    struct run q = run_early(a.step, blockIdx.y);
    pdl_wait();
    if (q.rows == 0) return;

    const f32 *u = a.u + q.row * 8192 + c;
    f32 *state = a.state + c, *y = a.c + q.row * 8192 + c;
    f32 next = u[0], x[4] = {};
    if (q.load >= 0) recall(x, state + (i64)q.load * 24576);
#pragma unroll 1
    for (int r = 0; r < q.rows; r++, u += 8192, y += 8192) {
        x[3] = next;
        if (r + 1 < q.rows) next = u[8192];
        if (r + 1 == q.end) {
            keep(state + (i64)q.store * 24576, x);
            if (q.copy >= 0) keep(state + (i64)q.copy * 24576, x);
            if (r + 1 < q.rows) next_segment(q, a.step);
        }
        f32 now = filtered(x, w);
        if (head < 32) {
            f32 scale = head < 16 ? 0.0883883476f : 1.0f;
            f32 inverse = scale / sqrtf(sum_of_squares(heads[r % 2], now, lane) + 1e-6f);
            now = now * inverse;
        }
        y[0] = now;
        next_row(x);
    }
}

/* 32 gates of every 4th row. */
static inline void gates(const struct gdn_conv_prep_args &a, int warp, int lane)
{
    int h = lane;
    f32 decay = a.a[h], dt = a.dt[h];
    const struct run q = run_early(a.step, blockIdx.y);
    pdl_wait();
    for (int r = warp; r < q.rows; r += 4) {
        i64 i = (q.row + r) * 32 + h;
        f32 alpha = a.alpha[i], beta = a.beta[i];
        a.g[i] = decay * softplus(alpha + dt);
        a.b[i] = sigmoid_f32(beta);
    }
}

extern "C" __global__ void __launch_bounds__(128) gdn_conv_prep_k_heads16_v_heads32_dim128_taps4_lanes128_threads128(const struct gdn_conv_prep_args a)
{
    pdl_launch();
    int item = blockIdx.x, lane = threadIdx.x;
    if (item < 64) channels_of(a, item, lane);
    else gates(a, (item - 64) * 4 + lane / 32, lane % 32);
}
