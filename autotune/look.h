/* What a model's problems are answered with today, for the verbs that tell of it (plan, explain, verify, list): looked up as an engine
 * does, down the same layers, but nothing is built, measured or written.
 *
 * A weight's layout is the recorded one, else the card's default. A tune races layouts first: where it chooses another one, the problems
 * that read such weights are others than those shown here. */
#ifndef Q_LOOK_H
#define Q_LOOK_H

#include "options.h"
#include "target.h"

struct looked {
    struct q_problem problem;
    char generator[65];
    struct record record;      /* the first that is admitted; origin "": there is none, and default params would be built */
};

struct look {
    struct looked *v;          /* owned: [n], problems of an op beside one another, layouts first */
    int n;
};

/* join: one problem for all buckets of an op and shape, as an effort without buckets tunes them. */
int look_open(struct look *l, const struct target *t, struct gen *g, struct store *s, int join, struct q_err *e);
/* The model's problems where the options name one (the target's model is opened), else what is recorded. Q_EMISS: nothing is. */
int look_of_options(struct look *l, struct target *t, struct gen *g, struct store *s, const struct options *o, struct q_err *e);
void look_close(struct look *l);
/* The key that v's record has. */
struct store_key look_key(const struct target *t, const struct looked *v);
/* Whether a tune chooses for the op: what brings weights to a card runs once, when a model is loaded. */
int look_is_tuned(const char *op);
/* How many of the problems that are of `op` (NULL: any). */
int look_count(const struct look *l, const char *op);
/* Q_EINPUT with the ops that there are, when `op` is not NULL and none of the problems is of it. */
int look_has_op(const struct look *l, const char *op, struct q_err *e);

#endif
