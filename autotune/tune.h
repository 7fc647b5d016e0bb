/* A whole tune: layouts first, then every problem of the target, the gate over all of them together, and only then records.
 *
 * What the store already answers with a measured record of this generator and at least this effort stays; under another compiler or driver, or
 * without its object, when it is found right again (recorded.h). A problem
 * that cannot be tuned keeps its default params, with one line that says why and no record, so that a later tune tries it again; a
 * default that cannot be built ends the tune. No record is written when the gate does not pass or the user interrupts; what was measured stays
 * in the card's journal (journal.h), from which the next tune goes on, and objects stay in the cache. */
#ifndef Q_TUNE_H
#define Q_TUNE_H

#include "contest.h"
#include <stdio.h>

/* How far an interrupted tune came. */
struct tune_left {
    int journal;                       /* what is measured is kept */
    int kept, left;                    /* problems measured, and not */
    int counted;                       /* left is known: layouts, on which the list of problems depends, were chosen */
};

struct tune_opts {
    const struct target *t;
    struct gen *g;
    const struct build_opts *build;    /* its compiler is filled in when it is found */
    struct compiler *compiler;
    const struct compiler_given *given;
    const char *device;                /* as device_open takes it; a CPU is told by its card's threads */
    const char *effort;                /* quick, normal or exhaustive */
    const char *model, *preset, *type; /* as the command line named the model, for the gate's engines */
    const char *tunes;                 /* --tunes DIR */
    const char *program;               /* quarry-tune's own path */
    FILE *progress, *results;
    struct tune_left *left;            /* out, may be NULL */
    int again;                         /* what is recorded is measured too; it keeps its place unless another gains a step */
    const char *op;                    /* of tests: problems of this op alone, under default layouts, unjudged by the gate; NULL: all */
};

/* NULL if unknown ("none" is not one of these). */
const struct effort *effort_find(const char *name);
/* One problem for all buckets of an op and shape: what an effort without buckets tunes. */
void tune_join_buckets(struct q_problem_list *l);
/* Measures and records the ceilings of the card alone; o->t has no model. A CPU's are measured when they are asked for. */
int tune_roofs(const struct tune_opts *o, struct q_err *e);
int tune_make(const struct tune_opts *o, struct q_err *e);

#endif
