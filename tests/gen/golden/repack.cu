/* repack_q8_0_planes_n3584_k1024_threads256: file rows [row0, row0 + n_rows) of a q8_0 matrix into its two planes.
 *   src: rows of 32 blocks, a half scale and 32 int8 each, 2-byte aligned; dst: [3584][1024] int8,
 *     behind it [3584][32] half scales
 *   a warp moves 32 blocks at a time, a lane one word of four of them in turn; what a load leaves of a sector the next finds in
 *     L1
 *   moves 68 bytes a block: bound by memory, and far faster than src comes from a host
 * made by: quarry-gen repack --shape type=q8_0,layout=planes,n=3584,k=1024 --params threads=256 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

extern "C" __global__ void __launch_bounds__(256) repack_q8_0_planes_n3584_k1024_threads256(const struct repack_args a)
{
    i64 count = a.n_rows * 32, warps = (i64)gridDim.x * 8;
    int lane = threadIdx.x % 32;
    i32 *words = (i32 *)a.dst + a.row0 * 256;
    u16 *scales = (u16 *)((u8 *)a.dst + 3670016ll) + a.row0 * 32;
    pdl_launch();
    pdl_wait();
    for (i64 first = ((i64)blockIdx.x * 8 + threadIdx.x / 32) * 32; first < count; first += warps * 32) {
        for (int i = 0; i < 8; i++) {
            i64 b = first + i * 4 + lane / 8;
            const u16 *pair = (const u16 *)a.src + b * 17 + 1 + lane % 8 * 2;
            if (b < count) words[b * 8 + lane % 8] = pair[0] | pair[1] << 16;
        }
        i64 b = first + lane;
        if (b < count) scales[b] = ((const u16 *)a.src)[b * 17];
    }
}
