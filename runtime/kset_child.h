/* The child that builds missing kernels: `quarry-tune --effort none`, found beside the running program. */
#ifndef Q_KSET_CHILD_H
#define Q_KSET_CHILD_H

#include "kset.h"

/* Runs it to its end; what it prints on stderr goes to o->say line by line. cache: where it writes, NULL: its own choice.
 * When it fails, its last line is the error's. Blocks; the child does not outlive a caller that is killed by more than its own build. */
int kset_run_tuner(const struct kset_opts *o, const char *cache, struct q_err *e);

#endif
