/* What it takes to put recorded winners to the proof on this machine, for the verbs that record nothing (verify, compare): the store and what it
 * answers, a compiler, the measuring child behind a watch, the card's journal held, so that no tune disturbs the times. Without a journal it goes
 * on. */
#ifndef Q_PROVING_H
#define Q_PROVING_H

#include "look.h"
#include "tune.h"
#include "watch.h"

struct proving {
    const struct options *o;
    struct target t;
    struct gen *g;
    struct store *s;
    struct look look;          /* of the options' model, or all that is recorded */
    struct compiler compiler;
    struct build_opts build;
    struct effort effort;      /* quick, with the budget that was asked for */
    struct contest_env env;
    struct journal *journal;
    struct watch watch;        /* around the measurer */
    struct measure *measure;
    struct measurer table;
    int can_build;
};

/* budget_us: of measuring, a winner. op: Q_EINPUT where none of the problems is of it; NULL: any. To be closed also after a failure. p stays where
 * it is. */
int proving_open(struct proving *p, const struct options *o, const char *op, double budget_us, struct q_err *e);
/* Non-zero: the user wanted to stop, which is why `rc` is an error. */
int proving_close(struct proving *p, int rc);

#endif
