/* At which sizes an op is checked and timed: one table that stands for how models use it. A winner for steps of any size is timed at
 * several, weighted; a winner for a bucket near its end and at a quarter of it. */
#ifndef Q_SIZES_H
#define Q_SIZES_H

#include "gen/gen.h"
#include "measure.h"
#include "runtime/card.h"
#include "runtime/kset.h"

struct sizes {
    struct measure_size check[2];            /* ragged, small enough for ref.c's plain loops */
    struct measure_size time[MEASURE_SIZES];
    double weight[MEASURE_SIZES];            /* sum 1; of a size's time in relation to the default's */
    int n;
    int cold;                                /* weights, state or KV come from memory in a model, not from a cache */
};

/* Those of a card are a card's: steps of 2048 rows, long contexts. On a CPU sizes are cut where a product is so large that a call would take long
 * (the output head), never below 32 rows. */
int sizes_of(struct sizes *s, struct gen *g, const struct q_card *card, const struct q_problem *p, struct q_err *e);

#endif
