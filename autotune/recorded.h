/* Whether a record spares a tune the measuring of its problem.
 *
 * A winner stays while its problem, its card and its generator are the same: these are its key. A compiler or a driver that changed since, or
 * an object that is gone, voids nothing: the winner is built and looked at again (again.h), which takes a second. */
#ifndef Q_RECORDED_H
#define Q_RECORDED_H

#include "compiler.h"
#include "contest.h"

struct recorded_query {
    const struct target *t;
    struct gen *g;
    struct store *store;
    const struct effort *effort;         /* that was asked for: less is no answer */
    const struct compiler *compiler;     /* version "": none is here, and none is asked of the record */
    char driver[32];                     /* that is here, as recorded_driver tells; "": none, or not known */
};

/* The driver under which the card's kernels run, as records hold it: "580.159.03", or what it stands for, "cuda13.0"; "" for a CPU. */
void recorded_driver(const struct q_card *card, char driver[32]);

enum recorded { RECORDED_NONE, RECORDED_GOOD, RECORDED_AGAIN };

/* RECORDED_AGAIN: *why says in a few words what changed. The record is the one found, but for RECORDED_NONE. why may be NULL. */
int recorded_find(const struct recorded_query *q, const struct q_problem *p, struct record *r, enum recorded *state, char why[200], struct q_err *e);

#endif
