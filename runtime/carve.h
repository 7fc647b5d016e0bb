/* One block of memory cut into arrays, each at a cache line: with base NULL the same pass only counts. */
#ifndef Q_CARVE_H
#define Q_CARVE_H

#include <stddef.h>

struct carve {
    char *base;
    size_t at;       /* bytes so far */
};

static inline void *carve_take(struct carve *c, size_t bytes)
{
    void *p = c->base ? c->base + c->at : NULL;
    c->at += (bytes + 63) / 64 * 64;
    return p;
}

#endif
