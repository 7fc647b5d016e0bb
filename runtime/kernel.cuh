/* The prelude of emitted CUDA kernels: all that they may use besides runtime/kernel.h, their op's args.h and the built-ins of the
 * language (threadIdx, __shared__, __syncthreads, shuffles, atomicAdd on integers, int4 .. float4, fmaf, sqrtf). No header is needed, so
 * that NVRTC alone compiles a kernel in tens of milliseconds. tests/simt/kernel.cuh gives the same names on a CPU.
 *
 * A kernel is `extern "C" __global__ void NAME(const struct OP_args a)`, blocks are one-dimensional. Every thread of every block calls
 * pdl_launch() at once, so that kernel after kernel stands ready, and pdl_wait() before it touches anything that another kernel writes or
 * reads; only weights and the step's tables (row counts among them, which no kernel writes) may be read before. What an
 * instruction set lacks is not declared below its compute capability, so that a template that asks for it does not compile.
 * Compiled with --fmad=false: a fused multiply-add is written fmaf. Division and sqrtf round correctly.
 */

#pragma nv_diag_suppress 177   /* helpers that a kernel does not use */

/* Dynamic shared memory of the block as `u8 name[]`, 128-byte aligned. */
#define SHARED_DYNAMIC(name) extern __shared__ __align__(128) u8 name[]

/* --- bits and halves --------------------------------------------------------------------------------------------------- */

static inline f32 as_f32(i32 x) { return __int_as_float(x); }
static inline i32 as_i32(f32 x) { return __float_as_int(x); }

static inline f32 h2f(u16 h)
{
    f32 x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}

/* To nearest, ties to even. */
static inline u16 f2h(f32 x)
{
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}

/* Two halves in a word, the first in its low bits. */
static inline u32 f2h2(f32 lo, f32 hi) { return (u32)f2h(lo) | (u32)f2h(hi) << 16; }
static inline float2 h2f2(u32 h) { return make_float2(h2f((u16)(h & 0xFFFF)), h2f((u16)(h >> 16))); }
static inline f32 bf2f(u16 h) { return __int_as_float((i32)h << 16); }

#if __CUDA_ARCH__ >= 530
/* Half by half a*b + c, a + b, a*b, each rounded once. */
static inline u32 hfma2(u32 a, u32 b, u32 c)
{
    u32 d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
static inline u32 hadd2(u32 a, u32 b)
{
    u32 d;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
static inline u32 hmul2(u32 a, u32 b)
{
    u32 d;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
#endif

/* --- integers ---------------------------------------------------------------------------------------------------------- */

/* c + the four products of signed bytes. */
#if __CUDA_ARCH__ >= 610
static inline i32 dp4a(i32 a, i32 b, i32 c)
{
    i32 d;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
#endif
/* Byte i of w, with its sign. */
static inline i32 byte_of(i32 w, int i) { return (i32)(i8)(w >> 8 * i); }
/* To nearest, ties to even. */
static inline i32 round_i32(f32 x) { return __float2int_rn(x); }
/* Bytes of a (0 .. 3) and b (4 .. 7) by the four selectors in s. */
static inline u32 permute(u32 a, u32 b, u32 s) { return __byte_perm(a, b, s); }

/* --- functions --------------------------------------------------------------------------------------------------------- */

/* 2^x and 1/x by the special function unit: absolute and relative errors near 2^-22, flushing denormals. */
static inline f32 exp2_fast(f32 x)
{
    f32 y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
static inline f32 rcp_fast(f32 x)
{
    f32 y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/* e^x with the bits of vexp in templates/vec.c.in: below 2 ulp, -inf gives 0. */
static inline f32 exp_f32(f32 x)
{
    f32 t = fmaf(x, 1.44269502f, 12582912.0f);
    f32 k = t - 12582912.0f;
    f32 r = fmaf(k, -0.693359375f, x);
    r = fmaf(k, 0.000212194442f, r);
    f32 p = 0.00138143206f;
    p = fmaf(p, r, 0.00836885069f);
    p = fmaf(p, r, 0.0416684002f);
    p = fmaf(p, r, 0.166665196f);
    p = fmaf(p, r, 0.49999994f);
    p = fmaf(p * r, r, r) + 1.0f;
    f32 y = as_f32(as_i32(p) + (i32)((u32)as_i32(t) << 23));
    y = x < -87.33f ? 0.0f : y;
    return 88.72f < x ? as_f32(0x7F800000) : y;
}
static inline f32 sigmoid_f32(f32 x) { return 1.0f / (1.0f + exp_f32(-x)); }
static inline f32 silu_f32(f32 x) { return x / (1.0f + exp_f32(-x)); }

/* --- a warp ------------------------------------------------------------------------------------------------------------- */

/* Folded by halves 16, 8, 4, 2, 1, so that lane = element % 32 gives the canonical tree; every lane gets the sum. */
static inline f32 warp_sum(f32 x)
{
    for (int m = 16; m; m >>= 1) x = x + __shfl_xor_sync(~0u, x, m);
    return x;
}
static inline f32 warp_max(f32 x)
{
    for (int m = 16; m; m >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, m));
    return x;
}

/* --- memory ------------------------------------------------------------------------------------------------------------ */

/* 16, 8, 4 bytes of global memory that are read once: they leave nothing in L1. The compiler keeps them where they stand. */
static inline int4 load_stream16(const void *p)
{
    int4 v;
#if __CUDA_ARCH__ >= 700
    asm volatile("ld.global.L1::no_allocate.v4.s32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
#else
    asm volatile("ld.global.cs.v4.s32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
#endif
    return v;
}
static inline int2 load_stream8(const void *p)
{
    int2 v;
#if __CUDA_ARCH__ >= 700
    asm volatile("ld.global.L1::no_allocate.v2.s32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
#else
    asm volatile("ld.global.cs.v2.s32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
#endif
    return v;
}
static inline i32 load_stream4(const void *p)
{
    i32 v;
#if __CUDA_ARCH__ >= 700
    asm volatile("ld.global.L1::no_allocate.s32 %0, [%1];" : "=r"(v) : "l"(p));
#else
    asm volatile("ld.global.cs.s32 %0, [%1];" : "=r"(v) : "l"(p));
#endif
    return v;
}

/* Of the step's tables, before pdl_wait(): the load stays where it stands. */
static inline i32 load_early(const i32 *p)
{
    i32 v;
    asm volatile("ld.global.s32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

/* What other blocks wrote in this launch, past L1. A block publishes with __threadfence() and an atomicAdd on a ticket. */
static inline f32 load_fresh(const f32 *p) { return *(const volatile f32 *)p; }

#if __CUDA_ARCH__ >= 800
/* Copies to shared memory that run beside the thread; both sides aligned to the size. cp_async_wait<N>() waits until all but the last
 * N commits of this thread have arrived; other threads see them after a barrier. _or_zero: with `valid` 0 zeros are written, nothing read. */
static inline u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
static inline void cp_async16(void *shared, const void *global)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(shared_address(shared)), "l"(global) : "memory");
}
static inline void cp_async16_or_zero(void *shared, const void *global, int valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(shared_address(shared)), "l"(global), "r"(valid ? 16 : 0) : "memory");
}
static inline void cp_async4(void *shared, const void *global)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(shared_address(shared)), "l"(global) : "memory");
}
static inline void cp_async4_or_zero(void *shared, const void *global, int valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"(shared_address(shared)), "l"(global), "r"(valid ? 4 : 0) : "memory");
}
static inline void cp_async8_or_zero(void *shared, const void *global, int valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" : : "r"(shared_address(shared)), "l"(global), "r"(valid ? 8 : 0) : "memory");
}
static inline void cp_async_commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int N> static inline void cp_async_wait() { asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory"); }
#endif

/* --- programmatic dependent launch -------------------------------------------------------------------------------------- */

/* All that earlier kernels wrote is there. Nothing to wait for below sm_90, where kernels follow one another. */
static inline void pdl_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}
/* The next kernel may start its blocks (and fetch its weights) as multiprocessors become free. */
static inline void pdl_launch()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#endif
}

/* --- matrix instructions, of a whole warp; fragments as the PTX manual lays them out -------------------------------------- */

#if __CUDA_ARCH__ >= 750
/* Lane l's address is that of row l % 8 (16 bytes) of 8x8 matrix l / 8 of halves; r[i] gets its part of matrix i. */
static inline void ldmatrix_x4(u32 r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}
static inline void ldmatrix_x4_trans(u32 r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}
static inline void ldmatrix_x2(u32 r[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}
static inline void ldmatrix_x2_trans(u32 r[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}
/* d = a b + c, int8 in int32: m8n8k16. */
static inline void mma_s8_8816(i32 d[2], u32 a, u32 b, i32 c0, i32 c1)
{
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%4, %5};" : "=r"(d[0]), "=r"(d[1]) : "r"(a), "r"(b), "r"(c0), "r"(c1));
}
/* d += a b, halves with fp32 sums: m16n8k8. */
static inline void mma_f16_1688(f32 d[4], const u32 a[2], u32 b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b));
}
#endif

#if __CUDA_ARCH__ >= 800
/* d = a b + c with one c for all: m16n8k32, int8 in int32. */
static inline void mma_s8_16832(i32 d[4], const u32 a[4], const u32 b[2], i32 c)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c));
}
/* d += a b: m16n8k32, int8 in int32. */
static inline void mma_s8_16832_add(i32 d[4], const u32 a[4], const u32 b[2])
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
/* d += a b, halves with fp32 sums: m16n8k16. */
static inline void mma_f16_16816(f32 d[4], const u32 a[4], const u32 b[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

#if __CUDA_ARCH__ >= 700
/* d += a b, halves with fp32 sums: Volta's m8n8k4, four products of 8x8 at once, one for each quad pair of lanes. a: row, b: column. */
static inline void mma_f16_884(f32 d[8], const u32 a[2], const u32 b[2])
{
    asm("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
}
#endif
