/* The child that builds missing kernels: `quarry-tune --effort none`, found beside the running program. */
#ifndef Q_KSET_CHILD_H
#define Q_KSET_CHILD_H

#include "kset.h"

/* Runs it to its end; what it prints on stderr goes to o->say line by line. cache: where it writes, NULL: its own choice.
 * When it fails, its last line is the error's. Blocks. An interrupt from the terminal reaches the child too, which then puts its work away. */
int kset_run_tuner(const struct kset_opts *o, const char *cache, struct q_err *e);

#endif
