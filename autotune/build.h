/* Kernel units to shared objects: a few compilers at a time, each killable, each result checked before it enters the store.
 *
 * A unit is written, compiled and opened in a private directory on the store's disk; only a whole object is moved to its place. An
 * interrupt or a failure leaves what is finished, and nothing half-written. */
#ifndef Q_BUILD_H
#define Q_BUILD_H

#include "cc.h"
#include "runtime/record.h"
#include "runtime/store.h"

struct build_task {
    /* in, borrowed */
    const char *kernel;          /* symbol, and file stem */
    const char *unit;
    const char *flags;           /* separated by blanks */
    /* out */
    struct record_object object;
    int rc;                      /* Q_OK: it is in the store */
    char why[512];               /* else one line */
};

struct build_opts {
    struct store *store;
    const struct cc *cc;
    int jobs;                    /* compilers at a time */
    int deadline_s;              /* for one unit */
    int signal_fd;               /* readable when the user wants to stop; -1: none */
    void (*progress)(void *arg, int done, int n);   /* after each unit; may be NULL */
    void *progress_arg;
};

/* Fills `object` but for content and size: what the object will be called. */
void build_name(struct build_task *t, const struct cc *cc);
/* Builds all tasks (named already). An error of one unit is its own; an error here (interrupt, full disk) ends the rest. */
int build_all(const struct build_opts *o, struct build_task *tasks, int n, struct q_err *e);

#endif
