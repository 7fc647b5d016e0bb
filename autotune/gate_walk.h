/* Reads one unit of the gate's texts with an engine, always in the same steps, and hands out the rows that are looked at.
 *
 * The reference and every set walk the same way; what differs is what they do with a row. */
#ifndef Q_GATE_WALK_H
#define Q_GATE_WALK_H

#include "gate_texts.h"
#include "runtime/engine.h"

enum { WALK_STOP = -1 };

struct walk {
    struct q_engine *en;
    const struct trace *t;
    void *arg;
    /* Before a step whose first row is at `pos` of a text. WALK_STOP ends the unit. */
    int (*step)(void *arg, int text, int pos);
    /* After it, for each row that is looked at. It may write the token after an answer's row into the trace. */
    int (*row)(void *arg, int text, int pos, const float *logits, struct q_err *e);
    /* its own */
    struct q_seq *seq[GATE_BATCH];
    int at[GATE_BATCH];                      /* rows of each text of the unit that were read */
    struct q_row rows[GATE_STEP];
    int text[GATE_STEP], pos[GATE_STEP];
    int n;
};

/* Takes `seqs` sequences of the engine; walk_close gives them back. */
int walk_open(struct walk *w, int seqs, struct q_err *e);
void walk_close(struct walk *w);
/* An error of the engine, or WALK_STOP; w->at tells how far it came. */
int walk_unit(struct walk *w, const struct trace_unit *u, struct q_err *e);

#endif
