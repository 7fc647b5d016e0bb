/* attn_decode_heads16_kv_heads4_head_dim256_f16_f16_q8_split_warps4_chunk128_lanes32_unroll4_stages1:
 *     o[r][h] = sigmoid(gate[r][h]) * softmax(scale * q[r][h] . K) V over KV 0..kv[r] of the row's sequence,
 *     head h / 4 of K and V.
 *   q: [n_rows][16][256]; qg: [n_rows][16][512], the gate is the second half
 *   oq: int8 [n_rows][4096], d (scale) and s (sum): [n_rows][128], blocks of 32
 *   a page of K (f16) and V (f16): [4][KV_PAGE][256]; work: [span][n_rows][16][272], o, then max and sum
 *   blocks (j, r, c) own the c-th span of row r for all heads of KV head j: 128 tokens, KV_CHUNK in a step of more than 16 rows,
 *     or so many times that that attn_splits() are enough
 *     warp w takes runs w, w + 4, .. of 32 tokens: 32 lanes a token for scores, a lane a token for weights, 32 a token for values
 *   scores by fma over a lane's dimensions and a tree over lanes; weights by exp2 of a running max; warps merge ascending
 *   the second kernel merges spans and applies the gate: blocks (h * 4 + i, r) own the i-th 64 dimensions
 *     of head h, row r
 *   moves 4096 bytes a token of each row, once for all heads; bound by read bandwidth
 *   caller: at most 64 rows, a grid over all chunks of the longest sequence, and work as attn_work() says
 * made by: quarry-gen attn_decode --shape heads=16,kv_heads=4,head_dim=256,fk=f16,fv=f16,out=q8 --params path=split,warps=4,chunk=128,lanes=32,unroll=4,stages=1 --card cuda:sm_90 */
#include "kernel.cuh"
#include "args.h"

/* A warp goes through 32 tokens in 8 batches of 4, lane l through a vector of 8 halves of each token.
 * They lie in one page, where what comes after the last token may be anything. from: the lane's first vector of the run. */
static inline void fetch(int4 *x, const u16 *from, int batch)
{
    for (int u = 0; u < 4; u++) x[u] = load_stream16(from + (batch * 4 + u) * 256);
}

static inline void to_f32(f32 y[8], int4 x)
{
    u32 word[4] = { (u32)x.x, (u32)x.y, (u32)x.z, (u32)x.w };
    for (int i = 0; i < 4; i++) {
        float2 pair = h2f2(word[i]);
        y[2 * i] = pair.x;
        y[2 * i + 1] = pair.y;
    }
}

/* Sums over 32 lanes of 4 values at once: each fold halves what a lane still sums, and lanes 8u .. get the u-th. */
static inline f32 fold(f32 *x)
{
    int lane = threadIdx.x % 32;
    x[0] = (lane & 16 ? x[2] : x[0]) + __shfl_xor_sync(~0u, lane & 16 ? x[0] : x[2], 16);
    x[1] = (lane & 16 ? x[3] : x[1]) + __shfl_xor_sync(~0u, lane & 16 ? x[1] : x[3], 16);
    x[0] = (lane & 8 ? x[1] : x[0]) + __shfl_xor_sync(~0u, lane & 8 ? x[0] : x[1], 8);
    x[0] += __shfl_xor_sync(~0u, x[0], 4);
    x[0] += __shfl_xor_sync(~0u, x[0], 2);
    x[0] += __shfl_xor_sync(~0u, x[0], 1);
    return x[0];
}

/* A batch's scores, to s[token]. q: of each head, fours of dimensions so that the lanes of a token read side by side. */
static inline void scores(const int4 *x, const float4 *q, int batch, f32 (*s)[4])
{
    int lane = threadIdx.x % 32, u = lane / 8;   /* u: the token whose score this lane gets */
    f32 k[4][8];
    for (int i = 0; i < 4; i++) to_f32(k[i], x[i]);
    for (int h = 0; h < 4; h++) {
        f32 sum[4] = { 0 };
        for (int i = 0; i < 2; i++) {
            float4 four = q[(h * 2 + i) * 32 + lane];
            for (int t = 0; t < 4; t++) {
                sum[t] = fmaf(four.x, k[t][4 * i], sum[t]);
                sum[t] = fmaf(four.y, k[t][4 * i + 1], sum[t]);
                sum[t] = fmaf(four.z, k[t][4 * i + 2], sum[t]);
                sum[t] = fmaf(four.w, k[t][4 * i + 3], sum[t]);
            }
        }
        f32 score = fold(sum);
        if (lane % 8 == 0) s[batch * 4 + u][h] = score;
    }
}

/* o += a batch's weighed values; those past the last token count as 0, since their weight of 0 does not make up for a NaN. */
static inline void add_values(const int4 *x, int batch, int left, const f32 (*s)[4], f32 *o)
{
    int4 zero = make_int4(0, 0, 0, 0);
    for (int u = 0; u < 4; u++) {
        int t = batch * 4 + u;
        const f32 *p = s[t];
        f32 v[8];
        to_f32(v, t < left ? x[u] : zero);
        for (int h = 0; h < 4; h++)
            for (int i = 0; i < 8; i++) o[h * 8 + i] = fmaf(p[h], v[i], o[h * 8 + i]);
    }
}

/* Softmax of a head so far, in powers of two: every lane has the max, and the sum over the tokens of its own. */
struct running {
    f32 max, sum;
};

/* Lane t turns the scores of token t into weights; o is brought to the new max. */
static inline void weights(f32 *s, int visible, f32 scale, struct running *run, f32 *o)
{
    for (int h = 0; h < 4; h++) {
        f32 x = visible ? s[h] * scale : as_f32((i32)0xFF800000);
        f32 max = fmaxf(run[h].max, warp_max(x)), old = exp2_fast(run[h].max - max), p = exp2_fast(x - max);
        s[h] = p;
        run[h].sum = run[h].sum * old + p;
        run[h].max = max;
        for (int i = 0; i < 8; i++) o[h * 8 + i] *= old;
    }
}

/* All the runs of 32 tokens of this warp, from `first` on, which lies in `page`. */
static inline void attend(const struct attn_args *a, const i32 *pages, int page, int first, int end, const float4 *q, f32 (*s)[4],
                          struct running *run, f32 *o)
{
    int lane = threadIdx.x % 32;
    for (int t = first; t < end; t += 128) {
        i64 at = (((i64)page * 4 + blockIdx.x) * KV_PAGE + t % KV_PAGE) * 256 + lane * 8;
        const u16 *keys = (const u16 *)a->pages_k + at, *values = (const u16 *)a->pages_v + at;
        int4 x[2][4];
        if (t + 128 < end) page = pages[(t + 128) / KV_PAGE];
        fetch(x[0], keys, 0);
#pragma unroll
        for (int b = 0; b < 8; b++) {
            if (b < 7) fetch(x[(b + 1) % 2], keys, b + 1);
            else fetch(x[(b + 1) % 2], values, 0);
            scores(x[b % 2], q, b, s);
            __syncwarp();
        }
        weights(s[lane], t + lane < end, a->scale * 1.44269504f, run, o);
        __syncwarp();
#pragma unroll
        for (int b = 0; b < 8; b++) {
            if (b < 7) fetch(x[(8 + b + 1) % 2], values, b + 1);
            add_values(x[(8 + b) % 2], b, end - t, s, o);
        }
        __syncwarp();
    }
}

extern "C" __global__ void __launch_bounds__(128, 4)
attn_decode_heads16_kv_heads4_head_dim256_f16_f16_q8_split_warps4_chunk128_lanes32_unroll4_stages1(const struct attn_args a)
{
    __shared__ __align__(16) f32 s[4][32][4];
    __shared__ __align__(16) f32 part[4][1024];
    __shared__ __align__(16) f32 q[4][256];
    __shared__ struct running of[4][4];
    pdl_launch();
    const struct step *st = a.step;
    int rows = load_early(&st->n_rows), page_stride = load_early(&st->page_stride), lane = threadIdx.x % 32,
        warp = threadIdx.x / 32;
    i64 r = (int)blockIdx.y < rows ? blockIdx.y : 0, head = r * 16 + blockIdx.x * 4;
    int tokens = load_early(st->kv + r) + 1, span = rows > 16 ? (tokens + 16383) / 16384 * 256 : (tokens + 32767) / 32768 * 128,
        first = blockIdx.z * span, end = tokens;
    if ((int)blockIdx.y >= rows || first >= end) {   /* grids follow buckets: such blocks may be many */
        pdl_wait();
        return;
    }
    end = end - first < span ? end : first + span;
    int own = first + warp * 32;
    const i32 *pages = st->pages + (i64)load_early(st->seq + r) * page_stride;
    int page = load_early(pages + (own < end ? own : end - 1) / KV_PAGE);
    pdl_wait();
    for (int i = threadIdx.x; i < 1024; i += 128) {
        int d = i % 256;
        q[i / 256][d / 4 % 2 * 128 + d / 8 * 4 + d % 4] = a.q[head * 256 + i];
    }
    __syncthreads();
    f32 o[32] = { 0 };
    struct running run[4];
    for (int h = 0; h < 4; h++) run[h] = { as_f32((i32)0xFF800000), 0 };
    attend(&a, pages, page, own, end, (const float4 *)q, s[warp], run, o);
    for (int h = 0; h < 4; h++) {
        f32 sum = warp_sum(run[h].sum);
        if (lane == 0) of[warp][h] = { run[h].max, sum };
        for (int i = 0; i < 8; i++) {
            f32 x = o[h * 8 + i];
            part[warp][h * 256 + lane * 8 + i] = x;
        }
    }
    __syncthreads();
    f32 *out = (f32 *)a.work + ((i64)blockIdx.z * rows * 16 + head) * 272;
    for (int i = threadIdx.x; i < 1024; i += 128) {
        int h = i / 256;
        f32 max = of[0][h].max, sum = 0, x = 0;
        for (int w = 1; w < 4; w++) max = fmaxf(max, of[w][h].max);
        for (int w = 0; w < 4; w++) {
            f32 factor = exp2_fast(of[w][h].max - max);
            sum = fmaf(of[w][h].sum, factor, sum);
            x = fmaf(part[w][i], factor, x);
        }
        out[h * 272 + i % 256] = x;
        if (i % 256 == 0) {
            out[h * 272 + 256] = max;
            out[h * 272 + 257] = sum;
        }
    }
}

/* A block of 32 as int8, scale and sum, as kernel.h defines them: a warp holds it, a value a lane. All lanes of the warp call;
 * on: this lane's block exists. at: the lane's first element in q; its block's d and s are at / 32. */
static inline void write_q8(const struct act_q8 *a, i64 at, const f32 *x, int on)
{
    i32 q[1], sum = 0;
    f32 most = 0;
    for (int i = 0; i < 1; i++) most = fmaxf(most, fabsf(x[i]));
    for (int m = 16; m; m >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    f32 inverse = most > 0x1p-120f ? 127.0f / most : 0.0f;
    for (int i = 0; i < 1; i++) {
        q[i] = round_i32(x[i] * inverse);
        sum += q[i];
    }
    for (int m = 16; m; m >>= 1) sum += __shfl_xor_sync(~0u, sum, m);
    if (!on) return;
    a->q[at] = (i8)q[0];
    if (threadIdx.x % 32) return;
    a->d[at / 32] = most > 0x1p-120f ? most / 127.0f : 0.0f;
    a->s[at / 32] = sum;
}

/* The weight of each span's result, to w, and the sum over all. The whole block calls. */
static inline f32 span_weights(const f32 *part, i64 stride, int spans, f32 *w, f32 *reduce)
{
    int c = threadIdx.x, warp = c / 32;
    f32 own = c < spans ? part[c * stride + 256] : as_f32((i32)0xFF800000), sum = c < spans ? part[c * stride + 257] : 0;
    f32 max = warp_max(own);
    if (c % 32 == 0) reduce[warp] = max;
    __syncthreads();
    for (int i = 0; i < 8; i++) max = fmaxf(max, reduce[i]);
    f32 by = exp2_fast(own - max);
    if (c < 256) w[c] = by;
    sum = warp_sum(sum * by);
    if (c % 32 == 0) reduce[8 + warp] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < 8; i++) sum += reduce[8 + i];
    return sum;
}

/* Blocks (h * 4 + i, r): dimensions 64i .. of head h, row r. Team k of 16 adds spans k, k + 16, ..,
 * eight loads at a time. */
extern "C" __global__ void __launch_bounds__(256)
attn_decode_heads16_kv_heads4_head_dim256_f16_f16_q8_split_warps4_chunk128_lanes32_unroll4_stages1_2(const struct attn_args a)
{
    __shared__ __align__(16) f32 sums[16][64];
    __shared__ f32 w[256], reduce[16];
    pdl_launch();
    int rows = load_early(&a.step->n_rows);
    i64 r = (int)blockIdx.y < rows ? blockIdx.y : 0, h = blockIdx.x / 4, at = r * 16 + h, stride = (i64)rows * 4352;
    int tokens = load_early(a.step->kv + r) + 1,
        span = rows > 16 ? (tokens + 16383) / 16384 * 256 : (tokens + 32767) / 32768 * 128, spans = (tokens + span - 1) / span;
    int base = blockIdx.x % 4 * 64, team = threadIdx.x / 16, d = threadIdx.x % 16 * 4;
    pdl_wait();
    if ((int)blockIdx.y >= rows) return;
    const f32 *part = (const f32 *)a.work + at * 272;
    f32 sum = span_weights(part, stride, spans, w, reduce);
    const f32 *mine = part + base + d;
    float4 o = make_float4(0, 0, 0, 0);
    if (team < 16)
        for (int c = team; c < spans; c += 128) {
            float4 x[8];
            for (int u = 0; u < 8; u++) x[u] = *(const float4 *)(mine + (c + u * 16 < spans ? c + u * 16 : c) * stride);
            for (int u = 0; u < 8; u++) {
                f32 by = c + u * 16 < spans ? w[c + u * 16] : 0;
                o.x = fmaf(x[u].x, by, o.x);
                o.y = fmaf(x[u].y, by, o.y);
                o.z = fmaf(x[u].z, by, o.z);
                o.w = fmaf(x[u].w, by, o.w);
            }
        }
    if (team < 16) *(float4 *)&sums[team][d] = o;
    __syncthreads();
    f32 inv = 1 / sum;
    if (threadIdx.x >= 64) return;
    d = threadIdx.x;
    f32 own = 0;
    for (int k = 0; k < 16; k++) own += sums[k][d];
    d += base;
    own = own * inv * sigmoid_f32(a.qg[at * 512 + 256 + d]);
    write_q8(&a.oq, at * 256 + d, &own, 1);
}
