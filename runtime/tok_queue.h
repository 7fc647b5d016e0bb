/* The order of merging in one long pre-token: which pair comes next, lowest rank first, leftmost of equals.
 *
 * Entries are (rank, position), at most one a position. A long text has few different ranks, and its entries arrive in
 * runs of ascending position, so that a list for each rank beats a heap of everything: pushing, dropping and popping are
 * then constant time, and a list is sorted once, when its rank's turn comes. Two cases are left to small heaps: the ranks
 * that have entries, and entries that arrive behind the place where their list is being taken (rare).
 */
#ifndef Q_TOK_QUEUE_H
#define Q_TOK_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#define TOK_NO_RANK UINT32_MAX

struct tok_heap {
    uint64_t *at; /* owned; a 4-ary heap, least first */
    size_t n, cap;
};

struct tok_queue {
    struct tok_bucket *bucket; /* owned; [ranks] */
    struct tok_link *link;     /* owned; [positions] */
    uint32_t *sort;            /* owned; [positions], scratch */
    size_t positions;
    struct tok_heap ranks; /* ranks whose list may have entries */
    struct tok_heap late;  /* rank << 32 | position; an entry that was dropped stays, and is known by its link's rank */
};

/* All return 0, or -1 if memory ran out. A zeroed queue is empty; `reserve` before the first push; popped dry it can be
 * reserved and used again for another text. */
int tok_queue_reserve(struct tok_queue *q, size_t ranks, size_t positions);
void tok_queue_free(struct tok_queue *q);
int tok_queue_push(struct tok_queue *q, uint32_t rank, uint32_t pos); /* pos has no entry */
void tok_queue_drop(struct tok_queue *q, uint32_t pos);               /* the entry of pos, if it has one */
/* Takes the next entry out. Returns 1 with its position, 0 if there is none. */
int tok_queue_pop(struct tok_queue *q, uint32_t *pos);

#endif
