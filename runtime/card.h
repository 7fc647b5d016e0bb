/* A card: a device class, what the silicon is, never its serial. For a CPU: vendor, family, model, instruction paths, caches and the
 * threads used; for a GPU: compute capability, multiprocessors, L2, memory bus, shared memory of a block. The key is text, so that it
 * can be handed to a child, stored in a record and written by hand:
 *   "cpu:amd-25-17,isa=avx512vnni+avx2+sse42+scalar,l1=32,l2=1024,l3=32768,t=2"   (KiB; avxvnni where present)
 *   "cuda:sm_90,sms=132,l2=61440,bus=6144,smem=227"                               (KiB; bus in bits)
 * What a card's fuses or a hypervisor left of the silicon's rates is not here: the tuner learns it by measuring.
 */
#ifndef Q_CARD_H
#define Q_CARD_H

#include "err.h"
#include <stddef.h>

enum q_isa { Q_ISA_SCALAR = 1, Q_ISA_SSE42 = 2, Q_ISA_AVX2 = 4, Q_ISA_AVXVNNI = 8, Q_ISA_AVX512VNNI = 16 };

enum { CARD_OLDEST_CC = 60 };   /* what the kernels are written for begins with Pascal */

enum q_card_kind { Q_CARD_CPU, Q_CARD_CUDA };

struct q_card {
    char key[192];
    enum q_card_kind kind;
    /* CPU */
    char vendor[16];         /* amd intel other */
    int family, model;
    unsigned isa;            /* set of enum q_isa; AVX2 means AVX2 + FMA + F16C, AVX512VNNI means F, BW, DQ, VL, VNNI and the OS saves zmm */
    int l1_kib, l2_kib, l3_kib;
    int threads;
    /* CUDA */
    int cc;                  /* 10 * major + minor: 70, 90, 120 */
    int sms, l2, bus, smem;  /* L2 in KiB, bus in bits, the most shared memory a block may ask for in KiB */
    /* ",without=mma" in its key: taken as if it had no tensor cores, to try what a card without them gets; "mma+dp4a": nor products of four
     * bytes, as sm_60. */
    int without_mma, without_dp4a;
};

/* This machine's CPU as the program may use it (cpuid and xgetbv, so an emulator's answer counts). threads <= 0: all allowed CPUs. */
int card_detect_cpu(struct q_card *c, int threads, struct q_err *e);
/* CPUs that this program may use; at least 1. */
int card_allowed_cpus(void);
/* The end of a key, ",without=mma", ",without=mma+dp4a" or nothing, into the card's fields; non-zero if it is none of these. */
int card_take_without(struct q_card *c, const char *text);
/* Fills in the key of a CUDA card from its fields. Those that the driver does not tell, or that cannot be, become the generic ones. */
void card_cuda_key(struct q_card *c);
/* Most shared memory of a block by compute capability, in KiB; 48 where unknown. */
int card_cuda_smem(int cc);
/* Whether there are, or may come to be, cards of this compute capability: 70 and 107, not 71. */
int card_cuda_exists(int cc);
/* A key as above, or a short form "cpu:avx2" (that path and those below it, generic caches), "cpu:avx2,l2=512,t=2", "cuda:sm_70".
 * Writes the full key. */
int card_parse(struct q_card *c, const char *key, struct q_err *e);
/* What card_parse took for what `key` leaves out, for people: "sms=40,l2=4096"; returns how many fields. */
int card_filled_in(const struct q_card *c, const char *key, char *dst, size_t cap);

#endif
