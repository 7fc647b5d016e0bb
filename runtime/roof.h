/* Measured ceilings of this machine, to judge speeds by. */
#ifndef Q_ROOF_H
#define Q_ROOF_H

#include "err.h"

/* Bytes a second that `threads` threads read from memory together: the best of several passes over blocks far larger than the caches. */
int roof_read_rate(int threads, double *bytes_per_second, struct q_err *e);
/* Operations a second (a multiply and an add are two) of registers alone on the best path in `isa` (a set of enum q_isa): int8
 * products summed in int32, fp32 fused multiply-adds. The best of several short runs (roof_ops.c). */
int roof_op_rate(int threads, unsigned isa, double *int8, double *fp32, struct q_err *e);

#endif
