/* embed_q8_0_planes_n1024_vocab4096_threads128: x[r] = row token[r] of w as fp32; rows with token -1 come from step->embd.
 *   w: [4096][1024] q8_0, a plane of int8, then one of half scales, [4096][32]; x, embd: [n_rows][1024] fp32
 *   2 thread blocks own a row, a thread 4 neighbours
 *   moves 5184 bytes a row: bound by memory latency and bandwidth
 *   caller: blockIdx.y covers n_rows; token[r] < 4096; embd is there when a token is -1
 * made by: quarry-gen embed --shape type=q8_0,layout=planes,n=1024,vocab=4096 --params threads=128 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

/* Elements i .. i + 3 of row `row` as fp32; exact, a half by an int8 fits. */
static inline float4 load(const void *w, i64 row, int i)
{
    const u8 *scales = (const u8 *)w + 4194304;
    f32 d = h2f(((const u16 *)scales)[row * 32 + i / 32]);
    i32 q = *(const i32 *)((const i8 *)w + row * 1024 + i);
    return make_float4(d * (f32)byte_of(q, 0), d * (f32)byte_of(q, 1), d * (f32)byte_of(q, 2), d * (f32)byte_of(q, 3));
}

extern "C" __global__ void __launch_bounds__(128) embed_q8_0_planes_n1024_vocab4096_threads128(const struct embed_args a)
{
    int i = (blockIdx.x * 128 + threadIdx.x) * 4, r = blockIdx.y;
    pdl_launch();
    pdl_wait();
    if (i >= 1024 || r >= a.step->n_rows) return;
    i64 token = a.step->token[r];
    float4 *x = (float4 *)(a.x + (i64)r * 1024 + i);
    *x = token < 0 ? *(const float4 *)(a.step->embd + (i64)r * 1024 + i) : load(a.w, token, i);
}
