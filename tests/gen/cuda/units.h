/* CUDA units compiled by NVRTC in a few processes at once, and what the assembler says of each. */
#ifndef UNITS_H
#define UNITS_H

#include "autotune/nvrtc.h"
#include "gen/gen.h"

struct unit {
    const char *op;
    int cc, is_default;
    char shape[224];
    struct gen_kernel kernel;      /* owned */
    const struct nvrtc *nvrtc;
};

/* Of one unit, all its kernels together: the most. */
struct verdict {
    int state;                     /* 0: nobody took it, 1: taken, 2: done */
    int failed;
    int regs, spill, smem;         /* registers a thread; bytes; bytes, dynamic shared memory included */
    int fixed;                     /* bytes of static shared memory */
    int block_regs;                /* registers a block, in the eights that they are given out in */
    double seconds;
    char why[400];
};

/* Compiles all; v[n] is filled. A process that dies fails the unit it had. */
int units_compile(const struct unit *u, struct verdict *v, int n, int jobs, struct q_err *e);
/* Zeroed memory that the processes share. */
struct verdict *verdicts_open(int n, struct q_err *e);

#endif
