/* The memory that a run needs, from the shape alone: a pure function, so `quarry show` prints it for a file that is not
 * loaded and the engine takes what it says when it opens. Bytes are exact for weights, KV pages and states; scratch is
 * the sum of the buffers that a step of max_rows keeps alive at once. */
#ifndef Q_PLAN_H
#define Q_PLAN_H

#include "config.h"
#include <stddef.h>
#include <stdint.h>

enum { Q_PAGE_TOKENS = 64 };

struct q_plan_options {
    size_t weight_bytes;       /* of the model, each tensor once */
    int repacked;              /* weights are copied into a kernel's layout (else they stay in the mapped file) */
    int64_t ctx;               /* tokens a sequence may hold */
    int n_seqs;                /* sequences that hold ctx tokens at once */
    int n_slots;               /* recurrent states: n_seqs and the snapshots beside them */
    int max_rows;              /* rows of a step */
    int max_out;               /* rows whose logits are wanted */
    double k_bytes, v_bytes;   /* a stored element of K and of V: 2 for fp16 */
};

enum q_plan_item { Q_PLAN_WEIGHTS, Q_PLAN_KV, Q_PLAN_STATES, Q_PLAN_SCRATCH, Q_PLAN_LOGITS, Q_PLAN_ITEMS };

struct q_plan {
    struct q_plan_line {
        const char *what;      /* "KV pages" */
        size_t bytes;
        char how[96];          /* "64 pages of 64 tokens in 2 layers" */
    } lines[Q_PLAN_ITEMS];     /* by enum q_plan_item */
    size_t total;
    int64_t n_pages;           /* KV pages for all sequences */
    size_t page_bytes;         /* one page of all attention layers */
    size_t slot_bytes;         /* one recurrent slot of all delta-net layers */
};

/* Defaults for one sequence of ctx tokens in fp16, steps of up to 512 rows. */
struct q_plan_options plan_defaults(size_t weight_bytes, int64_t ctx);
/* Sizes saturate at SIZE_MAX instead of wrapping. */
void plan_make(struct q_plan *p, const struct q_config *c, const struct q_plan_options *o);

#endif
