/* What the gate's reference leaves for the sets that are judged by it: texts as ids, the units they were read in, and what was said at
 * each position.
 *
 * One private file, mapped: tables of fixed sizes, then logits. Of every row that is looked at it holds the first choice and how far the
 * second was behind; the whole logits of every stride-th row, in at most TRACE_BYTES. When that is full, every second of those kept gives
 * way and the stride doubles, so that they lie evenly over whatever was read, however large the vocabulary. The room is taken when
 * the file is made: a full disk is an error then, and no fault later.
 *
 * Rows are numbered as they are read; whoever reads the same units the same way meets them in the same order. */
#ifndef Q_GATE_TRACE_H
#define Q_GATE_TRACE_H

#include "runtime/err.h"
#include <stddef.h>

enum { TRACE_FORMAT = 1, TRACE_TEXTS = 32, TRACE_UNITS = 16, TRACE_IDS = 32768, TRACE_ROWS = 8192, TRACE_BYTES = 256000000 };

struct trace_text {
    char name[16];
    int at, n_prompt, n;        /* ids[at, at + n): the prompt and what follows it */
};

/* Texts that are read together: their prompts one after another, then a token of each in one step. */
struct trace_unit {
    int text, n;                /* texts [text, text + n) */
    int chunk;                  /* most rows of a prompt in one step */
    int large;                  /* needs the long context, and is alone */
    int chosen;                 /* to be read */
    int done;                   /* the reference has read it */
};

struct trace_row {
    int text, pos;
    int first, second;          /* ids with the largest logits */
    float margin;               /* between the two */
};

struct trace {
    int format, vocab;
    int synthetic;              /* no tokenizer: ids are made up, and answers given */
    int n_texts, n_units, n_ids, n_rows;
    int stride, most_kept;
    size_t bytes;               /* of the file */
    struct trace_text text[TRACE_TEXTS];
    struct trace_unit unit[TRACE_UNITS];
    int ids[TRACE_IDS];
    struct trace_row row[TRACE_ROWS];
    float logits[];             /* [most_kept][vocab] */
};

/* A new file, tables empty, without room for logits. Q_EIO. */
int gate_trace_make(struct trace **t, const char *path, int vocab, struct q_err *e);
/* Takes the room for the logits of `rows` rows, or of as many as the bound lets. Moves *t. */
int gate_trace_reserve(struct trace **t, const char *path, int rows, struct q_err *e);
/* Read only. Q_EINTERNAL: it is none. */
int gate_trace_open(const struct trace **t, const char *path, struct q_err *e);
void gate_trace_close(const struct trace *t);

/* Enters the next row; what does not fit in the table is left out. */
void gate_trace_keep(struct trace *t, int text, int pos, const float *logits);
/* Back to n rows. */
void gate_trace_cut(struct trace *t, int n);
/* NULL where only the first choice is kept. */
const float *gate_trace_logits(const struct trace *t, int row);
/* Index of the largest of n; of equal ones the first. NaN is never larger. */
int gate_largest(const float *x, int n);

#endif
