/* Sequences: which pages and which state slot are whose. Internal to the engine; engine.h is the public page.
 *
 * Invariant: a sequence of length n holds pages 0 .. ceil(n / KV_PAGE) - 1, and its slot holds the state after token n - 1 (for n = 0 the
 * slot's content does not matter: kernels start from zeros). A snapshot is the same, frozen; nobody writes to its slot or its pages.
 */
#ifndef Q_SEQ_H
#define Q_SEQ_H

#include "engine.h"
#include "kv.h"

/* What sequences of one engine live on. */
struct q_memory {
    struct q_kv *kv;              /* borrowed */
    struct q_states *states;      /* borrowed */
    int ctx;                      /* most tokens of a sequence */
    int snaps_left;
};

struct q_seq {
    struct q_memory *memory;      /* borrowed */
    int length, slot;
    int n_pages;
    int *page;                    /* owned: [pages of a full context] */
    int in_step;                  /* index among the step being built, -1 */
};

struct q_snap {
    struct q_memory *memory;
    int length, slot;
    int n_pages;
    int *page;                    /* owned: [n_pages] */
};

int seq_open(struct q_memory *m, struct q_seq **s, struct q_err *e);
static inline int pages_for(int tokens) { return (tokens + KV_PAGE - 1) / KV_PAGE; }

/* Holds room for n more tokens: how many pages must be taken anew (a shared last page counts as one). */
int seq_pages_needed(const struct q_seq *s, int n);
/* Takes them. Callers have checked that they exist. */
int seq_grow(struct q_seq *s, int n, struct q_err *e);
/* A snapshot that will hold the first `length` tokens of s; its slot is to be filled by the caller. */
int snap_reserve(struct q_seq *s, int length, struct q_snap **snap, struct q_err *e);
/* snap_bytes.c: what q_snap_new and q_snap_bytes_of do, without an engine. */
int snap_new(struct q_memory *m, const struct q_snap *base, int from, int length, struct q_snap **out, struct q_err *e);
size_t snap_bytes(const struct q_memory *m, int from, int length);

#endif
