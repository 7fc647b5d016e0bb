/* What is tried: the shapes and sizes of tests/ops/OP.txt, candidates drawn from the space. Shared by op_check and tests/gpu. */
#ifndef TRIALS_H
#define TRIALS_H

#include "gen/gen.h"
#include "templates/ref.h"

enum { MOST_SIZES = 8, MOST_LINES = 64 };

/* One line of tests/ops/OP.txt: a shape and the trial sizes above it. */
struct trial {
    char shape[224];
    struct ref_size size[MOST_SIZES];
    int n_sizes;
};

/* Reads `file`; returns how many trials there are for cards of this kind ("cpu", "cuda"), -1 with *e filled. */
int trials_read(struct trial t[MOST_LINES], const char *file, const char *kind, struct q_err *e);

/* A sample of the legal candidates' params: at most `most`, the paths taken in turn, drawn by `seed`. */
struct sample {
    char (*params)[256];       /* owned */
    int n, legal;
};
int sample_draw(struct sample *s, struct gen *g, const char *op, const char *shape, const char *card, int most, unsigned long long seed,
                struct q_err *e);

#endif
