/* Small kernels, right ones and ones with a single fault. Above each stands how it is launched and what must come of it:
 * "passes", or a part of the report. Right means y[i] = x[i] + 1 for all 256 i, whatever the order of blocks. */
#include "kernel.cuh"
#include "args.h"

/* test: 64 threads, 4 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(64) add_one(const struct test_args a)
{
    pdl_wait();
    int i = blockIdx.x * 64 + threadIdx.x;
    a.y[i] = a.x[i] + 1;
}

/* The sum of a block, by shuffles and one exchange; right if it is what it must be. */
static inline f32 block_sum(f32 x, f32 *part)
{
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    return part[0] + part[1];
}

/* test: 64 threads, 4 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(64) reduction(const struct test_args a)
{
    __shared__ f32 part[2];
    pdl_wait();
    int i = blockIdx.x * 64 + threadIdx.x;
    f32 sum = block_sum(a.x[i], part);
    a.y[i] = a.x[i] + (sum == 64.0f * 64 * blockIdx.x + 2016 ? 1 : 0);
}

/* test: 64 threads, 4 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(64) exchange(const struct test_args a)
{
    __shared__ f32 row[64];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 64;
    row[t] = a.x[first + t];
    __syncthreads();
    a.y[first + 63 - t] = row[63 - t] + 1;
}

/* test: 64 threads, 4 blocks, 0 bytes: shared row, byte 128 of 256, which thread */
extern "C" __global__ void __launch_bounds__(64) no_barrier(const struct test_args a)
{
    __shared__ f32 row[64];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 64;
    if (t / 32 == 1) row[t] = a.x[first + t];
    if (t / 32 == 1) __syncwarp();
    if (t < 32) row[t] = a.x[first + t];
    if (t / 32 == 0) a.y[first + 32 + t] = row[32 + t] + 1;
    if (t / 32 == 0) a.y[first + t] = row[t] + 1;
}

/* test: 64 threads, 4 blocks, 0 bytes: no barrier between */
extern "C" __global__ void __launch_bounds__(64) write_after_read(const struct test_args a)
{
    __shared__ f32 row[64];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 64;
    row[t] = a.x[first + t];
    __syncthreads();
    f32 other = row[63 - t];
    if (t < 32) __syncwarp();
    row[t] = other;
    a.y[first + 63 - t] = other + 1;
}

/* test: 32 threads, 8 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(32) warp_exchange(const struct test_args a)
{
    __shared__ f32 row[32];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 32;
    row[t] = a.x[first + t];
    __syncwarp();
    a.y[first + 31 - t] = row[31 - t] + 1;
}

/* test: 32 threads, 8 blocks, 0 bytes: no __syncwarp of both between */
extern "C" __global__ void __launch_bounds__(32) no_syncwarp(const struct test_args a)
{
    __shared__ f32 row[32];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 32;
    row[t] = a.x[first + t];
    a.y[first + 31 - t] = row[31 - t] + 1;
}

/* A shuffle is no barrier of memory. */
/* test: 32 threads, 8 blocks, 0 bytes: no __syncwarp of both between */
extern "C" __global__ void __launch_bounds__(32) only_a_shuffle(const struct test_args a)
{
    __shared__ f32 row[32];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 32;
    row[t] = a.x[first + t];
    f32 one = __shfl_sync(~0u, 1.0f, 0);
    a.y[first + 31 - t] = row[31 - t] + one;
}

/* But it ends what was read before. */
/* test: 32 threads, 8 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(32) read_then_shuffle(const struct test_args a)
{
    __shared__ f32 row[32];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 32;
    row[t] = a.x[first + t];
    __syncwarp();
    f32 other = __shfl_sync(~0u, row[31 - t], t);
    row[t] = 0;
    a.y[first + 31 - t] = other + 1;
}

/* test: 32 threads, 8 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(32) half_warps(const struct test_args a)
{
    __shared__ f32 row[32];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 32;
    row[t] = a.x[first + t];
    __syncwarp(t < 16 ? 0xFFFF : 0xFFFF0000);
    a.y[first + (t ^ 15)] = row[t ^ 15] + 1;
}

/* test: 32 threads, 8 blocks, 0 bytes: no __syncwarp of both between */
extern "C" __global__ void __launch_bounds__(32) half_warps_apart(const struct test_args a)
{
    __shared__ f32 row[32];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 32;
    row[t] = a.x[first + t];
    __syncwarp(t < 16 ? 0xFFFF : 0xFFFF0000);
    a.y[first + (t ^ 31)] = row[t ^ 31] + 1;
}

/* Knowledge goes on: 0 .. 15 to 15, 16; from there to 16 .. 31. */
/* test: 32 threads, 8 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(32) handed_on(const struct test_args a)
{
    __shared__ f32 row[32];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 32;
    if (t == 0) row[0] = a.x[first];
    if (t < 16) __syncwarp(0xFFFF);
    if (t == 15 || t == 16) __syncwarp(0x18000);
    if (t >= 16) __syncwarp(0xFFFF0000);
    if (t == 31) a.y[first] = row[0] + 1;
    if (t > 0) a.y[first + t] = a.x[first + t] + 1;
}

/* test: 64 threads, 4 blocks, 0 bytes: reads 4 bytes at byte 1024 of the 1024 of x */
extern "C" __global__ void __launch_bounds__(64) read_beyond(const struct test_args a)
{
    pdl_wait();
    int i = blockIdx.x * 64 + threadIdx.x;
    a.y[i] = a.x[i + 1];
}

/* test: 64 threads, 4 blocks, 0 bytes: writes 4 bytes at byte -4 of the 1024 of y */
extern "C" __global__ void __launch_bounds__(64) write_before(const struct test_args a)
{
    pdl_wait();
    int i = blockIdx.x * 64 + threadIdx.x;
    a.y[i - 1] = a.x[i];
}

/* test: 64 threads, 4 blocks, 0 bytes: x, byte 0 of 1024, which is only to be read */
extern "C" __global__ void __launch_bounds__(64) write_input(const struct test_args a)
{
    pdl_wait();
    int i = blockIdx.x * 64 + threadIdx.x;
    ((f32 *)a.x)[i] += 1;
}

/* test: 64 threads, 4 blocks, 256 bytes: passes */
extern "C" __global__ void __launch_bounds__(64) dynamic(const struct test_args a)
{
    SHARED_DYNAMIC(smem);
    f32 *row = (f32 *)smem;
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 64;
    row[t] = a.x[first + t];
    __syncthreads();
    a.y[first + 63 - t] = row[63 - t] + 1;
}

/* test: 64 threads, 4 blocks, 252 bytes: writes 4 bytes at byte 252 of the 252 of the dynamic shared memory */
extern "C" __global__ void __launch_bounds__(64) dynamic_beyond(const struct test_args a)
{
    SHARED_DYNAMIC(smem);
    f32 *row = (f32 *)smem;
    pdl_wait();
    row[threadIdx.x] = a.x[threadIdx.x];
}

/* test: 64 threads, 4 blocks, 0 bytes: index 64 of an array */
extern "C" __global__ void __launch_bounds__(64) array_beyond(const struct test_args a)
{
    __shared__ f32 row[64];
    pdl_wait();
    int t = threadIdx.x;
    if (t == 63) row[t + a.b[0] / 1000 + 1] = a.x[t];
    __syncthreads();
    a.y[t] = row[t];
}

/* test: 64 threads, 4 blocks, 0 bytes: index 4 of an array */
extern "C" __global__ void __launch_bounds__(64) registers_beyond(const struct test_args a)
{
    f32 r[4];
    pdl_wait();
    for (int j = 0; j < 4; j++) r[j] = a.x[j];
    a.y[threadIdx.x] = r[threadIdx.x % 5];
}

/* test: 64 threads, 4 blocks, 0 bytes: misaligned: an object of alignment 16 at an address 4 beyond */
extern "C" __global__ void __launch_bounds__(64) misaligned(const struct test_args a)
{
    pdl_wait();
    float4 v = *(const float4 *)(a.x + threadIdx.x);
    a.y[threadIdx.x] = v.x + v.w;
}

/* test: 64 threads, 4 blocks, 0 bytes: divergent barrier: thread 0 is at line */
extern "C" __global__ void __launch_bounds__(64) divergent(const struct test_args a)
{
    pdl_wait();
    if (threadIdx.x < 32) {
        __syncthreads();
        a.y[0] = 1;
    } else {
        __syncthreads();
        a.y[1] = 1;
    }
}

/* test: 64 threads, 4 blocks, 0 bytes: with mask ffffffff */
extern "C" __global__ void __launch_bounds__(64) half_barrier(const struct test_args a)
{
    pdl_wait();
    f32 x = a.x[threadIdx.x];
    if (threadIdx.x % 2) x = __shfl_xor_sync(~0u, x, 1);
    __syncthreads();
    a.y[threadIdx.x] = x;
}

/* Threads that have returned count as arrived. */
/* test: 128 threads, 4 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(128) early_return(const struct test_args a)
{
    __shared__ f32 row[64];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 64;
    if (t >= 64) return;
    row[t] = a.x[first + t];
    __syncthreads();
    a.y[first + 63 - t] = row[63 - t] + 1;
}

/* test: 32 threads, 8 blocks, 0 bytes: which does not name lane 16 */
extern "C" __global__ void __launch_bounds__(32) wrong_mask(const struct test_args a)
{
    pdl_wait();
    a.y[blockIdx.x * 32 + threadIdx.x] = __shfl_down_sync(0xFFFF, a.x[threadIdx.x], 1);
}

/* test: 32 threads, 8 blocks, 0 bytes: y[8] is nan */
extern "C" __global__ void __launch_bounds__(32) shuffle_from_nobody(const struct test_args a)
{
    pdl_wait();
    int i = blockIdx.x * 32 + threadIdx.x;
    f32 x = a.x[i];
    if (threadIdx.x < 16) x = __shfl_xor_sync(0xFFFF, x, threadIdx.x == 8 ? 16 : 0);
    a.y[i] = x + 1;
}

/* test: 64 threads, 4 blocks, 0 bytes: y[5] is nan */
extern "C" __global__ void __launch_bounds__(64) left_out(const struct test_args a)
{
    pdl_wait();
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i != 5) a.y[i] = a.x[i] + 1;
}

/* test: 64 threads, 4 blocks, 0 bytes: y[0] is 0, expected 1 */
extern "C" __global__ void __launch_bounds__(64) old_shared(const struct test_args a)
{
    __shared__ f32 row[64];
    pdl_wait();
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    a.y[i] = a.x[i] + (row[t] == row[t] ? 1 : 0);
    row[t] = 0;
}

/* test: 64 threads, 4 blocks, 0 bytes: a thread ends without pdl_wait() */
extern "C" __global__ void __launch_bounds__(64) no_wait(const struct test_args a)
{
    if (threadIdx.x == 7) return;
    pdl_wait();
}

/* test: 64 threads, 4 blocks, 0 bytes: writes y before pdl_wait() */
extern "C" __global__ void __launch_bounds__(64) early_write(const struct test_args a)
{
    a.y[threadIdx.x] = 0;
    pdl_wait();
}

/* test: 96 threads, 4 blocks, 0 bytes: launched with 96 threads, bound to 64 */
extern "C" __global__ void __launch_bounds__(64) too_many_threads(const struct test_args a) { pdl_wait(); }

/* test: 64 threads, 4 blocks, 163840 bytes: of shared memory on sm_80 */
extern "C" __global__ void __launch_bounds__(64) too_much_shared(const struct test_args a)
{
    __shared__ f32 row[8192];
    pdl_wait();
    row[threadIdx.x] = a.x[threadIdx.x];
    a.y[threadIdx.x] = row[threadIdx.x];
}

/* Bytes of one word by different threads are no race. */
/* test: 64 threads, 4 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(64) bytes(const struct test_args a)
{
    __shared__ u8 row[64];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 64;
    row[t] = (u8)a.x[first + t];
    __syncthreads();
    a.y[first + 63 - t] = (f32)row[63 - t] + 1;
}

/* test: 64 threads, 4 blocks, 0 bytes: shared word */
extern "C" __global__ void __launch_bounds__(64) byte_in_word(const struct test_args a)
{
    __shared__ u32 word[64];
    pdl_wait();
    int t = threadIdx.x;
    word[t] = 1;
    ((u8 *)word)[(4 * t + 128) % 256] = 2;
    a.y[t] = 0;
}

/* test: 64 threads, 4 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(64) counted(const struct test_args a)
{
    __shared__ int n;
    pdl_wait();
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (t == 0) n = 0;
    __syncthreads();
    atomicAdd(&n, 1);
    __syncthreads();
    a.y[i] = a.x[i] + (n == 64 ? 1 : 0);
}

/* test: 64 threads, 4 blocks, 0 bytes: changes shared n */
extern "C" __global__ void __launch_bounds__(64) counted_early(const struct test_args a)
{
    __shared__ int n;
    pdl_wait();
    if (threadIdx.x == 0) n = 0;
    atomicAdd(&n, 1);
    a.y[blockIdx.x * 64 + threadIdx.x] = 0;
}

/* test: 64 threads, 4 blocks, 0 bytes: reads shared n, byte 0 of 4, which thread */
extern "C" __global__ void __launch_bounds__(64) counted_unseen(const struct test_args a)
{
    __shared__ int n;
    pdl_wait();
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    atomicAdd(&n, 1);
    if (threadIdx.x == 3) a.y[0] = n;
}

/* --- copies beside the thread ------------------------------------------------------------------------------------ */

/* test: 64 threads, 4 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(64) copied(const struct test_args a)
{
    __shared__ __align__(16) f32 row[64];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 64;
    if (t < 16) cp_async16(row + 4 * t, a.x + first + 4 * t);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    a.y[first + t] = row[t] + 1;
}

/* test: 64 threads, 4 blocks, 0 bytes: to which a cp_async that nobody has waited for is copying */
extern "C" __global__ void __launch_bounds__(64) copied_stale(const struct test_args a)
{
    __shared__ __align__(16) f32 row[2][64];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 64;
    for (int j = 0; j < 2; j++) {
        if (t < 16) cp_async16(row[j] + 4 * t, a.x + first + 4 * t);
        cp_async_commit();
    }
    cp_async_wait<1>();
    __syncthreads();
    a.y[first + t] = row[0][t] + row[1][t];
}

/* test: 64 threads, 4 blocks, 0 bytes: reads shared row, byte 16 of 256, which thread 1 wrote */
extern "C" __global__ void __launch_bounds__(64) copied_unseen(const struct test_args a)
{
    __shared__ __align__(16) f32 row[64];
    pdl_wait();
    int t = threadIdx.x, first = blockIdx.x * 64;
    if (t < 16) cp_async16(row + 4 * t, a.x + first + 4 * t);
    cp_async_commit();
    cp_async_wait<0>();
    if (t == 0 || t == 1) __syncwarp(3);
    a.y[first + t] = t == 2 ? row[4] : 0;
}

/* The next stage is fetched into what others still read. */
/* test: 64 threads, 4 blocks, 0 bytes: writes shared row, byte 0 of 256 */
extern "C" __global__ void __launch_bounds__(64) copied_too_soon(const struct test_args a)
{
    __shared__ __align__(16) f32 row[64];
    pdl_wait();
    int t = threadIdx.x;
    f32 sum = 0;
    for (int j = 0; j < 4; j++) {
        if (t < 16) cp_async16(row + 4 * t, a.x + 64 * j + 4 * t);
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();
        sum += row[63 - t];
    }
    a.y[t] = sum;
}

/* test: 64 threads, 4 blocks, 0 bytes: cp_async of 16 bytes between addresses not multiples of that */
extern "C" __global__ void __launch_bounds__(64) copied_askew(const struct test_args a)
{
    __shared__ __align__(16) f32 row[72];
    pdl_wait();
    cp_async16(row + 4 * (threadIdx.x % 16), a.x + threadIdx.x);
    cp_async_commit();
    cp_async_wait<0>();
}

/* --- blocks of one launch ---------------------------------------------------------------------------------------- */

/* test: 64 threads, 4 blocks, 0 bytes: writes work, byte 0 of 40960, which thread 0 of block */
extern "C" __global__ void __launch_bounds__(64) blocks_write(const struct test_args a)
{
    pdl_wait();
    int i = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x == 0) a.work[0] = 1;
    a.y[i] = a.x[i] + 1;
}

/* test: 64 threads, 4 blocks, 0 bytes: in the same launch */
extern "C" __global__ void __launch_bounds__(64) blocks_read(const struct test_args a)
{
    pdl_wait();
    int i = blockIdx.x * 64 + threadIdx.x;
    a.work[i] = 1;
    a.y[i] = a.x[i] + (f32)(a.work[i ^ 64] ? 1 : 0);
}

/* test: 64 threads, 4 blocks, 0 bytes: y[0] is 0, expected 1 */
extern "C" __global__ void __launch_bounds__(64) blocks_in_order(const struct test_args a)
{
    __shared__ u32 turn;
    pdl_wait();
    int i = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x == 0) turn = atomicAdd(a.work, 1u);
    __syncthreads();
    a.y[i] = a.x[i] + (turn == blockIdx.x ? 1 : 0);
}

/* The last block to arrive merges what all have left. */
/* It leaves the counter as it was. */
/* test: 64 threads, 4 blocks, 0 bytes: passes */
extern "C" __global__ void __launch_bounds__(64) last_block(const struct test_args a)
{
    __shared__ u32 turn;
    f32 *part = (f32 *)a.work + 64;
    pdl_wait();
    int t = threadIdx.x;
    part[blockIdx.x * 64 + t] = a.x[blockIdx.x * 64 + t] + 1;
    __threadfence();
    __syncthreads();
    if (t == 0) turn = atomicAdd(a.work, 1u);
    __syncthreads();
    if (turn != 3) return;
    for (int i = t; i < 256; i += 64) a.y[i] = load_fresh(part + i);
    if (t == 0) a.work[0] = 0;
}

/* test: 64 threads, 4 blocks, 0 bytes: of block 0 wrote at line */
extern "C" __global__ void __launch_bounds__(64) last_block_no_fence(const struct test_args a)
{
    __shared__ u32 turn;
    f32 *part = (f32 *)a.work + 64;
    pdl_wait();
    int t = threadIdx.x;
    part[blockIdx.x * 64 + t] = a.x[blockIdx.x * 64 + t] + 1;
    __syncthreads();
    if (t == 0) turn = atomicAdd(a.work, 1u);
    __syncthreads();
    if (turn != 3) return;
    for (int i = t; i < 256; i += 64) a.y[i] = load_fresh(part + i);
}

/* test: 64 threads, 4 blocks, 0 bytes: in the same launch */
extern "C" __global__ void __launch_bounds__(64) last_block_from_cache(const struct test_args a)
{
    __shared__ u32 turn;
    f32 *part = (f32 *)a.work + 64;
    pdl_wait();
    int t = threadIdx.x;
    part[blockIdx.x * 64 + t] = a.x[blockIdx.x * 64 + t] + 1;
    __threadfence();
    __syncthreads();
    if (t == 0) turn = atomicAdd(a.work, 1u);
    __syncthreads();
    if (turn != 3) return;
    for (int i = t; i < 256; i += 64) a.y[i] = part[i];
}

/* The releasing thread's atomic comes before the others have written: no barrier gathers them. */
/* test: 64 threads, 4 blocks, 0 bytes: in the same launch */
extern "C" __global__ void __launch_bounds__(64) last_block_ungathered(const struct test_args a)
{
    __shared__ u32 turn;
    f32 *part = (f32 *)a.work + 64;
    pdl_wait();
    int t = threadIdx.x;
    part[blockIdx.x * 64 + t] = a.x[blockIdx.x * 64 + t] + 1;
    __threadfence();
    if (t == 0) turn = atomicAdd(a.work, 1u);
    __syncthreads();
    if (turn != 3) return;
    for (int i = t; i < 256; i += 64) a.y[i] = load_fresh(part + i);
}

/* --- sizes ------------------------------------------------------------------------------------------------------- */

/* test: 64 threads, 4 blocks, 0 bytes: 49408 bytes of static shared memory */
extern "C" __global__ void __launch_bounds__(64) too_much_static(const struct test_args a)
{
    __shared__ f32 row[12352];
    pdl_wait();
    row[threadIdx.x] = a.x[threadIdx.x];
    a.y[threadIdx.x] = row[threadIdx.x];
}
