/* gdn_step_norm_k_heads16_v_heads32_dim128_tiled_q8_lanes8_vec4_registers: the gated delta rule, token by token,
 *     then norm and gate.
 * Per value head h with key head h % 16:
 *     S <- exp(g) S;  d = b (v - S^T k);  S <- S + k d^T;  o = S^T q;  y = o * w / sqrt(mean(o^2) + eps) * silu(z)
 *   c: [n_rows][8192] fp32, 16 heads of q, 16 of k, 32 of v, 128 each
 *   g, b: [n_rows][32]; z: [n_rows][32][128]; w: [128]
 *   state: [slots][32][128 k][128 v]; columns of S do not depend on each other
 *   q: int8 [n_rows][4096], d (scale) and s (sum): [n_rows][128], blocks of 32
 *   block (h, q) owns head h of sequence q along all its rows
 *   8 lanes share 4 columns, lane p the rows from 16 * p on; sums: a chain of fma each, over ascending k, folded by halves;
 *     S decays after the sums: S^T k and S^T q grow side by side, d = b (v - e^g S^T k), o = e^g S^T q + (k . q) d
 *   S stays in registers between the first and last row of a segment
 *   the sum of squares: 32 strided partials, folded by halves
 *   moves 4194304 bytes a segment (S in and out), 3670016 operations a row: bound by latency where rows are few
 *   S is read before pdl_wait(): no kernel of a step but this writes its layer's states, and copies of states end before a step
 *     begins
 *   caller: at least n_seqs blocks along y; segments of a sequence are consecutive and have rows; no two sequences share a slot
 *     that is written
 * made by: quarry-gen gdn_step_norm --shape k_heads=16,v_heads=32,dim=128,group=tiled,out=q8 --params lanes=8,vec=4,hold=registers --card cuda:sm_90 */
#include "kernel.cuh"
#include "args.h"

static inline struct segment segment_of(const struct step *step, int i)
{
    const struct segment *s = step->segments + i;
    struct segment n = {load_early(&s->row), load_early(&s->rows), load_early(&s->load)};
    n.store = load_early(&s->store);
    n.copy = load_early(&s->copy);
    return n;
}

/* Writes a block of 32 as int8, scale and sum: eight neighbouring lanes hold it, four values each. All lanes of the warp call;
 * on: this lane's block exists. at: the lane's first element in q; its block's d and s are at / 32. */
static inline void write_q8(const struct act_q8 *a, i64 at, float4 v, int on)
{
    f32 most = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    for (int m = 4; m; m >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    f32 inverse = most > 0x1p-120f ? 127.0f / most : 0.0f;
    i32 q0 = round_i32(v.x * inverse), q1 = round_i32(v.y * inverse), q2 = round_i32(v.z * inverse),
        q3 = round_i32(v.w * inverse);
    i32 sum = q0 + q1 + q2 + q3;
    for (int m = 4; m; m >>= 1) sum += __shfl_xor_sync(~0u, sum, m);
    if (!on) return;
    *(u32 *)(a->q + at) = (u32)(q0 & 255) | (u32)(q1 & 255) << 8 | (u32)(q2 & 255) << 16 | (u32)q3 << 24;
    if (threadIdx.x % 8) return;
    a->d[at / 32] = most > 0x1p-120f ? most / 127.0f : 0.0f;
    a->s[at / 32] = sum;
}

/* What of a row of a head is this thread's to write: elements 4 t to 4 t + 3; 0 beyond. */
static inline float4 own(const f32 *p)
{
    int at = threadIdx.x * 4;
    return at < 128 ? *(const float4 *)(p + at) : make_float4(0, 0, 0, 0);
}

static inline float4 gate(float4 z) { return make_float4(silu_f32(z.x), silu_f32(z.y), silu_f32(z.z), silu_f32(z.w)); }

/* The norm of a row of a head and its gate; o lies in shared memory, y at element `head`. Called by warps that write y. */
static inline void write_normed(const struct gdn_step_norm_args &a, const f32 *o, float4 w, float4 gate, i64 head)
{
    f32 sum = 0;
    for (int i = 0; i < 4; i++) {
        f32 x = o[i * 32 + threadIdx.x % 32];
        sum = fmaf(x, x, sum);
    }
    f32 scale = 1.0f / sqrtf(warp_sum(sum) / 128.0f + a.eps);
    float4 y = own(o);
    y = make_float4(y.x * scale * w.x * gate.x, y.y * scale * w.y * gate.y, y.z * scale * w.z * gate.z,
                    y.w * scale * w.w * gate.w);
    int at = threadIdx.x * 4;
    write_q8(&a.q, head + at, y, 1);
}

static inline float4 times(float4 v, f32 s) { return make_float4(v.x * s, v.y * s, v.z * s, v.w * s); }

static inline float4 madd(float4 v, f32 s, float4 sum)
{
    return make_float4(fmaf(v.x, s, sum.x), fmaf(v.y, s, sum.y), fmaf(v.z, s, sum.z), fmaf(v.w, s, sum.w));
}

/* Over the lanes that share columns. */
static inline f32 fold(f32 v)
{
    for (int m = 16; m >= 4; m >>= 1) v += __shfl_xor_sync(~0u, v, m);
    return v;
}

/* The same for 4 sums, of which a lane gets number lane / 8: what it does not keep it gives to the lane that does. */
static inline f32 fold_each(float4 v)
{
    bool high = threadIdx.x & 16, odd = threadIdx.x & 8;
    f32 a = (high ? v.z : v.x) + __shfl_xor_sync(~0u, high ? v.x : v.z, 16);
    f32 b = (high ? v.w : v.y) + __shfl_xor_sync(~0u, high ? v.y : v.w, 16);
    f32 sum = (odd ? b : a) + __shfl_xor_sync(~0u, odd ? a : b, 8);
    for (int m = 4; m >= 4; m >>= 1) sum += __shfl_xor_sync(~0u, sum, m);
    return sum;
}

/* What a thread fetches of row r: four of q or k for all, v of the column whose sums it gets, z of what it writes. */
struct token {
    float4 qk, z;
    f32 v, g, b;
};

static inline struct token token_of(const struct gdn_step_norm_args &a, i64 r, int h, int column)
{
    const f32 *c = a.c + r * 8192, *q = c + (h % 16) * 128;
    int i = threadIdx.x * 4;
    struct token n;
    n.qk = i >= 256 ? make_float4(0, 0, 0, 0) : *(const float4 *)(q + i + (i < 128 ? 0 : 1920));
    n.v = c[4096 + h * 128 + column];
    n.g = a.g[r * 32 + h];
    n.b = a.b[r * 32 + h];
    n.z = own(a.z + (r * 32 + h) * 128);
    return n;
}

static inline float4 load_state(const f32 *p)
{
    int4 v = load_stream16(p);
    return make_float4(as_f32(v.x), as_f32(v.y), as_f32(v.z), as_f32(v.w));
}

/* Row k of S, which does not decay yet, in the sums. */
static inline void add_row(float4 S, f32 k, f32 q, float4 &by_k, float4 &by_q, f32 &kq)
{
    by_k = madd(S, k, by_k);
    by_q = madd(S, q, by_q);
    kq = fmaf(k, q, kq);
}

extern "C" __global__ void __launch_bounds__(256) gdn_step_norm_k_heads16_v_heads32_dim128_tiled_q8_lanes8_vec4_registers(const struct gdn_step_norm_args a)
{
    __shared__ __align__(16) f32 rows[3][256];  /* q and k of a row, of the next, and of the last, which slow threads still read */
    __shared__ __align__(16) f32 o[2][128], d[2][128];
    float4 S[16];
    int t = threadIdx.x, h = blockIdx.x, seq = blockIdx.y, first = 0, last = 0;
    int part = t % 32 / 4, columns = (t / 32 * 4 + t % 4) * 4, column = columns + t % 32 / 8;
    pdl_launch();
    const struct step *step = a.step;
    if (seq < load_early(&step->n_seqs)) {
        first = load_early(step->seq_segment + seq);
        last = load_early(step->seq_segment + seq + 1);
    }
    float4 w = own(a.w);
    for (int segment = first; segment < last; segment++) {
        struct segment s = segment_of(step, segment);
        i64 place = h * 16384 + part * 2048 + columns;
        const f32 *from = a.state + (i64)s.load * 524288 + place;
        bool stored = s.load >= 0;
        if (segment > first) __syncthreads();  /* what was stored is there */
#pragma unroll
        for (int i = 0; i < 16; i++) S[i] = stored ? load_state(from + i * 128) : make_float4(0, 0, 0, 0);
        if (segment == first) pdl_wait();

        struct token now = token_of(a, s.row, h, column);
        if (t < 64) *(float4 *)(rows[s.row % 3] + t * 4) = now.qk;
        __syncthreads();
        for (int r = s.row; r < s.row + s.rows; r++) {
            bool more = r + 1 < s.row + s.rows;
            struct token next = now;
            if (more) next = token_of(a, r + 1, h, column);

            const f32 *q = rows[r % 3] + part * 16, *k = q + 128;
            float4 by_k = make_float4(0, 0, 0, 0), by_q = make_float4(0, 0, 0, 0);
            f32 kq = 0;
#pragma unroll
            for (int i = 0; i < 16; i += 4) {
                if (i % 8 == 0) __syncwarp();  /* else all of k and q would be fetched first, and registers run out */
                float4 k4 = *(const float4 *)(k + i), q4 = *(const float4 *)(q + i);
                add_row(S[i], k4.x, q4.x, by_k, by_q, kq);
                add_row(S[i + 1], k4.y, q4.y, by_k, by_q, kq);
                add_row(S[i + 2], k4.z, q4.z, by_k, by_q, kq);
                add_row(S[i + 3], k4.w, q4.w, by_k, by_q, kq);
            }
            if (t < 32) now.z = gate(now.z);

            f32 decay = exp_f32(now.g);
            f32 mine = now.b * fmaf(-decay, fold_each(by_k), now.v);
            f32 out = fmaf(fold(kq), mine, decay * fold_each(by_q));
            if (t % 8 < 4) {
                d[r % 2][column] = mine;
                o[r % 2][column] = out;
            }
            if (t < 64 && more) *(float4 *)(rows[(r + 1) % 3] + t * 4) = next.qk;
            __syncthreads();

            if (t < 32) write_normed(a, o[r % 2], w, now.z, ((i64)r * 32 + h) * 128);
            float4 D = *(const float4 *)(d[r % 2] + columns);
#pragma unroll
            for (int i = 0; i < 16; i += 4) {
                float4 k4 = *(const float4 *)(k + i);
                S[i] = madd(D, k4.x, times(S[i], decay));
                S[i + 1] = madd(D, k4.y, times(S[i + 1], decay));
                S[i + 2] = madd(D, k4.z, times(S[i + 2], decay));
                S[i + 3] = madd(D, k4.w, times(S[i + 3], decay));
            }
            now = next;
        }

        for (int copy = 0; copy < 2; copy++) {
            int slot = copy ? s.copy : s.store;
            if (slot < 0) continue;
            f32 *to = a.state + (i64)slot * 524288 + place;
#pragma unroll
            for (int i = 0; i < 16; i++) *(float4 *)(to + i * 128) = S[i];
        }
    }
    if (first == last) pdl_wait();
}
