/* What is tuned for: a model's shape on a card, under one numerics profile; from the command line's words to a list of problems. */
#ifndef Q_TARGET_H
#define Q_TARGET_H

#include "gen/gen.h"
#include "runtime/kset.h"
#include "runtime/model.h"
#include "runtime/record.h"
#include "runtime/store.h"

struct target {
    struct q_card card;
    enum q_numerics numerics;
    const char *kv_k, *kv_v;
    int sparse;                  /* with what sparse prefill takes */
    struct q_model *model;       /* owned */
    int shape_only;              /* the model has no weights: of a preset only sizes and formats are made */
};

/* model: a GGUF file, or preset: a shape by name with weights of `type`. */
int target_open(struct target *t, const char *model, const char *preset, const char *type, struct q_err *e);
void target_close(struct target *t);

/* The key that a problem's record has; generator[65] is filled with the op's hash, which the key borrows. */
int target_key(const struct target *t, struct gen *g, const struct q_problem *p, char generator[65], struct store_key *k, struct q_err *e);
/* The text of one candidate; params NULL: the card's default. */
int target_emit(const struct target *t, struct gen *g, const struct q_problem *p, const char *params, struct gen_kernel *gk, struct q_err *e);
/* Whether the target's numerics admit a class: strict takes the canonical one alone. */
int target_admits(const struct target *t, const char *numerics);
/* A record of that candidate, its costs included, without an object and an origin. */
void target_record(struct record *r, struct gen *g, const struct store_key *k, const struct q_problem *p, const struct gen_kernel *gk);

/* Memory that calls must walk to find nothing in a cache: three times the last one, or the model itself where it is smaller. */
long target_cold_bytes(const struct target *t);

#endif
