/* attn_prefill_heads16_kv_heads4_head_dim256_f16_f16_q8_mma_tile64_warps4_chunk32: o[r][h] = sigmoid(gate[r][h]) *
 *     softmax(scale * q[r][h] . K) V over KV 0..kv[r] of the row's sequence, head h / 4 of K and V.
 *   q: [n_rows][16][256]; qg: [n_rows][16][512], the gate is the second half
 *   oq: int8 [n_rows][4096], d (scale) and s (sum): [n_rows][128], blocks of 32
 *   a page of K (f16) and V (f16): [4][KV_PAGE][256]
 *   blocks (j, i, s) own KV head j for the i-th 16 rows, counted from the last tile on, of sequence s: 64 query rows,
 *     row-major by (row, head); tiles that see most begin first
 *   over runs of 32 tokens a warp takes 16 query rows: scores, weights by exp2 of a running max, values, all in registers
 *   q and the weights are two halves each, high and low, so that products with K and V of f16 are exact to 2^-22; sums in fp32,
 *     those of
 *     a run apart from those so far
 *   32768 operations a row and token that it sees on the matrix units, half of them for the low halves
 *   caller: a grid of 4 by the tiles of the longest run of rows by at least n_seqs; rows of a sequence contiguous and ascending
 *     in kv
 * made by: quarry-gen attn_prefill --shape heads=16,kv_heads=4,head_dim=256,fk=f16,fv=f16,out=q8 --params path=mma,tile=64,warps=4,chunk=32 --card cuda:sm_90 */
#include "kernel.cuh"
#include "args.h"

/* A block of 32 as int8, scale and sum, as kernel.h defines them: 4 neighbouring lanes hold it, 8 values each, pairs 8 apart.
 * All lanes of the warp call;
 * on: this lane's block exists. at: the lane's first element in q; its block's d and s are at / 32. */
static inline void write_q8(const struct act_q8 *a, i64 at, const f32 *x, int on)
{
    i32 q[8], sum = 0;
    f32 most = 0;
    for (int i = 0; i < 8; i++) most = fmaxf(most, fabsf(x[i]));
    for (int m = 2; m; m >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    f32 inverse = most > 0x1p-120f ? 127.0f / most : 0.0f;
    for (int i = 0; i < 8; i++) {
        q[i] = round_i32(x[i] * inverse);
        sum += q[i];
    }
    for (int m = 2; m; m >>= 1) sum += __shfl_xor_sync(~0u, sum, m);
    if (!on) return;
    for (int i = 0; i < 8; i += 2) *(u16 *)(a->q + at + i * 4) = (u16)((q[i] & 255) | q[i + 1] << 8);
    if (threadIdx.x % 4) return;
    a->d[at / 32] = most > 0x1p-120f ? most / 127.0f : 0.0f;
    a->s[at / 32] = sum;
}

/* What a block works on: `count` query rows of one sequence for KV head j, query row m being head m % 4 of the group of row m /
 * 4. */
struct tile {
    const i32 *pages;      /* of the sequence */
    int row, j, count, tokens;   /* tokens: that the last row sees */
};

/* Past the last query row it is repeated. */
static inline i64 head_at(const struct tile *it, int m)
{
    int at = m < it->count ? m : it->count - 1;
    return (i64)(it->row + at / 4) * 16 + it->j * 4 + at % 4;
}

/* The last token that query row m sees. */
static inline int last_of(const struct attn_args *a, const struct tile *it, int m)
{
    return a->step->kv[it->row + (m < it->count ? m : it->count - 1) / 4];
}

/* d += a b for 16 rows, 16 deep, 8 columns. */
static inline void mma(f32 d[4], const u32 a[4], const u32 b[2])
{
    mma_f16_16816(d, a, b);
}

/* x as two halves whose sum is x to 22 bits, of two values each. */
static inline void split(f32 x, f32 y, u32 *high, u32 *low)
{
    *high = f2h2(x, y);
    float2 near = h2f2(*high);
    *low = f2h2(x - near.x, y - near.y);
}

/* In shared memory all rows of halves are 528 bytes apart, so that the eight rows of a fragment lie in different banks. */
static inline void load_queries(const struct attn_args *a, const struct tile *it, u16 *high, u16 *low)
{
    for (int i = threadIdx.x; i < 4096; i += 128) {
        int m = i / 64, d = i % 64 * 4;
        float4 x = *(const float4 *)(a->q + head_at(it, m) * 256 + d);
        split(x.x, x.y, (u32 *)(high + m * 264 + d), (u32 *)(low + m * 264 + d));
        split(x.z, x.w, (u32 *)(high + m * 264 + d + 2), (u32 *)(low + m * 264 + d + 2));
    }
}

/* The run of 32 tokens from t on, which lies in one page; zeros past the last token. */
static inline void copy_run(const struct tile *it, const void *pages, int t, u16 *to)
{
    const u16 *from = (const u16 *)pages + (((i64)it->pages[t / KV_PAGE] * 4 + it->j) * KV_PAGE + t % KV_PAGE) * 256;
#pragma unroll 1
    for (int i = threadIdx.x; i < 1024; i += 128) {
        int row = i / 32, d = i % 32 * 8;
        cp_async16_or_zero(to + row * 264 + d, from + i * 8, t + row < it->tokens);
    }
    cp_async_commit();
}

/* Everything copied so far is there for all threads, and what they read before may be overwritten. */
static inline void arrive()
{
    cp_async_wait<0>();
    __syncthreads();
}

/* s[n] = scores of this warp's query rows with tokens 8n .. 8n + 7 of the run, as the matrix instruction lays them out:
 * a lane has rows
 * lane / 4 (values 0, 1) and lane / 4 + 8 (2, 3), columns lane % 4 * 2 and the next. */
static inline void scores(const u16 *high, const u16 *low, const u16 *keys, f32 (*s)[4])
{
    int lane = threadIdx.x % 32;
    const u16 *key = keys + (lane / 16 * 8 + lane % 8) * 264 + lane / 8 % 2 * 8;
    int query = (threadIdx.x / 32 * 16 + lane % 16) * 264 + lane / 16 * 8;
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 4; i++) s[n][i] = 0;
#pragma unroll 4
    for (int d = 0; d < 256; d += 16) {
        u32 q[2][4];
        ldmatrix_x4(q[0], high + query + d);
        ldmatrix_x4(q[1], low + query + d);
        for (int n = 0; n < 2; n++) {
            u32 k[4];
            ldmatrix_x4(k, key + n * 4224 + d);
            for (int i = 0; i < 2; i++) {
                mma(s[2 * n], q[i], k);
                mma(s[2 * n + 1], q[i], k + 2);
            }
        }
    }
}

/* Softmax of a query row so far; a lane has two of them, and of `sum` the part of its own columns. */
struct running {
    f32 max, sum, old;     /* old: the factor for o so far */
};

/* Scores become weights. row: the lane's first query row. */
static inline void weights(const struct attn_args *a, const struct tile *it, int t, int row, f32 (*s)[4], struct running run[2])
{
    f32 scale = a->scale * 1.44269504f;
    int column = t + threadIdx.x % 4 * 2;
    if (t + 31 > last_of(a, it, row - row % 16))
        for (int n = 0; n < 4; n++)
            for (int i = 0; i < 4; i++)
                if (column + n * 8 + i % 2 > last_of(a, it, row + i / 2 * 8)) s[n][i] = as_f32((i32)0xFF800000);
    for (int k = 0; k < 2; k++) {
        f32 max = run[k].max, sum = 0;
        for (int n = 0; n < 4; n++) max = fmaxf(max, fmaxf(s[n][2 * k], s[n][2 * k + 1]));
        max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
        max = fmaxf(max, __shfl_xor_sync(~0u, max, 2));
        for (int n = 0; n < 4; n++)
            for (int i = 2 * k; i < 2 * k + 2; i++) {
                s[n][i] = exp2_fast((s[n][i] - max) * scale);
                sum += s[n][i];
            }
        run[k].old = exp2_fast((run[k].max - max) * scale);
        run[k].sum = run[k].sum * run[k].old + sum;
        run[k].max = max;
    }
}

/* o = old o + the weighed values of the run, 32 dimensions at a time. */
static inline void add_values(const u16 *values, const f32 (*s)[4], const struct running run[2], f32 (*o)[4])
{
    int lane = threadIdx.x % 32;
    const u16 *value = values + lane % 16 * 264 + lane / 16 * 8;
    u32 high[2][4], low[2][4];
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 2; i++) split(s[n][2 * i], s[n][2 * i + 1], &high[n / 2][n % 2 * 2 + i], &low[n / 2][n % 2 * 2 + i]);
#pragma unroll
    for (int d = 0; d < 32; d += 4) {
        f32 sum[4][4] = { { 0 } };
        __syncwarp();   /* keeps the loads of one slice behind the one before, which needs their registers */
        for (int t = 0; t < 2; t++)
            for (int c = 0; c < 4; c += 2) {
                u32 v[4];
                ldmatrix_x4_trans(v, value + t * 4224 + (d + c) * 8);
                mma(sum[c], high[t], v);
                mma(sum[c + 1], high[t], v + 2);
                mma(sum[c], low[t], v);
                mma(sum[c + 1], low[t], v + 2);
            }
        for (int c = 0; c < 4; c++)
            for (int i = 0; i < 4; i++) o[d + c][i] = fmaf(o[d + c][i], run[i / 2].old, sum[c][i]);
    }
}

/* The lane's two query rows, divided by their sums and gated. */
static inline void store(const struct attn_args *a, const struct tile *it, int row, const struct running run[2],
                         const f32 (*o)[4])
{
#pragma unroll
    for (int k = 0; k < 2; k++) {
        f32 sum = run[k].sum + __shfl_xor_sync(~0u, run[k].sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        f32 inv = 1 / sum;
        i64 at = head_at(it, row + 8 * k) * 256;
        const f32 *gates = a->qg + 2 * at + 256;
        int on = row + 8 * k < it->count;   /* others help to quantise */
#pragma unroll
        for (int block = 0; block < 8; block++) {
            int d = block * 32 + threadIdx.x % 4 * 2;
            f32 y[8];
            for (int n = 0; n < 4; n++) {
                float2 gate = *(const float2 *)(gates + d + n * 8);
                y[2 * n] = o[block * 4 + n][2 * k] * inv * sigmoid_f32(gate.x);
                y[2 * n + 1] = o[block * 4 + n][2 * k + 1] * inv * sigmoid_f32(gate.y);
            }
            write_q8(&a->oq, at + d, y, on);
        }
    }
}

extern "C" __global__ void __launch_bounds__(128)
attn_prefill_heads16_kv_heads4_head_dim256_f16_f16_q8_mma_tile64_warps4_chunk32(const struct attn_args a)
{
    SHARED_DYNAMIC(memory);
    __shared__ struct tile it;   /* not in registers, which o needs */
    u16 *high = (u16 *)memory, *low = high + 16896, *keys = low + 16896, *values = keys + 8448;
    pdl_launch();
    pdl_wait();
    const struct step *st = a.step;
    int seq = blockIdx.z, from = (gridDim.y - 1 - blockIdx.y) * 16;
    int rows = seq < st->n_seqs ? st->seq_rows[seq] - from : 0;
    if (rows <= 0) return;
    if (rows > 16) rows = 16;
    int first = st->seq_row[seq] + from;
    int tokens = st->kv[first + rows - 1] + 1;
    if (threadIdx.x == 0) it = { st->pages + (i64)seq * st->page_stride, first, (int)blockIdx.x, rows * 4, tokens };
    __syncthreads();
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    struct running run[2] = { { as_f32((i32)0xFF800000), 0, 0 }, { as_f32((i32)0xFF800000), 0, 0 } };
    f32 o[32][4] = { { 0 } };
    copy_run(&it, a.pages_k, 0, keys);
    load_queries(&a, &it, high, low);
    for (int t = 0; t < tokens; t += 32) {
        f32 s[4][4];
        arrive();
        copy_run(&it, a.pages_v, t, values);
        scores(high, low, keys, s);
        weights(&a, &it, t, row, s, run);
        arrive();
        if (t + 32 < tokens) copy_run(&it, a.pages_k, t + 32, keys);
        add_values(values, s, run, o);
    }
    store(&a, &it, row, run, o);
}
