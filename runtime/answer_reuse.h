/* A sequence that remembers its tokens, and snapshots that remember theirs: what has been read before is not read again.
 *
 * Invariant: ids[0, n) are the tokens that the sequence holds; the ids of a kept place are those its snapshot was taken after.
 * A delta-net state cannot be rewound, so a prompt that leaves the sequence's tokens goes back to a kept place, or to nothing.
 * Kept places are dropped, the longest unused first, when the engine has no snapshot or KV page left for what has to be read now.
 */
#ifndef Q_ANSWER_REUSE_H
#define Q_ANSWER_REUSE_H

#include "engine.h"

struct q_place {
    struct q_place *next;
    struct q_snap *snap; /* owned */
    int32_t *ids;        /* owned: [n] */
    int n;
};

struct q_timeline {
    struct q_engine *engine; /* borrowed */
    struct q_seq *seq;       /* owned */
    int32_t *ids;            /* owned: [ctx] */
    int n;
    struct q_row *rows;      /* owned: [max_rows] */
    struct q_place *places;  /* owned: last used first */
};

int timeline_open(struct q_timeline *t, struct q_engine *en, struct q_err *e);
void timeline_close(struct q_timeline *t);
/* Makes the sequence hold the longest known beginning of ids[0, n), at most n - 1 tokens: t->n of them. */
int timeline_reach(struct q_timeline *t, const int32_t *ids, int n, struct q_err *e);
/* One step: appends ids[0, n), n at most the engine's rows; the last row wants `want`. After the token that makes the sequence
 * `keep` long its state is kept if there is room for a snapshot; keep <= 0: nowhere. After an error the timeline is usable. */
int timeline_feed(struct q_timeline *t, const int32_t *ids, int n, int keep, unsigned want, const struct q_sampling *sampling,
                  struct q_result *r, struct q_err *e);

/* How much of a prompt to keep (>= 0): up to behind its last finished turn, for the next prompt of this conversation is the same up to
 * there, while the template may write what follows in another way (it drops earlier thinking). A prompt without turns may come
 * back whole, and its last token is read anew. */
int place_to_keep(const struct tokenizer *t, const int32_t *ids, int n);

#endif
