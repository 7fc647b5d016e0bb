#define _GNU_SOURCE
#include "rope.h"
#include <math.h>

/* ---- what is asked for ---- */

static int use_none(struct q_config *c)
{
    /* the file's length is of the stretched model */
    if (c->yarn.factor > 1 && c->yarn.original < c->n_ctx_train) c->n_ctx_train = c->yarn.original;
    c->yarn = (struct q_yarn){0};
    return Q_OK;
}

static int use_yarn(struct q_config *c, const struct q_rope_ask *ask, int ctx, const char *where, struct q_err *e)
{
    struct q_yarn *y = &c->yarn;
    int in_file = y->factor > 1;
    if (!in_file) *y = (struct q_yarn){.original = c->n_ctx_train, .beta_fast = 32, .beta_slow = 1};
    if (ask->original) y->original = ask->original;
    if (ask->factor > 0) y->factor = ask->factor;
    else if (!in_file && ctx) y->factor = ctx > y->original ? (float)ctx / (float)y->original : 1;
    else if (!in_file)
        return q_fail(e, Q_EINPUT, "%s was trained for %d tokens: --rope-scaling yarn needs -c N beyond that, or --yarn-factor", where, y->original);
    if (y->factor <= 1) *y = (struct q_yarn){0};
    return Q_OK;
}

int rope_choose(struct q_config *c, const struct q_rope_ask *ask, int ctx, const char *where, struct q_err *e)
{
    switch (ask->scaling) {
    case Q_ROPE_NONE: return use_none(c);
    case Q_ROPE_YARN: return use_yarn(c, ask, ctx, where, e);
    case Q_ROPE_TO_THE_END:
        if (ctx > rope_limit(c) && ask->original <= rope_limit(c)) return use_yarn(c, &(struct q_rope_ask){.scaling = Q_ROPE_YARN}, ctx, where, e);
        return Q_OK;
    default: return Q_OK;
    }
}

/* A factor that was computed from a context gives that context back. */
static int stretched(const struct q_yarn *y)
{
    double most = rint((double)y->factor * y->original);
    return most < ROPE_MOST ? (int)most : ROPE_MOST;
}

int rope_limit(const struct q_config *c)
{
    int most = c->yarn.factor > 1 ? stretched(&c->yarn) : 0;
    if (most < c->n_ctx_train) most = c->n_ctx_train;
    return most < ROPE_MOST ? most : ROPE_MOST;
}

int rope_check(const struct q_config *c, int ctx, const char *where, struct q_err *e)
{
    int most = rope_limit(c);
    if (ctx > ROPE_MOST) return q_fail(e, Q_ELIMIT, "a context of %d is asked for; positions go to %d, whatever the model", ctx, ROPE_MOST);
    if (ctx <= most) return Q_OK;
    if (c->yarn.factor > 1)
        return q_fail(e, Q_ELIMIT, "a context of %d is asked for; %s goes to %d, its %d tokens times YaRN's factor of %g", ctx, where, most,
                      c->yarn.original, (double)c->yarn.factor);
    return q_fail(e, Q_ELIMIT, "a context of %d is asked for; %s was trained for %d (--rope-scaling yarn goes beyond that)", ctx, where, most);
}

/* ---- angles ---- */

static double inverse(const struct q_config *c, int pair) { return 1.0 / pow((double)c->rope_base, 2.0 * pair / c->rope_dims); }

/* The pair, as a real number, that turns `turns` times within the original context. */
static double pair_of_turns(const struct q_config *c, double turns)
{
    return c->rope_dims * log(c->yarn.original / (turns * 2 * M_PI)) / (2 * log((double)c->rope_base));
}

/* How much of its own frequency a pair keeps: 1 fast, 0 slow. */
static double kept(const struct q_config *c, int pair)
{
    double low = fmax(floor(pair_of_turns(c, (double)c->yarn.beta_fast)), 0);
    double high = fmin(ceil(pair_of_turns(c, (double)c->yarn.beta_slow)), c->rope_dims - 1);
    double along = (pair - low) / (high > low ? high - low : 0.001);
    return 1 - fmin(fmax(along, 0), 1);
}

void rope_frequencies(const struct q_config *c, float *freq)
{
    for (int i = 0; i < c->rope_dims / 2; i++) {
        double own = inverse(c, i), part = c->yarn.factor > 1 ? kept(c, i) : 1;
        freq[i] = (float)(part * own + (1 - part) * own / (part < 1 ? (double)c->yarn.factor : 1));
    }
}

float rope_attention(const struct q_config *c)
{
    if (!(c->yarn.factor > 1)) return 1;
    double own = 0.1 * log((double)c->yarn.factor) + 1;
    return (float)(c->yarn.attention > 0 ? own * (double)c->yarn.attention : own);
}
