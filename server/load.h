/* How far loading is, and how long its parts took: written by the engine's thread, read by any. */
#ifndef S_LOAD_H
#define S_LOAD_H

#include <stdatomic.h>

struct load {
    _Atomic(const char *) stage;     /* a static word; NULL: not begun */
    atomic_int permille;             /* of the whole */
    /* the engine's thread's alone until the server is ready */
    double began, stage_began;       /* seconds */
    char stages[200];                /* "model 0.1 s, kernels 2.0 s" */
};

/* For q_engine_opts.progress, with a struct load. */
void load_progress(void *arg, const char *stage, double fraction);
const char *load_stage(const struct load *l);
int load_percent(const struct load *l);
/* The last stage is over: seconds it all took. Before others read `stages`. */
double load_end(struct load *l);

#endif
