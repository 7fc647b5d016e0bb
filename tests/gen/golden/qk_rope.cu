/* qk_rope_heads16_kv_heads4_head_dim256_pairs32_warps4: rmsnorm of each query and key head, then rotation of the pairs
 *     (i, i + 32) of its first 64 values.
 *   qg: [n_rows][16][512], the query is the first half; q: [n_rows][16][256]
 *   k: [n_rows][4][256], in place; cs: [n_rows][32][2]; wq, wk: [256]
 *   blocks (b, r) own heads b * 4 .. of row r (first queries, then keys), a warp each; lane l has the values l, l + 32, ..
 *   moves 41216 bytes a row (each value in and out once); bound by latency, many rows by memory
 *   sum of squares by 32 strided partials, folded by halves
 *   caller: a grid of 5 by at least n_rows blocks
 * made by: quarry-gen qk_rope --shape heads=16,kv_heads=4,head_dim=256,pairs=32 --params warps=4 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

extern "C" __global__ void __launch_bounds__(128) qk_rope_heads16_kv_heads4_head_dim256_pairs32_warps4(const struct qk_rope_args a)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, h = blockIdx.x * 4 + warp;
    i64 r = blockIdx.y;
    const f32 *weight = h < 16 ? a.wq : a.wk;
    f32 w[8], x[8];
    for (int i = 0; i < 8; i++) w[i] = weight[lane + 32 * i];
    pdl_launch();
    int rows = load_early(&a.step->n_rows);
    pdl_wait();
    if (h >= 20 || r >= rows) return;
    f32 *key = a.k + (r * 4 + h - 16) * 256;
    const f32 *in = h < 16 ? a.qg + (r * 16 + h) * 512 : key;
    f32 *out = h < 16 ? a.q + (r * 16 + h) * 256 : key;
    const float2 *cs = (const float2 *)a.cs + r * 32;
    f32 sum = 0;
    for (int i = 0; i < 8; i++) {
        x[i] = in[lane + 32 * i];
        sum = fmaf(x[i], x[i], sum);
    }
    f32 inv = 1.0f / sqrtf(warp_sum(sum) / 256.0f + a.eps);
    for (int i = 0; i < 8; i++) x[i] = x[i] * inv * w[i];
    for (int i = 0; i < 1; i++) {
        float2 c = cs[lane + 32 * i];
        f32 lo = x[i], hi = x[i + 1];
        x[i] = lo * c.x - hi * c.y;
        x[i + 1] = lo * c.y + hi * c.x;
    }
    for (int i = 0; i < 8; i++) out[lane + 32 * i] = x[i];
}
