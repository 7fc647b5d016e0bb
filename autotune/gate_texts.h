/* Which texts the gate reads, in which order, and how: the plan that the reference begins with.
 *
 * Texts stand in units of one to eight, most telling first; half of them are Korean. A unit's prompts go in one piece or in chunks, its
 * continuations together, one row a text, so that single rows, few rows and many rows are all judged. Three texts are of more than
 * 4,096 tokens, each in a unit alone. A preset has no tokenizer: its texts are ids spread over the vocabulary, and their continuations are given. */
#ifndef Q_GATE_TEXTS_H
#define Q_GATE_TEXTS_H

#include "gate_trace.h"
#include "runtime/tokenizer.h"

enum { GATE_BATCH = 8, GATE_STEP = 512, GATE_CTX = 768, GATE_LONG_CTX = 5120 };
enum { GATE_OUT = 32, GATE_LEAST_ANSWER = 16 };     /* _OUT: most rows a step whose logits are asked for */

/* Fills texts, units and prompts. tok: NULL for a preset. answer: tokens of a continuation. n_ctx: what the model was trained for. */
int gate_texts(struct trace *t, const struct tokenizer *tok, int answer, int n_ctx, struct q_err *e);
/* Whether the logits of row i of a prompt's step of n are asked for: at most GATE_OUT, evenly, and always the last. */
int gate_wants(int i, int n);
/* Rows that a unit enters into the trace, and all chosen ones. */
int gate_unit_rows(const struct trace *t, const struct trace_unit *u);
int gate_rows(const struct trace *t);

struct gate_corpus {
    const char *name, *text;    /* NULL text: made by gate_long */
};
/* gate_corpus.c: in the order of the units, whose names a test holds against these. */
extern const struct gate_corpus gate_corpus[];
extern const int gate_corpus_n;
/* gate_long.c: a long text of about n entries and the question at its end, owned by the caller; NULL when memory is short or
 * no text has that name. */
char *gate_long(const char *name, int n);

#endif
