/* rmsnorm_n1024_both_threads256_strided: y[r] = x * w / sqrt(mean(x^2) + eps), where x is row list[r] of the input,
 *     or row r without a list.
 *   x: [.][1024] fp32, w: [1024] fp32, y: [n_rows][1024] fp32
 *   q: int8 [n_rows][1024], d (scale) and s (sum): [n_rows][32], blocks of 32
 *   block b owns row b, its thread t the groups of four values t, t + 256, .., in registers
 *   sum of squares: the first warp's lane l the partial of values l, l + 32, .. from shared memory, folded by halves
 *   moves 9472 bytes a row and w, 4 operations a value: bound by memory, one row by latency
 *   caller: at least n_rows blocks; x and outputs do not overlap unless y is x with no list; all of it 16-byte aligned
 * made by: quarry-gen rmsnorm --shape n=1024,out=both --params threads=256,sum=strided --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

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

extern "C" __global__ void __launch_bounds__(256) rmsnorm_n1024_both_threads256_strided(const struct rmsnorm_args a)
{
    __shared__ float4 row[256];
    __shared__ f32 row_scale;
    int t = threadIdx.x, r = blockIdx.x;
    const float4 *weight = (const float4 *)a.w;
    float4 w[1], x[1];
    #pragma unroll
    for (int i = 0; i < 1; i++) w[i] = weight[t + i * 256];
    pdl_launch();
    int rows = load_early(a.n_rows);
    pdl_wait();
    if (r >= rows) return;
    const float4 *in = (const float4 *)(a.x + (i64)(a.list ? a.list[r] : r) * 1024);
    #pragma unroll
    for (int i = 0; i < 1; i++) x[i] = in[t + i * 256];
    #pragma unroll
    for (int i = 0; i < 1; i++) row[t + i * 256] = x[i];
    __syncthreads();
    if (t < 32) {
        const f32 *v = (const f32 *)row;
        f32 sum = 0;
        #pragma unroll 16
        for (int i = t; i < 1024; i += 32) sum = fmaf(v[i], v[i], sum);
        sum = warp_sum(sum);
        if (t == 0) row_scale = 1.0f / sqrtf(sum / 1024.0f + a.eps);
    }
    __syncthreads();
    f32 scale = row_scale;
    #pragma unroll
    for (int i = 0; i < 1; i++) {
        int at = t + i * 256;
        float4 v = make_float4(x[i].x * scale * w[i].x, x[i].y * scale * w[i].y,
                               x[i].z * scale * w[i].z, x[i].w * scale * w[i].w);
        ((float4 *)(a.y + (i64)r * 1024))[at] = v;
        write_q8(&a.q, (i64)r * 1024 + 4 * at, v, 1);
    }
}
