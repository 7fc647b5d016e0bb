/* Inside `quarry bench`: cmd_bench.c runs the tests, cmd_bench_roof.c says what the measured roofs allow, cmd_bench_print.c prints both as a table
 * or as JSON. */
#ifndef Q_CMD_BENCH_IMPL_H
#define Q_CMD_BENCH_IMPL_H

#include "cli.h"
#include "roof.h"

enum { BENCH_LIST = 16 };

struct bench {
    struct q_cli cli;
    long prompt, generate, reps;
    int depth[BENCH_LIST], n_depths;
    int batch[BENCH_LIST], n_batches;   /* streams that decode together */
    int json, rows_printed, trace;
    int varied;                  /* a row's largest figure is far from its smallest */
    struct q_roofs roofs;        /* measured */
};

struct bench_test {
    int decode, depth, streams;
    long tokens;                 /* of one stream */
};

struct bench_sample {
    double median, min, max;     /* tokens a second */
};

/* Tokens a second that the roofs allow; < 0: the weights lie in a cache, which has none. */
double bench_roof(const struct bench *b, const struct q_engine *en, const struct bench_test *t);

void bench_print_title(const struct bench *b, const struct q_engine *en);
void bench_print_row(struct bench *b, const struct q_engine *en, const struct bench_test *t, const struct bench_sample *s);
void bench_print_roofs(const struct bench *b);
/* The kernels of the engine's trace, which is of that test. */
void bench_print_trace(const struct bench *b, struct q_engine *en, const struct bench_test *t);

#endif
