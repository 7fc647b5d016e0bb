/* Cubins as far as a builder must know them: whether a file is one, what its compiler's log tells of registers. */
#ifndef Q_CUBIN_H
#define Q_CUBIN_H

#include "runtime/err.h"

/* Whether the file is a whole ELF of CUDA code that defines kernel NAME, NAME_2, .. of `phases` phases. */
int cubin_check(const char *path, const char *name, int phases, struct q_err *e);
/* Registers of a thread and bytes of local memory for spills, the most of all kernels in the log; 0 where it does not tell. */
void cubin_log(const char *log, int *regs, int *spill);

#endif
