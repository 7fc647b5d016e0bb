/* Which layout a weight gets: products with few and with many rows under each, timed turn by turn, since one layout serves both. */
#ifndef Q_LAYOUTS_H
#define Q_LAYOUTS_H

#include "contest.h"

enum { LAYOUTS = 4 };

struct layouts {
    char name[LAYOUTS][24];   /* in: name[0] is the default */
    int n;
    double us[LAYOUTS];       /* out: of a request that reads 512 tokens in one step and answers 128 one by one; 0: dropped, 1.3 times as slow */
    int best;                 /* 0 unless another is certainly better by a step (RACE_STEP); of those the first that none is a step better than */
    double gain;
    double saved[LAYOUTS];    /* of the default's time, each; less than none where it takes longer */
    double noise[LAYOUTS];    /* of that: its standard error */
};

/* type, n, k: of the weight. is_head: it meets wanted rows alone, which are few, so only matvec counts. Each layout is represented by the best of
 * env->effort->layout candidates of matvec and of matmul. Errors as contest_run's. */
int layouts_race(const struct contest_env *env, const char *type, long n, long k, int is_head, struct layouts *l, struct q_err *e);

#endif
