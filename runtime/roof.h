/* Measured ceilings of this machine, to judge speeds by. */
#ifndef Q_ROOF_H
#define Q_ROOF_H

#include "err.h"

/* Bytes a second that `threads` threads read from memory together: the best of several passes over blocks far larger than the caches.
 * *sure: it is the machine's own (roof_passes.h). */
int roof_read_rate(int threads, double *bytes_per_second, int *sure, struct q_err *e);
/* Operations a second (a multiply and an add are two) of registers alone on the best path in `isa` (a set of enum q_isa): int8
 * products summed in int32, fp32 fused multiply-adds. The best of several short runs (roof_ops.c). *sure: both are. */
int roof_op_rate(int threads, unsigned isa, double *int8, double *fp32, int *sure, struct q_err *e);

/* A share of a roof as it is shown, everywhere by one rule: memory is no roof of what comes from a cache, and what beats a ceiling of arithmetic
 * shows that this was measured too low. Up to 105 % is all of it. *pct: at most 100 then; JSON and records hold what was measured. */
enum roof_share { ROOF_PART, ROOF_CACHE, ROOF_OVER } roof_share(double *pct, int by_bytes);
/* "71 %", "in cache", ">100 %" */
enum { ROOF_TEXT = 16 };
enum roof_share roof_text(char dst[ROOF_TEXT], double pct, int by_bytes, int digits);

/* Ceilings of any device; 0: it has none of that kind. A card's by its kernel set's `ceiling` kernels, timed on the card. */
struct q_roofs {
    double read;                                  /* bytes a second */
    double dp4a, hfma2, ffma, mma_f16, mma_i8;    /* operations a second, a multiply-add is two */
    double int8, fp32;                            /* the best there is for products of int8, of fp32 */
    int doubtful;                                 /* how many were measured while others used the device: they may be too low */
};
/* A CPU's: read, int8, fp32. */
int roof_measure_host(int threads, unsigned isa, struct q_roofs *r, struct q_err *e);
struct q_device;
struct kset;
int roof_measure(struct q_device *d, const struct kset *k, struct q_roofs *r, struct q_err *e);

#endif
