/* Measured ceilings of this machine, to judge speeds by. */
#ifndef Q_ROOF_H
#define Q_ROOF_H

#include "err.h"

/* Bytes a second that `threads` threads read from memory together: the best of several passes over blocks far larger than the caches. */
int roof_read_rate(int threads, double *bytes_per_second, struct q_err *e);

#endif
