/* gdn_step_k_heads16_v_heads32_dim128_tiled_threads32_vec1_lanes1_registers: the gated delta rule, token by token.
 * Per value head h with key head h % 16:
 *     S <- exp(g) S;  d = b (v - S^T k);  S <- S + k d^T;  o = S^T q
 *   c: [n_rows][8192] fp32, 16 heads of q, 16 of k, 32 of v, 128 each
 *   g, b: [n_rows][32]; o: [n_rows][32][128]
 *   state: [slots][32][128 k][128 v]; columns of S do not depend on each other
 *   block (x, q) owns 32 columns of head x / 4 of sequence q along all its rows
 *   a thread owns a column whole; sums: one chain of fma a column, over ascending k
 *   S stays in registers between the first and last row of a segment; while a row is done, the sum S^T k of the next one grows
 *   moves 4194304 bytes a segment (S in and out), 3670016 operations a row: few rows are bound by memory, many by the chains
 *   caller: at least n_seqs blocks along y; segments of a sequence are consecutive and have rows; no two sequences share a slot
 *     that is written
 * made by: quarry-gen gdn_step --shape k_heads=16,v_heads=32,dim=128,group=tiled --params threads=32,vec=1,lanes=1,hold=registers --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

/* What row i of a segment gives a thread besides q and k. Behind the last row nothing decays. */
struct token {
    f32 v;
    f32 g, b;
};

static inline struct token token_of(const struct gdn_args &a, const struct segment &s, int i, int h, int column)
{
    i64 r = s.row + (i < s.rows ? i : s.rows - 1);
    struct token n;
    n.v = *(const f32 *)(a.c + r * 8192 + 4096 + h * 128 + column);
    n.g = i < s.rows ? a.g[r * 32 + h] : 0;
    n.b = a.b[r * 32 + h];
    return n;
}

/* Element i < 256 of the q and k of a row, whose q lies at `q`, and its place in shared memory. */
static inline f32 element(const f32 *q, int i) { return q[i + (i < 128 ? 0 : 1920)]; }
static inline int place(int i) { return i; }

/* Row k of a column: S decays already; n is what it becomes, and then decays for the next row. */
static inline void advance(f32 &S, f32 k, f32 q, f32 next_k, f32 d, f32 decay, f32 &o, f32 &sum)
{
    f32 n = fmaf(d, k, S);
    o = fmaf(n, q, o);
    S = n * decay;
    sum = fmaf(S, next_k, sum);
}

/* S of head h from a thread's first row and column on, in a slot. */
static inline f32 *place_of(const struct gdn_args &a, int slot, int h, int row, int column)
{
    return a.state + ((i64)slot * 32 + h) * 16384 + row * 128 + column;
}

extern "C" __global__ void __launch_bounds__(32, 8) gdn_step_k_heads16_v_heads32_dim128_tiled_threads32_vec1_lanes1_registers(const struct gdn_args a)
{
    __shared__ __align__(16) f32 rows[3][256];  /* q and k of a row and of the two after it */
    f32 S[128];
    int t = threadIdx.x, h = blockIdx.x / 4;
    int column = blockIdx.x % 4 * 32 + t;
    const int part = 0;
    pdl_launch();
    pdl_wait();
    const struct step *step = a.step;
    int seq = blockIdx.y;
    if (seq >= step->n_seqs) return;
    for (int segment = step->seq_segment[seq]; segment < step->seq_segment[seq + 1]; segment++) {
        const struct segment s = step->segments[segment];
        const f32 *c = a.c + (i64)s.row * 8192 + (h % 16) * 128;
        const f32 *from = place_of(a, s.load, h, part * 128, column);
        bool stored = s.load >= 0;
#pragma unroll
        for (int i = 0; i < 128; i++) S[i] = stored ? *(const f32 *)(from + i * 128) : 0;
        for (int i = t; i < 256; i += 32) {
            rows[0][place(i)] = element(c, i);
            if (s.rows > 1) rows[1][place(i)] = element(c + 8192, i);
        }
        struct token now = token_of(a, s, 0, h, column), next = token_of(a, s, 1, h, column);
        __syncthreads();

        f32 decay = exp_f32(now.g);
        f32 sum = 0;
#pragma unroll
        for (int i = 0; i < 128; i++) {
            S[i] = S[i] * decay;
            sum = fmaf(S[i], rows[0][128 + part * 128 + i], sum);
        }

        for (int r = 0; r < s.rows; r++) {
            bool more = r + 2 < s.rows;
            f32 ahead[8];
            const f32 *c2 = c + (i64)(r + 2) * 8192;
            for (int i = 0; i < 8 && more; i++) ahead[i] = element(c2, i * 32 + t);
            struct token after = token_of(a, s, r + 2, h, column);

            const f32 *q = rows[r % 3] + part * 128, *k = q + 128;
            const f32 *next_k = r + 1 < s.rows ? rows[(r + 1) % 3] + 128 + part * 128 : k;
            decay = exp_f32(next.g);
            f32 d = now.b * (now.v - sum), o = 0;
            sum = 0;
#pragma unroll
            for (int i = 0; i < 128; i += 4) {
                if (i % 16 == 0) __syncwarp();  /* else all of k and q would be fetched first, and registers run out */
                float4 k4 = *(const float4 *)(k + i), q4 = *(const float4 *)(q + i), n4 = *(const float4 *)(next_k + i);
                advance(S[i], k4.x, q4.x, n4.x, d, decay, o, sum);
                advance(S[i + 1], k4.y, q4.y, n4.y, d, decay, o, sum);
                advance(S[i + 2], k4.z, q4.z, n4.z, d, decay, o, sum);
                advance(S[i + 3], k4.w, q4.w, n4.w, d, decay, o, sum);
            }
            *(f32 *)(a.o + ((i64)(s.row + r) * 32 + h) * 128 + column) = o;

            for (int i = 0; i < 8 && more; i++) rows[(r + 2) % 3][place(i * 32 + t)] = ahead[i];
            now = next;
            next = after;
            __syncthreads();
        }

        for (int copy = 0; copy < 2; copy++) {
            int slot = copy ? s.copy : s.store;
            if (slot < 0) continue;
            f32 *to = place_of(a, slot, h, part * 128, column);
#pragma unroll
            for (int i = 0; i < 128; i++) *(f32 *)(to + i * 128) = S[i];
        }
    }
}
