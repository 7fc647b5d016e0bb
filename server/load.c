#include "load.h"

void load_progress(void *arg, const char *stage, double fraction)
{
    struct load *l = arg;
    atomic_store(&l->stage, stage);
    atomic_store(&l->permille, (int)(fraction * 1000));
}

const char *load_stage(const struct load *l)
{
    const char *s = atomic_load(&l->stage);
    return s ? s : "start";
}

int load_percent(const struct load *l) { return atomic_load(&l->permille) / 10; }
