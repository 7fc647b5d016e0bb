/* What makes objects for a card: the C compiler of this machine, found by asking and known by the first line of its --version, or NVRTC. */
#ifndef Q_COMPILER_H
#define Q_COMPILER_H

#include "nvrtc.h"
#include "runtime/card.h"

struct compiler {
    char program[Q_PATH];  /* the C compiler, or NVRTC's library; "" until one is found */
    char version[128];     /* "cc (Debian 12.2.0-14+deb12u1) 12.2.0", "NVRTC 12.9": part of every object's name */
    char brief[64];        /* "cc 12.2.0", "NVRTC 12.9" */
    char self[Q_PATH];     /* quarry-tune, whose children call NVRTC and open objects */
};

/* What the user named; all may be empty. */
struct compiler_given {
    const char *cc;                /* --cc */
    struct nvrtc_places nvrtc;
    int elsewhere;                 /* the card is in another machine, whose driver nobody can ask: objects are made for the oldest that may be */
};

/* Q_EMISS: none, with what to do about it; program is then "". */
int compiler_find(struct compiler *c, const struct q_card *card, const struct compiler_given *given, struct q_err *e);
/* given: --cc, or NULL for the first of cc, gcc, clang on the PATH. */
int cc_find(struct compiler *c, const char *given, struct q_err *e);
/* This program's own path. */
int self_path(char path[Q_PATH], struct q_err *e);

#endif
