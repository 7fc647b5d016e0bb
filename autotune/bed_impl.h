/* Inside a bed: shared by bed.c, which holds kernels and cases, and bed_time.c, which times them. */
#ifndef Q_BED_IMPL_H
#define Q_BED_IMPL_H

#include "bed.h"
#include "sample.h"

/* What a member of the team saw of its part of a batch: microseconds. */
struct bed_span {
    double begin, end;
    double lost;        /* of the time around it, that the member did not have a CPU */
    int put_off;        /* somebody else got its CPU */
    int cpu;            /* where it began */
};

#endif
