/* Which angles positions turn by: inverse frequencies, and how far positions go.
 *
 * YaRN (arXiv 2309.00071) reads contexts of `factor` times the trained length: pairs that turn more than beta_fast times within it keep their
 * frequency, those that turn less than beta_slow times turn `factor` times slower, pairs between them are mixed along a ramp over their
 * indexes (with the ends rounded outwards, as in the code that was published with the paper), and cos and sin are multiplied by
 * `attention`, 0.1 ln(factor) + 1 unless the file says otherwise. All of it is in the numbers that the op rope_table reads: kernels
 * know nothing of it. A model that was not asked to goes no further than it was trained for.
 */
#ifndef Q_ROPE_H
#define Q_ROPE_H

#include "config.h"

enum { ROPE_MOST = (1 << 24) - 1 };   /* tokens of a context: positions that rope_table takes */

/* Asked for on the command line. */
enum q_rope_scaling {
    Q_ROPE_AS_FILE, Q_ROPE_NONE, Q_ROPE_YARN,
    Q_ROPE_TO_THE_END     /* bench: YaRN where a context is too long for what a test adds to a depth of `original` tokens, but not for these */
};

struct q_rope_ask {
    enum q_rope_scaling scaling;
    float factor;                  /* 0: the file's, else what the context needs */
    int original;                  /* trained tokens; 0: the file's, else n_ctx_train */
};

/* Sets c->yarn for a context of `ctx` tokens (0: not chosen yet). Errors name `where`. */
int rope_choose(struct q_config *c, const struct q_rope_ask *ask, int ctx, const char *where, struct q_err *e);
/* The tokens that positions are good for: what the model was trained for, times the factor of YaRN. */
int rope_limit(const struct q_config *c);
/* Q_ELIMIT with both numbers when ctx is beyond that. */
int rope_check(const struct q_config *c, int ctx, const char *where, struct q_err *e);

/* [rope_dims / 2] inverse frequencies, at most 1. */
void rope_frequencies(const struct q_config *c, float *freq);
/* What cos and sin are multiplied by. */
float rope_attention(const struct q_config *c);

#endif
