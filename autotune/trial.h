/* Trials: a kernel run on a case of its op's ref.c, on a team, and held against the truth. Shared by the tuner's measuring child
 * (worker.c) and tests/ops. Nothing here times or chooses. */
#ifndef Q_TRIAL_H
#define Q_TRIAL_H

#include "runtime/team.h"
#include "templates/ref.h"

typedef void (*trial_fn)(const void *args, struct team *t);

enum { TRIAL_ARG_BYTES = 512 };

/* A case and the arguments that point into it. */
struct trial_case {
    struct ref_case *c;                          /* owned */
    _Alignas(16) unsigned char args[TRIAL_ARG_BYTES];
};

/* Fresh: outputs are NaN, canaries around every buffer. size->parts: most members a team may have that runs on it. */
int trial_make(struct trial_case *t, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size, unsigned long long seed,
               struct q_err *e);
/* The same in the arena's memory, to be timed. */
int trial_make_in(struct trial_case *t, struct ref_arena *arena, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size,
                  unsigned long long seed, struct q_err *e);
void trial_free(struct trial_case *t);
/* One call of the kernel by every member of the team. */
void trial_run(struct q_team *team, trial_fn fn, const void *args);
/* A case that many candidates are held against, one after the other, without being made anew. */
struct trial_truth {
    struct trial_case t;
    struct ref_case *begin, *want;               /* owned: the case before, and after the truth ran on it */
    unsigned long long begin_hash, want_hash;    /* of their outputs */
};

/* beside: a truth of the same op and shape, whose weights serve both and which is freed no sooner; NULL: weights of its own. */
int trial_truth_make(struct trial_truth *t, const struct trial_truth *beside, const struct op_ref *ref, const struct q_shape *s,
                     const struct ref_size *size, unsigned long long seed, struct q_err *e);
void trial_truth_free(struct trial_truth *t);
/* One call on the truth's own case, begun anew: canaries intact, inputs untouched, outputs within their tolerance of the truth for the kernel's
 * numerics class. *hash: over the bytes of its outputs. */
int trial_truth_check(struct trial_truth *t, struct q_team *team, trial_fn fn, const char *numerics, unsigned long long *hash, struct q_err *e);

#endif
