/* What the prelude and the language compute, of 256 pseudo-random operands each: row f of `work` is function f of functions.txt,
 * where the hash of the row stands as an NVIDIA H200 gave it. Functions that a card only approximates are not among them. */
#include "kernel.cuh"
#include "args.h"

static inline u32 random_bits(u32 i)
{
    i = (i ^ i >> 16) * 0x7FEB352D;
    i = (i ^ i >> 15) * 0x846CA68B;
    return i ^ i >> 16;
}

/* A number with any sign and mantissa, its exponent from first on. */
static inline f32 random_f32(u32 bits, u32 first, u32 exponents)
{
    return as_f32((i32)((bits & 0x807FFFFF) | (first + (bits >> 23 & 255) % exponents) << 23));
}

/* Two halves of any value but NaN and infinity. */
static inline u32 random_h2(u32 bits) { return (bits & 0xBFFFBFFF) | (bits >> 3 & 0x10001000); }

/* test: 256 threads, 1 blocks, 0 bytes: functions */
extern "C" __global__ void __launch_bounds__(256) functions(const struct test_args a)
{
    pdl_wait();
    int i = threadIdx.x, n = 0;
    u32 *out = a.work + i, b0 = random_bits(4 * i), b1 = random_bits(4 * i + 1), b2 = random_bits(4 * i + 2);
    f32 x = random_f32(b0, 120, 14), y = random_f32(b1, 120, 14), z = random_f32(b2, 110, 34), large = random_f32(b0, 126, 36);
    f32 half_like = random_f32(b1, 98, 48), positive = fabsf(x), sharp = (f32)(i32)(b0 % 64) - 32 + 0.5f;
    u32 h0 = random_h2(b0), h1 = random_h2(b1), h2 = random_h2(b2);
    f32 e = random_f32(b2, 115, 19);
    out[256 * n++] = (u32)as_i32(fmaf(x, y, z));
    out[256 * n++] = (u32)as_i32(x / y);
    out[256 * n++] = (u32)as_i32(sqrtf(positive));
    out[256 * n++] = (u32)as_i32(rintf(sharp + 0.25f * (i & 1)));
    out[256 * n++] = (u32)as_i32(fmaxf(x, y) + fminf(y, z));
    out[256 * n++] = (u32)round_i32(sharp);
    out[256 * n++] = (u32)round_i32(large);
    out[256 * n++] = (u32)__float2int_rz(large);
    out[256 * n++] = (u32)f2h(half_like);
    out[256 * n++] = (u32)as_i32(h2f((u16)h0));
    out[256 * n++] = f2h2(x, half_like);
    out[256 * n++] = (u32)as_i32(h2f2(h0).x) ^ (u32)as_i32(h2f2(h0).y) >> 3;
    out[256 * n++] = (u32)as_i32(bf2f((u16)(b0 & 0xBFFF)));
    out[256 * n++] = hfma2(h0, h1 & 0x8FFF8FFF, h2);
    out[256 * n++] = hadd2(h0 & 0xBFFFBFFF, h1 & 0xBFFFBFFF);
    out[256 * n++] = hmul2(h0, h1 & 0x8FFF8FFF);
    out[256 * n++] = (u32)dp4a((i32)b0, (i32)b1, (i32)b2);
    out[256 * n++] = (u32)byte_of((i32)b0, i & 3);
    out[256 * n++] = permute(b0, b1, b2 & 0x7777);
    out[256 * n++] = permute(b0, b1, b2 & 0xFFFF);
    out[256 * n++] = __funnelshift_l(b0, b1, b2);
    out[256 * n++] = __funnelshift_r(b0, b1, b2);
    out[256 * n++] = __brev(b0);
    out[256 * n++] = (u32)(__popc(b0) + 64 * __ffs((i32)(b1 & b2)) + 4096 * __clz((i32)(b0 & b1 & 0xFFFF)));
    out[256 * n++] = __umulhi(b0, b1);
    out[256 * n++] = (u32)as_i32(exp_f32(e));
    out[256 * n++] = (u32)as_i32(sigmoid_f32(e));
    out[256 * n++] = (u32)as_i32(silu_f32(e));
    out[256 * n++] = (u32)as_i32(warp_sum(x));
    out[256 * n++] = (u32)as_i32(warp_max(x));
    out[256 * n++] = __shfl_sync(~0u, b0, (i32)(b1 % 32));
    out[256 * n++] = __shfl_sync(~0u, b0, (i32)(b1 % 32), 8);
    out[256 * n++] = __shfl_up_sync(~0u, b0, 3, 16);
    out[256 * n++] = __shfl_down_sync(~0u, b0, 5, 8);
    out[256 * n++] = __shfl_xor_sync(~0u, b0, 9, 16);
    out[256 * n++] = __shfl_xor_sync(~0u, b0, 20, 8);
    out[256 * n++] = __ballot_sync(~0u, b0 & 1) ^ (u32)__any_sync(~0u, b0 % 64 == 0) ^ (u32)__all_sync(~0u, b0 % 64 != 0) << 1;
    out[256 * n++] = i < 40 ? __ballot_sync(i < 32 ? ~0u : 0xFF, b1 & 1) : 0;
}
