/* A trace: how long each kernel of a model's launch lists took, summed by op and shape, with what its record says it moves and does.
 * Nothing is measured here; the device adds microseconds to the arrays that trace_list hands out. */
#ifndef Q_TRACE_H
#define Q_TRACE_H

#include "device.h"

struct q_trace_line {
    const char *op, *shape;    /* borrowed from the kernel set; shape "" if unknown */
    long calls;
    double us;                 /* of all calls */
    double bytes, ops;         /* of all calls; 0 where the record does not tell */
};

struct q_trace;
struct q_trace *trace_open(void);                       /* NULL: no memory */
void trace_close(struct q_trace *t);
/* The step to come: its rows, and KV tokens before it. */
void trace_step(struct q_trace *t, int rows, int past);
/* Where a submit of `list` adds its microseconds; `rows` are the rows that its kernels see in this step. NULL: not traced. */
double *trace_list(struct q_trace *t, const struct q_list *list, int rows);
/* After the step: adds it to the lines. */
void trace_collect(struct q_trace *t);
/* The lines so far, longest time first; borrowed. */
const struct q_trace_line *trace_lines(struct q_trace *t, int *n);

#endif
