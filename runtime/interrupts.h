/* The signals by which somebody ends a program: SIGINT, SIGTERM, SIGHUP. A program that puts away what it has begun blocks them and polls. */
#ifndef Q_INTERRUPTS_H
#define Q_INTERRUPTS_H

#include <signal.h>
#include <sys/signalfd.h>

static inline sigset_t interrupts(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

/* A descriptor that is readable while one that is blocked is pending, which it leaves so; -1: none. The caller closes it. */
static inline int interrupts_open(void)
{
    sigset_t set = interrupts();
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

#endif
