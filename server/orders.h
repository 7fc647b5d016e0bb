/* What connections want done with slots between the engine's steps: save, restore, erase (runtime/scheduler_session.h).
 *
 * A connection's thread gives an order and waits; the engine's thread runs it before its next step, when the slot is idle, and moves all
 * bytes at once: others' answers wait meanwhile. An order for a slot at work waits for the end of its answer.
 */
#ifndef S_ORDERS_H
#define S_ORDERS_H

#include "runtime/scheduler_session.h"

enum order_kind { ORDER_SAVE, ORDER_RESTORE, ORDER_ERASE };

struct order {
    enum order_kind kind;
    int slot;
    const char *path;            /* to save to */
    struct session *file;        /* to restore */
    /* filled in */
    int tokens;                  /* saved, restored, erased */
    int parts, kept;             /* restored: checkpoints of the file that the context has room for, and that the cache keeps */
    size_t bytes;                /* of the file */
    double seconds;
    struct q_err err;            /* code 0: it was done */
    /* of orders.c */
    struct order *next;
    int done;
};

struct orders;
/* wake(arg): there is one; called on the connection's thread. */
int orders_open(struct orders **o, void (*wake)(void *arg), void *arg, struct q_err *e);
void orders_close(struct orders *o);
/* Any thread: returns when it is done. */
int orders_give(struct orders *o, struct order *x);
/* The engine's thread, between steps: those whose slots are idle. ran(arg): one has run, and who gave it is told next. */
void orders_run(struct orders *o, struct q_sched *s, void (*ran)(void *arg), void *arg);
/* The engine's thread ends: those that wait, and all later ones, are refused. */
void orders_end(struct orders *o);

#endif
