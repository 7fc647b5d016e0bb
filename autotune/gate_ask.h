/* The supervisor's side of the gate's child: starts one for a job, hears that it lives, and ends it when it does not. */
#ifndef Q_GATE_ASK_H
#define Q_GATE_ASK_H

#include "progress.h"
#include "runtime/err.h"

struct cJSON;

struct gate_ask {
    const char *program;        /* quarry-tune's own path */
    int signal_fd;              /* readable when the user wants to stop; -1: none */
    const struct progress *progress;
    double load_s;              /* how long the child may be silent before its first step: it opens a model */
    double silence_s;           /* and between steps */
    double slowest;             /* out: the longest silence between steps of the last job that ended well */
};

/* job: one line's object, deleted here. *answer is the caller's, what the child told at its end. Q_EIO: the user wants to stop, the child
 * cannot be started, or somebody else ended it. Q_EINTERNAL: it crashed, or was silent too long and was ended here; the line tells
 * after which text. */
int gate_ask(struct gate_ask *a, struct cJSON *job, struct cJSON **answer, struct q_err *e);

#endif
