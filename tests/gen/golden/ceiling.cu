/* ceiling_dp4a_plain_threads256_per_sm4: the ceiling of a card for dp4a.
 *   warp w does the w-th of equal shares of the rounds. A round: 8 independent chains of 32 steps,
 *     32768 multiply-adds, every operand 1
 *   out += the number of multiply-adds, counted by the chains themselves; chain i starts at i, so that no two are the same
 *   The sums are looked at every 1024 steps, so that that costs nothing and none overflows.
 *   1 is gridDim.z here, which no compiler knows
 *   caller: any number of blocks along x
 * made by: quarry-gen ceiling --shape what=dp4a --params form=plain,threads=256,per_sm=4 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

extern "C" __global__ void __launch_bounds__(256) ceiling_dp4a_plain_threads256_per_sm4(const struct ceiling_args a)
{
    pdl_wait();
    int lane = threadIdx.x % 32;
    u64 sum = 0;
    i64 warp = (i64)blockIdx.x * 8 + threadIdx.x / 32, warps = (i64)gridDim.x * 8;
    i64 rounds = a.loops * 8, end = rounds * (warp + 1) / warps;
    i32 one = (i32)gridDim.z * 0x01010101;
    for (i64 done = rounds * warp / warps; done < end;) {
        int n = end - done < 32 ? (int)(end - done) : 32;
        i32 c[8];
        #pragma unroll
        for (int i = 0; i < 8; i++) c[i] = (i32)i;
        #pragma unroll 1
        for (int round = 0; round < n; round++) {
            #pragma unroll
            for (int i = 0; i < 256; i++) c[i % 8] = dp4a(one, one, c[i % 8]);
        }
        #pragma unroll
        for (int i = 0; i < 8; i++) sum += (u64)((i32)c[i] - i);
        done += n;
    }
    for (int m = 16; m; m >>= 1) sum += __shfl_xor_sync(~0u, sum, m);
    if (lane == 0 && sum != 0) atomicAdd(a.out, sum);
}
