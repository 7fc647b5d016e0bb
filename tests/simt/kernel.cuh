/* The CUDA prelude for a CPU: what the language has built in, and what runtime/kernel.cuh does with PTX; the rest of that file is
 * taken as it is (prelude.lua makes prelude.h of it). Compiled by g++; the runtime beside this file meets the calls. What a
 * compute capability lacks is not declared, as on a card. */
#ifndef SIMT_KERNEL_CUH
#define SIMT_KERNEL_CUH

#include "kernel.h"

/* --- the language ------------------------------------------------------------------------------------------------ */

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
/* Blocks run one after another, so one copy serves all; the section tells where it lies. */
#define __shared__ static __attribute__((section("simt_shared")))
#define SHARED_DYNAMIC(name) u8 *const name = simt_shared_dynamic()
#define SIMT_CALL static inline __attribute__((always_inline))

struct simt_dim3 {
    u32 x, y, z;
};

extern "C" {
simt_dim3 simt_thread_idx() __attribute__((const));
simt_dim3 simt_block_idx() __attribute__((const));
simt_dim3 simt_block_dim() __attribute__((const));
simt_dim3 simt_grid_dim() __attribute__((const));
u8 *simt_shared_dynamic() __attribute__((const));
void simt_syncthreads(int line);
void simt_pdl_wait();
void simt_syncwarp(u32 mask, int line);
u32 simt_ballot(u32 mask, int predicate, int line);
u64 simt_shuffle(int op, u32 mask, u64 value, int arg, int width, int line);
void simt_mma(int op, const u32 *in, int n_in, u32 *out, int n_out, int line);
void simt_ldmatrix(int op, const void *row, u32 *out, int n_out, int line);
u32 simt_atomic(int op, u32 *p, u32 value, u32 compare);
u64 simt_atomic64(int op, u64 *p, u64 value, u64 compare);
void simt_threadfence();
f32 simt_fresh(const f32 *p);
void simt_cp_async(void *shared, const void *global, int bytes, int valid);
void simt_cp_commit();
void simt_cp_wait(int left);
u16 simt_to_half(f64 x);
f32 simt_from_half(u16 h);

extern u8 __start_simt_shared[] __attribute__((weak, visibility("hidden")));
extern u8 __stop_simt_shared[] __attribute__((weak, visibility("hidden")));
__attribute__((no_sanitize("thread", "alignment"))) void simt_shared_range(u8 **lo, u8 **hi)
{
    *lo = __start_simt_shared, *hi = __stop_simt_shared;
}

float fmaf(float, float, float) noexcept;
float fmaxf(float, float) noexcept;
float fminf(float, float) noexcept;
float fabsf(float) noexcept;
float rintf(float) noexcept;
float roundf(float) noexcept;
float floorf(float) noexcept;
float ceilf(float) noexcept;
float truncf(float) noexcept;
float sqrtf(float) noexcept;
float expf(float) noexcept;
float exp2f(float) noexcept;
float expm1f(float) noexcept;
float logf(float) noexcept;
float log2f(float) noexcept;
float log1pf(float) noexcept;
float powf(float, float) noexcept;
float sinf(float) noexcept;
float cosf(float) noexcept;
float tanhf(float) noexcept;
float copysignf(float, float) noexcept;
float ldexpf(float, int) noexcept;
void sincosf(float, float *, float *) noexcept;
double fma(double, double, double) noexcept;
double sqrt(double) noexcept;
double exp(double) noexcept;
double log(double) noexcept;
double log1p(double) noexcept;
double sin(double) noexcept;
double cos(double) noexcept;
double fabs(double) noexcept;
double rint(double) noexcept;
double floor(double) noexcept;
void sincos(double, double *, double *) noexcept;
}

template <class A> __attribute__((no_sanitize("thread"))) void simt_call(void (*kernel)(A), const void *args)
{
    kernel(*(const A *)args);
}

#define threadIdx (simt_thread_idx())
#define blockIdx (simt_block_idx())
#define blockDim (simt_block_dim())
#define gridDim (simt_grid_dim())
enum { warpSize = 32 };

#define SIMT_VECTORS(type, name) \
    struct alignas(2 * sizeof(type)) name##2 { type x, y; }; \
    struct name##3 { type x, y, z; }; \
    struct alignas(sizeof(type) < 8 ? 4 * sizeof(type) : 16) name##4 { type x, y, z, w; }; \
    SIMT_CALL name##2 make_##name##2(type x, type y) { return {x, y}; } \
    SIMT_CALL name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
    SIMT_CALL name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
SIMT_VECTORS(i8, char)
SIMT_VECTORS(u8, uchar)
SIMT_VECTORS(i16, short)
SIMT_VECTORS(u16, ushort)
SIMT_VECTORS(i32, int)
SIMT_VECTORS(u32, uint)
SIMT_VECTORS(f32, float)
struct alignas(16) longlong2 { i64 x, y; };
struct alignas(16) ulonglong2 { u64 x, y; };
struct alignas(16) double2 { f64 x, y; };

/* --- bits and numbers -------------------------------------------------------------------------------------------- */

template <class To, class From> SIMT_CALL To simt_bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "the same number of bits");
    To y;
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
}

SIMT_CALL f32 __int_as_float(i32 x) { return simt_bits<f32>(x); }
SIMT_CALL i32 __float_as_int(f32 x) { return simt_bits<i32>(x); }
SIMT_CALL f32 __uint_as_float(u32 x) { return simt_bits<f32>(x); }
SIMT_CALL u32 __float_as_uint(f32 x) { return simt_bits<u32>(x); }
SIMT_CALL int __popcll(u64 x)
{
    int n = 0;
    for (; x; x &= x - 1) n++;
    return n;
}
SIMT_CALL int __popc(u32 x) { return __popcll(x); }
SIMT_CALL int __ffs(i32 x) { return __builtin_ffs(x); }
SIMT_CALL int __clz(i32 x) { return x ? __builtin_clz((u32)x) : 32; }
SIMT_CALL int __clzll(i64 x) { return x ? __builtin_clzll((u64)x) : 64; }
SIMT_CALL u32 __umulhi(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
SIMT_CALL i32 __mulhi(i32 a, i32 b) { return (i32)((i64)a * b >> 32); }
SIMT_CALL u32 __funnelshift_l(u32 lo, u32 hi, u32 s) { return (u32)(((u64)hi << 32 | lo) << (s & 31) >> 32); }
SIMT_CALL u32 __funnelshift_r(u32 lo, u32 hi, u32 s) { return (u32)(((u64)hi << 32 | lo) >> (s & 31)); }
SIMT_CALL u32 __brev(u32 x)
{
    u32 y = 0;
    for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
    return y;
}
SIMT_CALL u32 __byte_perm(u32 a, u32 b, u32 s)
{
    u64 both = (u64)b << 32 | a;
    u32 out = 0;
    for (int i = 0; i < 4; i++) out |= ((u32)(both >> 8 * (s >> 4 * i & 7)) & 255) << 8 * i;
    return out;
}

/* To int as a card does: NaN gives 0, what does not fit the nearest that does. */
SIMT_CALL i32 simt_to_int(f32 x)
{
    return !(x == x) ? 0 : x >= 2147483648.0f ? 0x7FFFFFFF : x < -2147483648.0f ? (i32)0x80000000 : (i32)x;
}
SIMT_CALL i32 __float2int_rn(f32 x) { return simt_to_int(rintf(x)); }
SIMT_CALL i32 __float2int_rz(f32 x) { return simt_to_int(truncf(x)); }
SIMT_CALL i32 __float2int_rd(f32 x) { return simt_to_int(floorf(x)); }
SIMT_CALL i32 __float2int_ru(f32 x) { return simt_to_int(ceilf(x)); }
SIMT_CALL f32 __int2float_rn(i32 x) { return (f32)x; }
SIMT_CALL f32 __uint2float_rn(u32 x) { return (f32)x; }
SIMT_CALL f32 __fmaf_rn(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
SIMT_CALL f32 __fmul_rn(f32 a, f32 b) { return a * b; }
SIMT_CALL f32 __fadd_rn(f32 a, f32 b) { return a + b; }
SIMT_CALL f32 __fsub_rn(f32 a, f32 b) { return a - b; }
SIMT_CALL f32 __fdiv_rn(f32 a, f32 b) { return a / b; }
SIMT_CALL f32 __fsqrt_rn(f32 a) { return sqrtf(a); }
SIMT_CALL f32 __fdividef(f32 a, f32 b) { return a / b; }
SIMT_CALL f32 __expf(f32 x) { return expf(x); }
SIMT_CALL f32 __logf(f32 x) { return logf(x); }
SIMT_CALL f32 __log2f(f32 x) { return log2f(x); }
SIMT_CALL f32 __sinf(f32 x) { return sinf(x); }
SIMT_CALL f32 __cosf(f32 x) { return cosf(x); }
SIMT_CALL f32 rsqrtf(f32 x) { return 1.0f / sqrtf(x); }
SIMT_CALL f32 __frsqrt_rn(f32 x) { return 1.0f / sqrtf(x); }
SIMT_CALL f32 __saturatef(f32 x) { return x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f; }
SIMT_CALL bool isnan(f32 x) { return !(x == x); }
SIMT_CALL bool isinf(f32 x) { return __builtin_isinf(x); }
SIMT_CALL int abs(int x) { return x < 0 ? -x : x; }

#define SIMT_MIN_MAX(type) \
    SIMT_CALL type min(type a, type b) { return b < a ? b : a; } \
    SIMT_CALL type max(type a, type b) { return a < b ? b : a; }
SIMT_MIN_MAX(i32)
SIMT_MIN_MAX(u32)
SIMT_MIN_MAX(i64)
SIMT_MIN_MAX(u64)
SIMT_CALL u32 min(i32 a, u32 b) { return min((u32)a, b); }
SIMT_CALL u32 min(u32 a, i32 b) { return min(a, (u32)b); }
SIMT_CALL u32 max(i32 a, u32 b) { return max((u32)a, b); }
SIMT_CALL u32 max(u32 a, i32 b) { return max(a, (u32)b); }
SIMT_CALL f32 min(f32 a, f32 b) { return fminf(a, b); }
SIMT_CALL f32 max(f32 a, f32 b) { return fmaxf(a, b); }

/* --- a block and a warp. The line tells one call of the text from another. --------------------------------------- */

SIMT_CALL void __syncthreads(int line = __builtin_LINE()) { simt_syncthreads(line); }
SIMT_CALL void __syncwarp(u32 mask = ~0u, int line = __builtin_LINE()) { simt_syncwarp(mask, line); }
SIMT_CALL u32 __ballot_sync(u32 mask, int p, int line = __builtin_LINE()) { return simt_ballot(mask, p, line); }
SIMT_CALL int __any_sync(u32 mask, int p, int line = __builtin_LINE()) { return simt_ballot(mask, p, line) != 0; }
SIMT_CALL int __all_sync(u32 mask, int p, int line = __builtin_LINE()) { return simt_ballot(mask, !p, line) == 0; }

template <class T> SIMT_CALL T simt_shuffle_any(int op, u32 mask, T x, int arg, int width, int line)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 32 or 64 bits");
    u64 bits = 0;
    __builtin_memcpy(&bits, &x, sizeof x);
    bits = simt_shuffle(op, mask, bits, arg, width, line);
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
template <class T> SIMT_CALL T __shfl_sync(u32 mask, T x, int lane, int width = 32, int line = __builtin_LINE())
{
    return simt_shuffle_any(0, mask, x, lane, width, line);
}
template <class T> SIMT_CALL T __shfl_up_sync(u32 mask, T x, u32 by, int width = 32, int line = __builtin_LINE())
{
    return simt_shuffle_any(1, mask, x, (int)by, width, line);
}
template <class T> SIMT_CALL T __shfl_down_sync(u32 mask, T x, u32 by, int width = 32, int line = __builtin_LINE())
{
    return simt_shuffle_any(2, mask, x, (int)by, width, line);
}
template <class T> SIMT_CALL T __shfl_xor_sync(u32 mask, T x, int with, int width = 32, int line = __builtin_LINE())
{
    return simt_shuffle_any(3, mask, x, with, width, line);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

template <class T> SIMT_CALL T __ldg(const T *p) { return *p; }
SIMT_CALL void __threadfence() { simt_threadfence(); }
SIMT_CALL void __threadfence_block() {}

#define SIMT_ATOMIC(type, max_op, min_op) \
    SIMT_CALL type atomicAdd(type *p, type x) { return (type)simt_atomic(0, (u32 *)p, (u32)x, 0); } \
    SIMT_CALL type atomicMax(type *p, type x) { return (type)simt_atomic(max_op, (u32 *)p, (u32)x, 0); } \
    SIMT_CALL type atomicMin(type *p, type x) { return (type)simt_atomic(min_op, (u32 *)p, (u32)x, 0); } \
    SIMT_CALL type atomicExch(type *p, type x) { return (type)simt_atomic(3, (u32 *)p, (u32)x, 0); } \
    SIMT_CALL type atomicCAS(type *p, type old, type x) { return (type)simt_atomic(4, (u32 *)p, (u32)x, (u32)old); } \
    SIMT_CALL type atomicAnd(type *p, type x) { return (type)simt_atomic(5, (u32 *)p, (u32)x, 0); } \
    SIMT_CALL type atomicOr(type *p, type x) { return (type)simt_atomic(6, (u32 *)p, (u32)x, 0); }
SIMT_ATOMIC(i32, 1, 2)
SIMT_ATOMIC(u32, 7, 8)
SIMT_CALL u32 atomicInc(u32 *p, u32 most) { return simt_atomic(9, p, most, 0); }
SIMT_CALL u64 atomicAdd(u64 *p, u64 x) { return simt_atomic64(0, p, x, 0); }
SIMT_CALL u64 atomicExch(u64 *p, u64 x) { return simt_atomic64(3, p, x, 0); }
SIMT_CALL u64 atomicCAS(u64 *p, u64 old, u64 x) { return simt_atomic64(4, p, x, old); }
SIMT_CALL u64 atomicMax(u64 *p, u64 x) { return simt_atomic64(7, p, x, 0); }
SIMT_CALL u64 atomicMin(u64 *p, u64 x) { return simt_atomic64(8, p, x, 0); }

/* --- in place of the PTX of runtime/kernel.cuh ------------------------------------------------------------------- */

static inline f32 h2f(u16 h) { return simt_from_half(h); }
static inline u16 f2h(f32 x) { return simt_to_half(x); }

#if __CUDA_ARCH__ >= 530
/* In fp64 the product is exact, and so is a sum that does not overflow a half but for terms far below its last place. */
static inline u32 hfma2(u32 a, u32 b, u32 c)
{
    u32 d = 0;
    for (int i = 0; i < 32; i += 16)
        d |= (u32)simt_to_half((f64)h2f((u16)(a >> i)) * h2f((u16)(b >> i)) + h2f((u16)(c >> i))) << i;
    return d;
}
static inline u32 hadd2(u32 a, u32 b)
{
    u32 d = 0;
    for (int i = 0; i < 32; i += 16) d |= (u32)simt_to_half((f64)h2f((u16)(a >> i)) + h2f((u16)(b >> i))) << i;
    return d;
}
static inline u32 hmul2(u32 a, u32 b)
{
    u32 d = 0;
    for (int i = 0; i < 32; i += 16) d |= (u32)simt_to_half((f64)h2f((u16)(a >> i)) * h2f((u16)(b >> i))) << i;
    return d;
}
#endif

#if __CUDA_ARCH__ >= 610
static inline i32 dp4a(i32 a, i32 b, i32 c)
{
    for (int i = 0; i < 32; i += 8) c += (i8)(a >> i) * (i8)(b >> i);
    return c;
}
#endif

SIMT_CALL f32 simt_flush(f32 x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }
static inline f32 exp2_fast(f32 x) { return simt_flush(exp2f(simt_flush(x))); }
static inline f32 rcp_fast(f32 x) { return simt_flush(1.0f / simt_flush(x)); }

static inline int4 load_stream16(const void *p) { return *(const int4 *)p; }
static inline int2 load_stream8(const void *p) { return *(const int2 *)p; }
static inline i32 load_stream4(const void *p) { return *(const i32 *)p; }
static inline i32 load_early(const i32 *p) { return *p; }

#if __CUDA_ARCH__ >= 800
SIMT_CALL void cp_async16(void *shared, const void *global) { simt_cp_async(shared, global, 16, 1); }
SIMT_CALL void cp_async16_or_zero(void *shared, const void *global, int valid) { simt_cp_async(shared, global, 16, valid); }
SIMT_CALL void cp_async4(void *shared, const void *global) { simt_cp_async(shared, global, 4, 1); }
SIMT_CALL void cp_async4_or_zero(void *shared, const void *global, int valid) { simt_cp_async(shared, global, 4, valid); }
SIMT_CALL void cp_async8_or_zero(void *shared, const void *global, int valid) { simt_cp_async(shared, global, 8, valid); }
SIMT_CALL void cp_async_commit() { simt_cp_commit(); }
template <int N> SIMT_CALL void cp_async_wait() { simt_cp_wait(N); }
#endif

/* Checked on all cards: a template that forgets it on one would have it wrong on another. */
static inline void pdl_wait() { simt_pdl_wait(); }
static inline void pdl_launch() {}

/* What is told apart here are the forms of enum matrix_op in impl.h. */
#if __CUDA_ARCH__ >= 750
SIMT_CALL void ldmatrix_x4(u32 r[4], const void *row, int line = __builtin_LINE()) { simt_ldmatrix(6, row, r, 4, line); }
SIMT_CALL void ldmatrix_x4_trans(u32 r[4], const void *row, int line = __builtin_LINE()) { simt_ldmatrix(8, row, r, 4, line); }
SIMT_CALL void ldmatrix_x2(u32 r[2], const void *row, int line = __builtin_LINE()) { simt_ldmatrix(5, row, r, 2, line); }
SIMT_CALL void ldmatrix_x2_trans(u32 r[2], const void *row, int line = __builtin_LINE()) { simt_ldmatrix(7, row, r, 2, line); }
SIMT_CALL void mma_s8_8816(i32 d[2], u32 a, u32 b, i32 c0, i32 c1, int line = __builtin_LINE())
{
    u32 in[4] = {a, b, (u32)c0, (u32)c1};
    simt_mma(0, in, 4, (u32 *)d, 2, line);
}
SIMT_CALL void mma_f16_1688(f32 d[4], const u32 a[2], u32 b, int line = __builtin_LINE())
{
    u32 in[7] = {a[0], a[1], b};
    for (int i = 0; i < 4; i++) in[3 + i] = __float_as_uint(d[i]);
    simt_mma(2, in, 7, (u32 *)d, 4, line);
}
#endif

#if __CUDA_ARCH__ >= 800
SIMT_CALL void mma_s8_16832(i32 d[4], const u32 a[4], const u32 b[2], i32 c, int line = __builtin_LINE())
{
    u32 in[7] = {a[0], a[1], a[2], a[3], b[0], b[1], (u32)c};
    simt_mma(1, in, 7, (u32 *)d, 4, line);
}
SIMT_CALL void mma_s8_16832_add(i32 d[4], const u32 a[4], const u32 b[2], int line = __builtin_LINE())
{
    i32 dot[4];
    mma_s8_16832(dot, a, b, 0, line);
    for (int i = 0; i < 4; i++) d[i] += dot[i];
}
SIMT_CALL void mma_f16_16816(f32 d[4], const u32 a[4], const u32 b[2], int line = __builtin_LINE())
{
    u32 in[10] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    for (int i = 0; i < 4; i++) in[6 + i] = __float_as_uint(d[i]);
    simt_mma(3, in, 10, (u32 *)d, 4, line);
}
#endif

#if __CUDA_ARCH__ >= 700
SIMT_CALL void mma_f16_884(f32 d[8], const u32 a[2], const u32 b[2], int line = __builtin_LINE())
{
    u32 in[12] = {a[0], a[1], b[0], b[1]};
    for (int i = 0; i < 8; i++) in[4 + i] = __float_as_uint(d[i]);
    simt_mma(4, in, 12, (u32 *)d, 8, line);
}
#endif

#include "prelude.h"

/* The true load_fresh reads through a volatile pointer, which tells this machine nothing. */
#define load_fresh simt_fresh

/* Hopper's matrix instructions as templates/attn_prefill/wgmma.cu.in names them: done at once, each lane its own part of d, as mma.m16n8k16 lays
 * it out for the 16 rows of a warp. Operands lie in panels of 128 bytes a row; which 16 bytes of a row hold what goes by the address. */
static inline void wgmma_fence() {}
static inline void wgmma_wait() {}
static inline void wgmma_publish() {}
SIMT_CALL u64 simt_in_panel(const void *base, u64 offset)
{
    u64 at = (u64)base + offset;
    return at ^ (at >> 7 & 7) << 4;
}
/* Byte of b where half k of a column lies. panel: b is rows of all columns, else columns of 16. */
SIMT_CALL u64 simt_of_column(const void *b, int column, int k, int panel)
{
    if (!panel) return simt_in_panel(b, column / 8 * 1024 + column % 8 * 128 + k * 2);
    return simt_in_panel(b, column / 64 * (u64)panel + k / 8 * 1024 + k % 8 * 128 + column % 64 * 2);
}
/* The lanes read b once in turn, which is seen; what they compute with is read unseen, for each of them needs most of it. */
static inline void simt_wgmma_touch(int n, const void *b, int panel)
{
    volatile i32 seen = 0;
    for (int i = threadIdx.x % 32; i < n * 16; i += 32) {
        int column = panel ? i / 16 * 8 : i / 2, k = panel ? i % 16 : i % 2 * 8;
        seen = ((const int4 *)simt_of_column(b, column, k, panel))->x;
    }
}
__attribute__((noinline, no_sanitize("thread", "alignment", "bounds"))) static void simt_wgmma_sum(f32 (*d)[4], int lane, int n, const f32 (*a)[16],
                                                                                                   const void *b, int panel, int more)
{
    for (int c = 0; c < 2 * n; c++) {
        int column = c / 2 * 8 + lane % 4 * 2 + c % 2;
        f64 sum[2] = {more ? d[c / 2][c % 2] : 0, more ? d[c / 2][2 + c % 2] : 0};
        for (int k = 0; k < 16; k++) {
            f64 x = simt_from_half(*(const u16 *)simt_of_column(b, column, k, panel));
            sum[0] += a[0][k] * x;
            sum[1] += a[1][k] * x;
        }
        d[c / 2][c % 2] = (f32)sum[0];
        d[c / 2][2 + c % 2] = (f32)sum[1];
    }
}
static inline void simt_wgmma_add(f32 (*d)[4], int n, const f32 (*a)[16], const void *b, int panel, int more)
{
    simt_wgmma_touch(n, b, panel);
    simt_wgmma_sum(d, threadIdx.x % 32, n, a, b, panel, more);
}
static inline void simt_wgmma_ss(f32 (*d)[4], int n, const void *a, const void *b, int more)
{
    f32 x[2][16];
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 16; k++) {
            int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + 8 * i;
            x[i][k] = h2f(*(const u16 *)simt_in_panel(a, row / 8 * 1024 + row % 8 * 128 + k * 2));
        }
    simt_wgmma_add(d, n, x, b, 0, more);
}
static inline void simt_wgmma_rs(f32 (*d)[4], int n, const u32 a[4], const void *b, int panel)
{
    f32 x[2][16];
    for (int k = 0; k < 16; k += 2)
        for (int i = 0; i < 2; i++) {
            u32 pair = __shfl_sync(~0u, a[i + k / 8 * 2], threadIdx.x % 32 / 4 * 4 + k % 8 / 2);
            x[i][k] = h2f((u16)pair);
            x[i][k + 1] = h2f((u16)(pair >> 16));
        }
    simt_wgmma_add(d, n, x, b, panel, 1);
}

#endif
