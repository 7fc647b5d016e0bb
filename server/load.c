#include "load.h"
#include "runtime/clock.h"
#include <stdio.h>
#include <string.h>

static void end_stage(struct load *l, double now)
{
    const char *stage = atomic_load(&l->stage);
    size_t n = strlen(l->stages);
    if (stage) snprintf(l->stages + n, sizeof l->stages - n, "%s%s %.1f s", n ? ", " : "", stage, now - l->stage_began);
    l->stage_began = now;
}

void load_progress(void *arg, const char *stage, double fraction)
{
    struct load *l = arg;
    const char *before = atomic_load(&l->stage);
    if (!before) l->began = l->stage_began = clock_s();
    else if (strcmp(before, stage)) end_stage(l, clock_s());
    atomic_store(&l->permille, (int)(fraction * 1000));
    atomic_store(&l->stage, stage);
}

double load_end(struct load *l)
{
    double now = clock_s();
    end_stage(l, now);
    atomic_store(&l->permille, 1000);
    return now - l->began;
}

const char *load_stage(const struct load *l)
{
    const char *s = atomic_load(&l->stage);
    return s ? s : "start";
}

int load_percent(const struct load *l) { return atomic_load(&l->permille) / 10; }
