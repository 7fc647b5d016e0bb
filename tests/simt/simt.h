/* Runs the text of a CUDA candidate, compiled by g++ against tests/simt/kernel.cuh, on this CPU: see README.md. One host thread
 * only. */
#ifndef SIMT_H
#define SIMT_H

#include "runtime/err.h"
#include "runtime/kernel.h"
#include "runtime/launch.h"
#include <stddef.h>

/* What a kernel may touch besides shared memory. */
struct simt_buffer {
    const char *name;
    void *data;
    size_t bytes;
    int writable, early;   /* early: may be read before pdl_wait() */
};

struct simt_call {
    const char *name;                    /* of the candidate */
    const char *source;                  /* its text, for reports; may be NULL */
    const char *object;                  /* path of the shared object */
    const struct q_phases *launch;
    struct q_extent extent;
    int cc;
    const void *args;
    size_t args_bytes;
    const struct simt_buffer *buffer;
    int n_buffers;
    unsigned long long seed; /* order of blocks and warps, contents of shared memory: 0 ascending, 1 descending, else shuffled */
};

/* All phases, in order. The first thing that a card might not forgive ends it with a line that names kernel, block and thread. */
int simt_run(const struct simt_call *c, struct q_err *e);

/* The unit that g++ is given for a candidate: its text, and for each phase a function SIMT_NAME that calls it. Owned by the
 * caller. */
char *simt_unit(const char *name, const char *source, const struct q_phases *launch);
/* What the compiler is told, but for include paths: -D__CUDA_ARCH__=.. and all else. */
void simt_flags(char *out, size_t cap, int cc);

#endif
