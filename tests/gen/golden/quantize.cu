/* quantize_n1024_threads128: rows of 1024 fp32 to int8 blocks of 32: d = max|x| / 127, q = round(x * (127 / max|x|)),
 *     ties to even, s = sum of q.
 *   x: [n_rows][1024] fp32; q: int8 [n_rows][1024], d (scale) and s (sum): [n_rows][32]
 *   a thread owns four neighbours, eight lanes a block of 32; 2 thread blocks of 128 for each row of a bucket
 *   moves 5376 bytes a row, 4 operations a value: bound by memory, few rows by latency
 *   caller: at least 2 n_rows thread blocks, values are finite
 * made by: quarry-gen quantize --shape n=1024 --params threads=128 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

extern "C" __global__ void __launch_bounds__(128) quantize_n1024_threads128(const struct quantize_args a)
{
    i64 i = (i64)blockIdx.x * 128 + threadIdx.x;
    pdl_launch();
    bool inside = i < (i64)load_early(a.n_rows) * 256;
    pdl_wait();
    float4 v = inside ? ((const float4 *)a.x)[i] : make_float4(0, 0, 0, 0);
    f32 most = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    for (int m = 4; m; m >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    f32 inverse = most > 0x1p-120f ? 127.0f / most : 0.0f;
    i32 q0 = round_i32(v.x * inverse), q1 = round_i32(v.y * inverse), q2 = round_i32(v.z * inverse),
        q3 = round_i32(v.w * inverse);
    i32 sum = q0 + q1 + q2 + q3;
    for (int m = 4; m; m >>= 1) sum += __shfl_xor_sync(~0u, sum, m);
    if (!inside) return;
    ((u32 *)a.q.q)[i] = (u32)(q0 & 255) | (u32)(q1 & 255) << 8 | (u32)(q2 & 255) << 16 | (u32)q3 << 24;
    if (i % 8 == 0) {
        a.q.d[i / 8] = most > 0x1p-120f ? most / 127.0f : 0.0f;
        a.q.s[i / 8] = sum;
    }
}
