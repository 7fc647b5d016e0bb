/* The order of merging in one long pre-token: which pair comes next, lowest rank first, leftmost of equals.
 *
 * Entries are (rank, position), at most one a position; a rank belongs to one pair of tokens. A long text has few different
 * ranks, so that a list for each, and a heap of the ranks that have entries, beat a heap of everything: pushing, dropping
 * and popping are constant time but for the heap of ranks.
 *
 * Why lists need no sorting, whatever the order of the merges. Which merges make a token x out of its bytes depends on those
 * bytes alone (a merge across its ends would have prevented it); so does the highest rank among them, M(x). So every x in
 * the text is made while the highest rank taken so far is M(x), in one sweep from left to right; the lower ranks that a step
 * of the sweep sets free are taken at once, around that step. A pair (x, y) is pushed when the later of x and y is made:
 * always in the same sweep, from left to right. And nothing is pushed to a list while it is being taken: what is made then
 * is as long as xy at least, and a new pair holds such a token. Pushing nevertheless searches for its place, so that
 * only speed hangs on this argument.
 */
#ifndef Q_TOK_QUEUE_H
#define Q_TOK_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#define TOK_NO_RANK UINT32_MAX

struct tok_heap {
    uint32_t *at; /* owned; a 4-ary heap, least first */
    size_t n, cap;
};

struct tok_queue {
    struct tok_bucket *bucket; /* owned; [ranks] */
    struct tok_link *link;     /* owned; [positions] */
    size_t positions;
    struct tok_heap ranks; /* ranks whose list may have entries */
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
