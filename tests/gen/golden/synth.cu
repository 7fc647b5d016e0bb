/* synth_q8_0_planes_n3584_k1024_matrix_threads256: the made-up weights of a tensor, bit for bit those of runtime/model_synth.c.
 *   an element is a hashed byte times the scale of its block of 32 in the order of the file; the scale is uniform within 25 % of
 *     std / 73.6
 *   dst: [3584][1024] q8_0, a plane of int8, then one of half scales; a thread owns blocks, a grid apart
 *   bound by memory, and by 64-bit multiplications on cards that are slow at them
 * made by: quarry-gen synth --shape type=q8_0,layout=planes,n=3584,k=1024,kind=matrix --params threads=256 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

/* One splitmix64 step a counter. */
static inline u64 mix(u64 seed, u64 counter)
{
    u64 z = seed + (counter + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

/* Four bytes, -128 made 127. */
static inline u32 without_least(u32 q)
{
    for (int i = 0; i < 32; i += 8)
        if ((q >> i & 255) == 128) q ^= 255u << i;
    return q;
}

/* Scale of a block as a half, its 32 bytes in q. */
static inline u16 make_block(u64 seed, u64 block, f32 std, u32 q[8])
{
    for (int i = 0; i < 4; i++) {
        u64 bits = mix(seed, block * 5 + i);
        q[2 * i] = without_least((u32)bits);
        q[2 * i + 1] = without_least((u32)(bits >> 32));
    }
    f32 unit = (f32)(mix(seed, block * 5 + 4) >> 11) * 0x1p-53f;
    return f2h(std / 73.6f * (0.75f + 0.5f * unit));
}

extern "C" __global__ void __launch_bounds__(256) synth_q8_0_planes_n3584_k1024_matrix_threads256(const struct synth_args a)
{
    i64 first = (i64)blockIdx.x * 256 + threadIdx.x, step = (i64)gridDim.x * 256;
    pdl_launch();
    pdl_wait();
    for (i64 b = first; b < a.n_rows * 32; b += step) {
        u32 q[8];
        u16 d = make_block(a.seed, (u64)b, a.std, q);
        i64 at = a.row0 * 32 + b;
        uint4 *to = (uint4 *)a.dst + at * 2;
        to[0] = make_uint4(q[0], q[1], q[2], q[3]);
        to[1] = make_uint4(q[4], q[5], q[6], q[7]);
        ((u16 *)((u8 *)a.dst + 3670016ll))[at] = d;
    }
}
