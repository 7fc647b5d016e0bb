/* op_check: every op x odd shapes x a sample of legal candidates, built, run and held against ref.c. Shared by its four files. */
#ifndef OP_CHECK_H
#define OP_CHECK_H

#include "autotune/trial.h"
#include "trials.h"

enum { TEAMS = 2 };            /* of 1 and of 3 */

/* The truth of one trial, made once and shared by all candidates: random values, K and V in their formats and the like take longer than
 * most kernels. A candidate runs in a child, whose writes to the cases are its own; before each run it puts back what they began as. */
struct truth {
    const struct op_ref *ref;
    struct q_shape shape;
    const struct trial *trial;
    struct trial_case c[MOST_SIZES][TEAMS];     /* a team's buffers have room for its members */
    struct ref_case *begin[MOST_SIZES][TEAMS];
    struct ref_case *want[MOST_SIZES];
};
/* On error truth_free is due as well. */
int truth_make(struct truth *t, const struct op_ref *ref, const struct trial *trial, unsigned long long seed, struct q_err *e);
void truth_free(struct truth *t);

/* What became of one candidate. */
struct verdict {
    int failed, ran;
    char why[600];
    unsigned long long hash[MOST_SIZES];   /* of the outputs, for each size */
};

struct build_opts {
    const char *cache;         /* folder of objects, named by the hash of unit and command */
    int sanitize;
    const char *simt_dirs[8];  /* where a CUDA candidate's headers lie, NULL behind; and the text of the prelude in them */
    const char *simt_prelude;
};
/* Path of the shared object for a kernel, compiled unless the cache has it. */
int kernel_build(char path[4096], const struct gen_kernel *k, const struct build_opts *o, struct q_err *e);
/* Loads the object and runs it on every size with teams of 1 and 3, twice each. */
void kernel_check(struct verdict *v, const char *object, const struct gen_kernel *k, const struct truth *t);
/* The same for a CUDA candidate: its text compiled for this CPU by tests/simt, and run there. */
int kernel_build_simt(char path[4096], const struct gen_kernel *k, const struct build_opts *o, struct q_err *e);
void kernel_check_simt(struct verdict *v, const char *object, const struct gen_kernel *k, const struct truth *t);

#endif
