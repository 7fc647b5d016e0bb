/* One kernel a matrix form: every lane takes its part of A and B and writes its part of D where the tables of the PTX manual say:
 * group = lane / 4, in_group = lane % 4. a is A by rows, b is B by columns, y is D by rows; C is 0 .. 255 by rows, or 7 where one
 * value serves all. The checker multiplies plainly. "product M N K" says of what size. All of them pass on an NVIDIA H200. */
#include "kernel.cuh"
#include "args.h"

static inline u32 bytes4(const i32 *p)
{
    u32 word = 0;
    for (int i = 0; i < 4; i++) word |= (u32)(p[i] & 255) << 8 * i;
    return word;
}
static inline u32 halves2(const i32 *p) { return f2h2((f32)p[0], (f32)p[1]); }

/* test: 32 threads, 1 blocks, 0 bytes: product 8 8 16 */
extern "C" __global__ void __launch_bounds__(32) s8_8816(const struct test_args a)
{
    pdl_wait();
    int group = threadIdx.x / 4, in_group = threadIdx.x % 4, d[2];
    int at = group * 8 + in_group * 2;
    mma_s8_8816(d, bytes4(a.a + group * 16 + in_group * 4), bytes4(a.b + group * 16 + in_group * 4), at, at + 1);
    for (int i = 0; i < 2; i++) a.y[at + i] = (f32)d[i];
}

/* test: 32 threads, 1 blocks, 0 bytes: product 16 8 32 */
extern "C" __global__ void __launch_bounds__(32) s8_16832(const struct test_args a)
{
    pdl_wait();
    int group = threadIdx.x / 4, in_group = threadIdx.x % 4, d[4];
    u32 m[4], n[2];
    for (int i = 0; i < 4; i++) m[i] = bytes4(a.a + (group + (i % 2 ? 8 : 0)) * 32 + in_group * 4 + (i < 2 ? 0 : 16));
    for (int i = 0; i < 2; i++) n[i] = bytes4(a.b + group * 32 + in_group * 4 + 16 * i);
    mma_s8_16832(d, m, n, 7);
    for (int i = 0; i < 4; i++) a.y[(group + (i < 2 ? 0 : 8)) * 8 + in_group * 2 + (i & 1)] = (f32)d[i];
}

/* test: 32 threads, 1 blocks, 0 bytes: product 16 8 32 */
extern "C" __global__ void __launch_bounds__(32) s8_16832_add(const struct test_args a)
{
    pdl_wait();
    int group = threadIdx.x / 4, in_group = threadIdx.x % 4, d[4] = {10, 200, 3000, 40000};
    u32 m[4], n[2];
    for (int i = 0; i < 4; i++) m[i] = bytes4(a.a + (group + (i % 2 ? 8 : 0)) * 32 + in_group * 4 + (i < 2 ? 0 : 16));
    for (int i = 0; i < 2; i++) n[i] = bytes4(a.b + group * 32 + in_group * 4 + 16 * i);
    mma_s8_16832_add(d, m, n);
    d[0] -= 3, d[1] -= 193, d[2] -= 2993, d[3] -= 39993;
    for (int i = 0; i < 4; i++) a.y[(group + (i < 2 ? 0 : 8)) * 8 + in_group * 2 + (i & 1)] = (f32)d[i];
}

/* test: 32 threads, 1 blocks, 0 bytes: product 16 8 8 */
extern "C" __global__ void __launch_bounds__(32) f16_1688(const struct test_args a)
{
    pdl_wait();
    int group = threadIdx.x / 4, in_group = threadIdx.x % 4;
    f32 d[4];
    u32 m[2];
    for (int i = 0; i < 4; i++) d[i] = (f32)((group + (i < 2 ? 0 : 8)) * 8 + in_group * 2 + (i & 1));
    for (int i = 0; i < 2; i++) m[i] = halves2(a.a + (group + 8 * i) * 8 + in_group * 2);
    mma_f16_1688(d, m, halves2(a.b + group * 8 + in_group * 2));
    for (int i = 0; i < 4; i++) a.y[(group + (i < 2 ? 0 : 8)) * 8 + in_group * 2 + (i & 1)] = d[i];
}

/* test: 32 threads, 1 blocks, 0 bytes: product 16 8 16 */
extern "C" __global__ void __launch_bounds__(32) f16_16816(const struct test_args a)
{
    pdl_wait();
    int group = threadIdx.x / 4, in_group = threadIdx.x % 4;
    f32 d[4];
    u32 m[4], n[2];
    for (int i = 0; i < 4; i++) d[i] = (f32)((group + (i < 2 ? 0 : 8)) * 8 + in_group * 2 + (i & 1));
    for (int i = 0; i < 4; i++) m[i] = halves2(a.a + (group + (i % 2 ? 8 : 0)) * 16 + in_group * 2 + (i < 2 ? 0 : 8));
    for (int i = 0; i < 2; i++) n[i] = halves2(a.b + group * 16 + in_group * 2 + 8 * i);
    mma_f16_16816(d, m, n);
    for (int i = 0; i < 4; i++) a.y[(group + (i < 2 ? 0 : 8)) * 8 + in_group * 2 + (i & 1)] = d[i];
}

/* Quad pair p takes rows 8p .. 8p+7 of A; its B is the same columns for all. */
/* test: 32 threads, 1 blocks, 0 bytes: product 32 8 4 */
extern "C" __global__ void __launch_bounds__(32) f16_884(const struct test_args a)
{
    pdl_wait();
    int lane = threadIdx.x, pair = lane % 16 / 4, mine = lane % 4 + (lane < 16 ? 0 : 4);
    f32 d[8];
    u32 m[2], n[2];
    for (int i = 0; i < 2; i++) {
        m[i] = halves2(a.a + (8 * pair + mine) * 4 + 2 * i);
        n[i] = halves2(a.b + mine * 4 + 2 * i);
    }
    for (int i = 0; i < 8; i++) {
        int x = (lane & 1) + (i & 2), row = lane < 16 ? x : x + 4, column = (i & 4) + (lane & 2) + (i & 1);
        d[i] = (f32)((8 * pair + row) * 8 + column);
    }
    mma_f16_884(d, m, n);
    for (int i = 0; i < 8; i++) {
        int x = (lane & 1) + (i & 2), row = lane < 16 ? x : x + 4, column = (i & 4) + (lane & 2) + (i & 1);
        a.y[(8 * pair + row) * 8 + column] = d[i];
    }
}

/* ldmatrix brings A, and transposed B from [k][n], to where mma wants them. */
/* test: 32 threads, 1 blocks, 0 bytes: product 16 8 16 */
extern "C" __global__ void __launch_bounds__(32) loaded(const struct test_args a)
{
    __shared__ __align__(16) u16 m[16][24], n[16][8];
    pdl_wait();
    int lane = threadIdx.x, group = lane / 4, in_group = lane % 4;
    f32 d[4];
    u32 fa[4], fb[2];
    for (int i = lane; i < 256; i += 32) m[i / 16][i % 16] = f2h((f32)a.a[i]);
    for (int i = lane; i < 128; i += 32) n[i % 16][i / 16] = f2h((f32)a.b[i]);
    __syncwarp();
    ldmatrix_x4(fa, &m[lane % 16][lane / 16 * 8]);
    ldmatrix_x2_trans(fb, &n[lane % 16][0]);
    for (int i = 0; i < 4; i++) d[i] = (f32)((group + (i < 2 ? 0 : 8)) * 8 + in_group * 2 + (i & 1));
    mma_f16_16816(d, fa, fb);
    for (int i = 0; i < 4; i++) a.y[(group + (i < 2 ? 0 : 8)) * 8 + in_group * 2 + (i & 1)] = d[i];
}

/* The other two: A transposed from [k][m], B as it lies. */
/* test: 32 threads, 1 blocks, 0 bytes: product 16 8 16 */
extern "C" __global__ void __launch_bounds__(32) loaded_otherwise(const struct test_args a)
{
    __shared__ __align__(16) u16 m[16][24], n[8][24];
    pdl_wait();
    int lane = threadIdx.x, group = lane / 4, in_group = lane % 4;
    f32 d[4];
    u32 fa[4], fb[2];
    for (int i = lane; i < 256; i += 32) m[i % 16][i / 16] = f2h((f32)a.a[i]);
    for (int i = lane; i < 128; i += 32) n[i / 16][i % 16] = f2h((f32)a.b[i]);
    __syncwarp();
    ldmatrix_x4_trans(fa, &m[lane % 8 + lane / 16 * 8][lane / 8 % 2 * 8]);
    ldmatrix_x2(fb, &n[lane % 8][lane / 8 % 2 * 8]);
    for (int i = 0; i < 4; i++) d[i] = (f32)((group + (i < 2 ? 0 : 8)) * 8 + in_group * 2 + (i & 1));
    mma_f16_16816(d, fa, fb);
    for (int i = 0; i < 4; i++) a.y[(group + (i < 2 ? 0 : 8)) * 8 + in_group * 2 + (i & 1)] = d[i];
}

/* test: 32 threads, 1 blocks, 0 bytes: mma with mask ffffffff */
extern "C" __global__ void __launch_bounds__(32) mma_of_half(const struct test_args a)
{
    pdl_wait();
    int d[2] = {0, 0};
    if (threadIdx.x >= 16) return;
    mma_s8_8816(d, 0, 0, 0, 0);
    a.y[threadIdx.x] = (f32)d[0];
}

/* test: 32 threads, 1 blocks, 0 bytes: ldmatrix from a row at 8 bytes beyond a multiple of 16 */
extern "C" __global__ void __launch_bounds__(32) loaded_askew(const struct test_args a)
{
    __shared__ __align__(16) u16 m[16][20];
    pdl_wait();
    u32 fa[4];
    for (int i = threadIdx.x; i < 320; i += 32) m[i / 20][i % 20] = 0;
    __syncwarp();
    ldmatrix_x4(fa, &m[threadIdx.x % 16][threadIdx.x / 16 * 8]);
    a.y[threadIdx.x] = (f32)fa[0];
}
