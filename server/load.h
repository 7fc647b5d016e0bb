/* How far loading is: written by the engine's thread, read by any. */
#ifndef S_LOAD_H
#define S_LOAD_H

#include <stdatomic.h>

struct load {
    _Atomic(const char *) stage;     /* a static word; NULL: not begun */
    atomic_int permille;             /* of the whole */
};

/* For q_engine_opts.progress, with a struct load. */
void load_progress(void *arg, const char *stage, double fraction);
const char *load_stage(const struct load *l);
int load_percent(const struct load *l);

#endif
