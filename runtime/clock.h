/* Seconds of a clock that only goes on. */
#ifndef Q_CLOCK_H
#define Q_CLOCK_H

#include <time.h>

static inline double clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
