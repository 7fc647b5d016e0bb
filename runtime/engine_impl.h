/* What engine.c (opening, closing, facts), engine_plan.c (its memory) and engine_step.c (steps and their results) share: the engine itself. */
#ifndef Q_ENGINE_IMPL_H
#define Q_ENGINE_IMPL_H

#include "engine.h"
#include "forward.h"
#include "plan.h"
#include "seq.h"
#include "step_table.h"

struct q_engine {
    struct q_engine_opts o;          /* with defaults filled in */
    int ctx_given, seqs_given, snaps_given, out_given;   /* the caller chose o.ctx, ... */
    struct q_model *model;
    struct tokenizer *tokenizer;
    struct q_device *device;
    struct kset *kernels;
    struct q_weights weights;
    struct q_kv kv;
    struct q_states states;
    struct q_scratch scratch;
    struct q_step_table table;
    struct q_forward forward;
    struct q_memory memory;
    struct q_plan plan;              /* of what is taken: engine_check_plan */
    size_t free_before;              /* bytes, when the plan was made */
    char numerics_id[64], state_id[Q_STATE_ID];

    struct q_trace *trace;           /* owned; NULL: steps are not traced */

    q_ticket ticket;                 /* of the last submitted step */
    int in_flight;
    /* results on the host, owned: [max_out] and wider */
    float *logits, *logprob, *top_value, *lse;
    float *hidden;                   /* one row */
    char *sampled;                   /* ids and logprobs as they lie on the device */
    int *id, *top_id;
};

void engine_say(const struct q_engine *en, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- engine_plan.c ---- */
/* What goes with the number of sequences, where the caller did not choose. */
void engine_count_slots(struct q_engine *en);
/* What is planned with the options as they are. */
struct q_plan_options engine_plan_options(const struct q_engine *en);
/* Makes what was not chosen fit (o.fit), prints the plan, and refuses what the machine cannot hold before anything large is taken. */
int engine_check_plan(struct q_engine *en, struct q_err *e);

/* engine_sparse.c: fills the option's defaults, refuses what cannot be; says what is on. */
int engine_check_sparse(struct q_engine *en, struct q_err *e);
void engine_tell_sparse(const struct q_engine *en);

#endif
