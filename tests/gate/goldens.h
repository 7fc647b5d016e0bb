/* Goldens of the test model: what the reference implementation (Hugging Face, fp32) answered. Format: tests/models/tiny/README.md. */
#ifndef GOLDENS_H
#define GOLDENS_H

#include "runtime/err.h"

enum { GOLDEN_TOP = 8 };

struct golden_step {
    int id[GOLDEN_TOP];
    float logit[GOLDEN_TOP];
    float lse;
};

struct golden {
    int *ids;                    /* owned: prompt, then answer */
    int n_prompt, n;
    struct golden_step *steps;   /* owned: [n - n_prompt], what led to each answer id */
    float margin;                /* smallest difference of first and second choice over the answer */
    char label[96];              /* the last user text's end */
};

struct goldens {
    struct golden *g;            /* owned */
    int n, longest;
};

/* Reads `path` (JSON lines); at most `limit` chats (0: all). */
int goldens_open(struct goldens *gs, const char *path, int limit, struct q_err *e);
void goldens_close(struct goldens *gs);

#endif
