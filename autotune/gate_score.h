/* How far a set's logits are from the reference's: KL(reference || set), cosine, first choices, and by position in the text: KLD, drift (the
 * largest difference of a logit) and how sure the reference was. What grows with the position is an error that a state or a cache keeps. */
#ifndef Q_GATE_SCORE_H
#define Q_GATE_SCORE_H

#include "gate_texts.h"
#include <stdio.h>

#define GATE_MARGIN 0.5         /* a first choice that the reference is surer of must be the set's too */

enum { SCORE_PLACES = 6, SCORE_WORST = 5 };
extern const int score_until[SCORE_PLACES];     /* positions below it; the last has no end */

struct score_place {
    int rows, kept;
    double kld, drift;          /* mean and largest over the rows whose logits are kept */
    double margin;              /* of the reference, mean over all rows */
};

struct score {
    double kld;                 /* mean over the rows whose logits are kept */
    double angle;               /* mean of 1 - cosine */
    struct score_place place[SCORE_PLACES];
    int rows, kept;
    int differ;                 /* rows with another first choice */
    int exceptions;             /* of them, those where the reference's margin is above GATE_MARGIN */
    char worst[SCORE_WORST][160];   /* lines about those with the largest margins; "": no more */
};

/* KL(ref || got) of n logits, in nats; the largest difference. */
double gate_divergence(const float *ref, const float *got, int n);
double gate_drift(const float *ref, const float *got, int n);

/* Sums on their way to a score. */
struct scorer {
    const struct trace *t;
    const struct tokenizer *tok;    /* NULL: ids are printed as numbers */
    FILE *report;                   /* gets a line for each other first choice */
    struct score s;
    double margin[SCORE_WORST];
};

/* The next row in the trace's order. Q_EINTERNAL: it is about another position. NaN in `got` makes the KLD NaN, which passes nothing. */
int score_row(struct scorer *c, int text, int pos, const float *got, struct q_err *e);
void score_finish(struct scorer *c);

#endif
