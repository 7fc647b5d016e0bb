/* Whether a record spares a tune the measuring of its problem.
 *
 * It is read as something that others may have written: judge.h says what it must be.
 * A winner stays while its problem, its card and its generator are the same: these are its key. A compiler or a driver that changed since, or
 * an object that is gone, voids nothing: the winner is built, checked and held
 * against the default params again, which takes a second. Then it stays and is recorded with what is here now. */
#ifndef Q_RECORDED_H
#define Q_RECORDED_H

#include "compiler.h"
#include "contest.h"

struct recorded_query {
    const struct target *t;
    struct gen *g;
    struct store *store;
    const struct effort *effort;         /* that was asked for: less is no answer */
    int again;                           /* nor is anything else */
    const struct compiler *compiler;     /* version "": none is here, and none is asked of the record */
    char driver[32];                     /* that is here, as recorded_driver tells; "": none, or not known */
};

/* The driver under which the card's kernels run, as records hold it: "580.159.03", or what it stands for, "cuda13.0"; "" for a CPU. */
void recorded_driver(const struct q_card *card, char driver[32]);

enum recorded { RECORDED_NONE, RECORDED_GOOD, RECORDED_AGAIN };

/* why: in a few words what changed, or why what is recorded is none; else "". The record is the one found, but for RECORDED_NONE. */
int recorded_find(const struct recorded_query *q, const struct q_problem *p, struct record *r, enum recorded *state, char why[200], struct q_err *e);

/* The winner that holds p's place when p is tuned anew: measured here with whatever effort, and believed. Non-zero: there is one. */
int recorded_holds(const struct recorded_query *q, const struct q_problem *p, struct record *r);

#endif
