/* What `quarry bench` times: prompts read and tokens decoded by one sequence or several together, from a pretended depth on. */
#ifndef Q_CMD_BENCH_STREAMS_H
#define Q_CMD_BENCH_STREAMS_H

#include "engine.h"

struct streams {
    struct q_engine *engine;     /* borrowed */
    int n;
    struct q_seq **seq;          /* owned: [n] */
    struct q_row *row;           /* owned: [n] */
};

/* n sequences that seem to hold `depth` tokens each. */
int streams_open(struct streams *s, struct q_engine *en, int n, int depth, struct q_err *e);
void streams_close(struct streams *s);
/* The first one reads a prompt of so many tokens. */
int streams_prefill(struct streams *s, long tokens, double *seconds, struct q_err *e);
/* Each decodes so many tokens, greedily, one of each in a step. */
int streams_decode(struct streams *s, long tokens, double *seconds, struct q_err *e);

#endif
