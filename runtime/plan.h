/* The memory that a run needs, from the shape alone: a pure function over the sizes that kv.c, scratch.c and step_table.c
 * state for themselves, so `quarry show` prints for a file that is not loaded what the engine takes when it opens.
 *
 * What grows with the context: KV pages, and page tables (4 bytes for 64 tokens of a sequence, with the scratch). Partial results of
 * attention are bounded (attn_work), and so are the ids that penalties count (the vocabulary's). */
#ifndef Q_PLAN_H
#define Q_PLAN_H

#include "config.h"
#include <stddef.h>
#include <stdint.h>

struct q_scratch_size;
struct q_step_size;

struct q_plan_options {
    size_t weight_bytes;       /* of the model, each tensor once */
    int ctx;                   /* tokens a sequence may hold */
    int n_seqs;                /* sequences */
    int64_t kv_tokens;         /* that they hold at once, at least ctx; 0: ctx each */
    int n_snaps;               /* snapshots of a sequence beside them */
    int max_rows;              /* rows of a step */
    int max_out;               /* rows whose logits are wanted */
    int parts;                 /* members of the team: threads on a CPU */
    const char *kv_k, *kv_v;   /* of kv_formats */
    int gpu;                   /* a card with memory of its own */
    int sparse;                /* prefill may be sparse */
};

enum q_plan_item { Q_PLAN_WEIGHTS, Q_PLAN_KV, Q_PLAN_STATES, Q_PLAN_CHECKPOINTS, Q_PLAN_SCRATCH, Q_PLAN_KERNELS, Q_PLAN_ITEMS };

struct q_plan {
    struct q_plan_line {
        const char *what;      /* "KV pages" */
        size_t bytes;
    } lines[Q_PLAN_ITEMS];     /* by enum q_plan_item */
    size_t total;
    int64_t n_pages;           /* KV pages for all sequences and snapshots */
    int64_t n_slots;           /* recurrent states */
    size_t page_bytes;         /* one page over all attention layers */
    size_t slot_bytes;         /* one state over all delta-net layers */
};

/* One sequence of ctx tokens in fp16, steps of up to 512 rows. */
struct q_plan_options plan_defaults(size_t weight_bytes, int ctx, int parts);
/* The engine's defaults: rows of a step where this much memory is free, snapshots beside so many sequences that are served. */
int plan_max_rows(int gpu, size_t available);
int plan_max_snaps(int n_seqs);
/* Bytes of a snapshot, with the KV pages that it may have for itself; snapshots that so many bytes hold. */
size_t plan_snap_bytes(const struct q_config *c, const char *kv_k, const char *kv_v);
int plan_snaps_of_bytes(const struct q_config *c, const char *kv_k, const char *kv_v, size_t bytes);
/* What the engine takes besides weights, KV and states. */
struct q_scratch_size plan_scratch(const struct q_plan_options *o);
struct q_step_size plan_step(const struct q_config *c, const struct q_plan_options *o);
/* Sizes saturate at SIZE_MAX instead of wrapping. */
void plan_make(struct q_plan *p, const struct q_config *c, const struct q_plan_options *o);

#endif
