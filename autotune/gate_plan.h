/* Which of the gate's units are read: by the model's size and the effort alone, so that two tunes read the same.
 *
 * A unit costs the multiply-adds of its rows; a machine is taken to do so many a second (gate.c). How fast it really is decides nothing but
 * whether reading is broken off in the end. */
#ifndef Q_GATE_PLAN_H
#define Q_GATE_PLAN_H

#include "gate_texts.h"
#include "runtime/model.h"

/* What a machine is taken to do. */
struct gate_speed {
    double rate;                /* multiply-adds a second, in steps of many rows */
    int least;                  /* a step of fewer rows takes as long as one of so many: it waits for the weights */
};

/* Multiply-adds of reading a unit, those of a wait counted as if they were done. */
double gate_unit_work(const struct trace *t, const struct trace_unit *u, const struct q_model *m, int least);
/* Marks as chosen, in their order, the units that fit in `seconds`. When not even the first fits: Q_ELIMIT, or with `must` it is chosen
 * alone, its answer as long as fits but at least GATE_LEAST_ANSWER. */
int gate_choose(struct trace *t, const struct q_model *m, const struct gate_speed *s, double seconds, int must, struct q_err *e);

#endif
