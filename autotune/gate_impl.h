/* What the parts of the gate's supervisor share: a gate on its way. */
#ifndef Q_GATE_IMPL_H
#define Q_GATE_IMPL_H

#include "gate.h"
#include "gate_ask.h"
#include "gate_score.h"

/* What became of a set. */
struct verdict {
    int failed;                 /* it crashed, hung or ended in an error: `why` */
    int slow;                   /* the reason is that this machine cannot run it in time or memory */
    char why[400];
    struct score s;
};

struct gate {
    const struct gate_opts *o;
    struct found_list *l;
    struct gate_ask ask;
    char dir[Q_PATH];           /* private, and in it: */
    char set[Q_PATH], trace[Q_PATH], lines[Q_PATH];   /* records for an engine; the reference's trace; a set's other first choices */
    double start;
    double seconds;             /* that the reference may read */
    int answer;                 /* tokens of a continuation */
    int against_default;        /* the reference is the default params' set */
    char why_not[400];          /* the reason for that */
    const struct trace *t;      /* of the reference, mapped */
    int *changed, n_changed;    /* owned: problems whose fresh winner is not their default, by their place in the list */
    int n_use;                  /* of them, those whose winners are in the set: the first */
    FILE *report;               /* in memory */
};

/* --- gate_set.c: sets as an engine finds them --- */

int gate_list_changed(struct gate *g, struct q_err *e);
/* Back to default params, and nothing is written of it. */
void gate_drop(struct gate *g, int culprit);
/* The records in use, and default kernels for all else, so that an engine of these numerics finds a whole set. of_reference: no records. */
int gate_write_set(const struct gate *g, enum q_numerics numerics, int of_reference, struct q_err *e);

/* --- gate_report.c --- */

void gate_report_set(struct gate *g, const char *name, const struct verdict *v);
/* The line for the user. */
void gate_summarise(const struct gate *g, const struct score *s, const struct score *base, char *dst, size_t cap);
/* Tells of first choices that differ: how many, and those with the largest margins; and of the KLD by position. */
void gate_tell(const struct gate *g, const struct score *s);
/* Puts the report in its place, best effort. text: what was reported. */
void gate_write_report(const struct gate *g, const char *text, size_t n);

#endif
