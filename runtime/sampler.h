/* Sampling parameters of a request and the history its penalties look at. The drawing itself is an op on the device (templates/sample);
 * this keeps what belongs to the row. Defaults come from the file's general.sampling.* where it has them. */
#ifndef Q_SAMPLER_H
#define Q_SAMPLER_H

#include "err.h"
#include <stdint.h>

struct q_sampling_params {
    float temp, top_p, min_p;            /* temp <= 0: greedy */
    int top_k;                           /* <= 0: all */
    float repeat, frequency, presence;   /* 1, 0, 0: off */
    int last_n;                          /* tokens that count for penalties; < 0: all, 0: none */
    uint64_t seed;
};
/* Greedy, no penalties, 64 tokens of history. */
struct q_sampling_params q_sampling_default(void);
/* Ranges: temp >= 0, 0 < top_p <= 1, 0 <= min_p <= 1, repeat > 0, all finite. */
int q_sampling_check(const struct q_sampling_params *p, struct q_err *e);

/* What a row carries. Borrowed by the step until it was submitted. */
struct q_sampling {
    struct q_sampling_params p;
    int64_t position;                    /* of the token to be drawn: keys the random number with the seed */
    const int32_t *history;              /* [n_history][2]: id, count; unordered */
    int n_history;
    const int32_t *bias_id;
    const float *bias;
    int n_bias;
    const uint32_t *mask;                /* 1 bit an id, set: allowed; NULL: all */
};

/* The last tokens of a sequence, counted by id. */
struct q_history;
int q_history_open(struct q_history **h, int last_n, struct q_err *e);
void q_history_close(struct q_history *h);
int q_history_push(struct q_history *h, int32_t id, struct q_err *e);
/* Points `s` at the counts; valid until the next push. */
void q_history_fill(const struct q_history *h, struct q_sampling *s);

#endif
