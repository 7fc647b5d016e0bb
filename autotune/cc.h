/* The C compiler of this machine: found by asking, known by the first line of its --version. */
#ifndef Q_CC_H
#define Q_CC_H

#include "runtime/err.h"

struct cc {
    char program[256];
    char version[128];     /* "cc (Debian 12.2.0-14+deb12u1) 12.2.0": part of every object's name */
    char brief[64];        /* "cc 12.2.0" */
};

/* given: --cc, or NULL for the first of cc, gcc, clang on the PATH. Q_EMISS: none, with what to do about it; program is then "". */
int cc_find(struct cc *c, const char *given, struct q_err *e);

#endif
