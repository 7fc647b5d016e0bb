/* How many operations a second the arithmetic units do when nothing else limits them: a dozen independent chains in registers, by
 * instruction path. Written as assembly, so that no compiler finds that the result is not needed. */
#include "card.h"
#include "roof.h"
#include "roof_passes.h"
#include <stdlib.h>
#include <string.h>

enum { LOOPS = 100000, CHAINS = 12 };

#define CLOBBERS "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define EACH12(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)

/* A loop of `body`, its registers zeroed first: products of zeros take as long as others. */
#define LOOP(name, zero, body, end)                                                                                                 \
    static void name(void)                                                                                                          \
    {                                                                                                                               \
        long n = LOOPS;                                                                                                             \
        __asm__ volatile(zero "1:\n" body "dec %0\n jnz 1b\n" end : "+r"(n) : : CLOBBERS, "cc");                                      \
    }

#define ZERO_SSE(i) "pxor %%xmm" #i ", %%xmm" #i "\n"
#define ZERO_VEX(i) "vpxor %%xmm" #i ", %%xmm" #i ", %%xmm" #i "\n"
#define SSE_F32(i) "mulps %%xmm12, %%xmm" #i "\n addps %%xmm13, %%xmm" #i "\n"
#define AVX2_F32(i) "vfmadd231ps %%ymm12, %%ymm13, %%ymm" #i "\n"
#define AVX512_F32(i) "vfmadd231ps %%zmm12, %%zmm13, %%zmm" #i "\n"
#define AVX2_INT8(i) "vpmaddubsw %%ymm12, %%ymm13, %%ymm14\n vpmaddwd %%ymm12, %%ymm14, %%ymm14\n vpaddd %%ymm14, %%ymm" #i ", %%ymm" #i "\n"
#define AVXVNNI_INT8(i) "%{vex%} vpdpbusd %%ymm12, %%ymm13, %%ymm" #i "\n"
#define AVX512_INT8(i) "vpdpbusd %%zmm12, %%zmm13, %%zmm" #i "\n"
#define ZEROS_SSE EACH12(ZERO_SSE) ZERO_SSE(12) ZERO_SSE(13)
#define ZEROS_VEX EACH12(ZERO_VEX) ZERO_VEX(12) ZERO_VEX(13) ZERO_VEX(14)

LOOP(sse_f32, ZEROS_SSE, EACH12(SSE_F32), "")
LOOP(avx2_f32, ZEROS_VEX, EACH12(AVX2_F32), "vzeroupper\n")
LOOP(avx512_f32, ZEROS_VEX, EACH12(AVX512_F32), "vzeroupper\n")
LOOP(avx2_int8, ZEROS_VEX, EACH12(AVX2_INT8), "vzeroupper\n")
LOOP(avxvnni_int8, ZEROS_VEX, EACH12(AVXVNNI_INT8), "vzeroupper\n")
LOOP(avx512_int8, ZEROS_VEX, EACH12(AVX512_INT8), "vzeroupper\n")

/* Paths from wide to plain; ops: of one chain's step. Below AVX2, int8 is judged by fp32. */
static const struct path {
    unsigned isa;
    void (*int8)(void), (*fp32)(void);
    int int8_ops, fp32_ops;
} paths[] = {
    { Q_ISA_AVX512VNNI, avx512_int8, avx512_f32, 128, 32 },
    { Q_ISA_AVXVNNI, avxvnni_int8, avx2_f32, 64, 16 },
    { Q_ISA_AVX2, avx2_int8, avx2_f32, 64, 16 },
    { 0, sse_f32, sse_f32, 8, 8 },
};

static void run(void *arg, struct team *t) { ((const struct path *)arg)->fp32(); }

static int best_rate(struct q_team *team, int threads, void (*loop)(void), int ops, double *rate)
{
    struct path p = { .fp32 = loop };
    return roof_best(team, run, &p, (double)threads * LOOPS * CHAINS * ops, rate);
}

int roof_op_rate(int threads, unsigned isa, double *int8, double *fp32, int *sure, struct q_err *e)
{
    const struct path *p = paths;
    struct q_team *team;
    int rc = team_open(&team, threads, e);
    if (rc) return rc;
    while (p->isa && !(p->isa & isa)) p++;
    *sure = best_rate(team, threads, p->int8, p->int8_ops, int8);
    *sure &= best_rate(team, threads, p->fp32, p->fp32_ops, fp32);
    team_close(team);
    return Q_OK;
}
