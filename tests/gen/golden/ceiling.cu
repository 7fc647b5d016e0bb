/* ceiling_dp4a_plain_threads256_per_sm8: the ceiling of a card for dp4a.
 *   warp w does loop w, w + warps, ..: 8 independent chains of 256 steps, 262144 multiply-adds in all, every operand 1
 *   out += the number of multiply-adds, counted by the chains themselves; chain i starts at i, so that no two are the same
 *   1 is gridDim.z here, which no compiler knows
 *   caller: any number of blocks along x
 * made by: quarry-gen ceiling --shape what=dp4a --params form=plain,threads=256,per_sm=8 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

extern "C" __global__ void __launch_bounds__(256) ceiling_dp4a_plain_threads256_per_sm8(const struct ceiling_args a)
{
    pdl_wait();
    int lane = threadIdx.x % 32;
    i64 warp = (i64)blockIdx.x * 8 + threadIdx.x / 32, warps = (i64)gridDim.x * 8;
    u64 sum = 0;
    i32 one = (i32)gridDim.z * 0x01010101;
    for (i64 loop = warp; loop < a.loops; loop += warps) {
        i32 c[8];
        #pragma unroll
        for (int i = 0; i < 8; i++) c[i] = (i32)i;
        #pragma unroll 8
        for (int step = 0; step < 256; step++) {
            #pragma unroll
            for (int i = 0; i < 8; i++) c[i] = dp4a(one, one, c[i]);
        }
        #pragma unroll
        for (int i = 0; i < 8; i++) sum += (u64)((i32)c[i] - i);
    }
    for (int m = 16; m; m >>= 1) sum += __shfl_xor_sync(~0u, sum, m);
    if (lane == 0 && sum != 0) atomicAdd(a.out, sum);
}
