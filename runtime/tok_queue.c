#include "tok_queue.h"
#include <stdlib.h>
#include <string.h>

/* Places in lists are position + 1, so that zeroed memory is an empty list. */
struct tok_bucket {
    uint32_t head, tail;
    uint8_t listed; /* its rank is in q->ranks */
};

enum { NONE = 0 };
#define NOT_IN_LIST UINT32_MAX

struct tok_link {
    uint32_t rank; /* of the entry; TOK_NO_RANK: no entry */
    uint32_t prev, next;
};

/* ---- heap ---- */

enum { ARITY = 4 };

static int heap_push(struct tok_heap *h, uint32_t v)
{
    if (h->n == h->cap) {
        size_t cap = h->cap * 2 + 64;
        uint32_t *p = realloc(h->at, cap * sizeof *p);
        if (!p) return -1;
        h->at = p;
        h->cap = cap;
    }
    size_t i = h->n++;
    for (; i > 0 && h->at[(i - 1) / ARITY] > v; i = (i - 1) / ARITY) h->at[i] = h->at[(i - 1) / ARITY];
    h->at[i] = v;
    return 0;
}

static size_t least_child(const struct tok_heap *h, size_t i)
{
    size_t best = i * ARITY + 1, end = best + ARITY < h->n ? best + ARITY : h->n;
    for (size_t c = best + 1; c < end; c++)
        if (h->at[c] < h->at[best]) best = c;
    return best;
}

static void heap_pop(struct tok_heap *h)
{
    uint32_t v = h->at[--h->n];
    size_t i = 0, c;
    while ((c = least_child(h, i)) < h->n && h->at[c] < v) {
        h->at[i] = h->at[c];
        i = c;
    }
    h->at[i] = v;
}

/* ---- lists ---- */

/* In order of position. The search goes back from the tail, where (see tok_queue.h) it always ends at once. */
static void insert(struct tok_queue *q, struct tok_bucket *b, uint32_t place)
{
    uint32_t before = b->tail;
    while (before > place) before = q->link[before - 1].prev;
    uint32_t after = before ? q->link[before - 1].next : b->head;
    q->link[place - 1].prev = before;
    q->link[place - 1].next = after;
    if (before) q->link[before - 1].next = place;
    else b->head = place;
    if (after) q->link[after - 1].prev = place;
    else b->tail = place;
}

static void unlink_place(struct tok_queue *q, struct tok_bucket *b, uint32_t place)
{
    struct tok_link *l = q->link + (place - 1);
    if (l->prev) q->link[l->prev - 1].next = l->next;
    else b->head = l->next;
    if (l->next) q->link[l->next - 1].prev = l->prev;
    else b->tail = l->prev;
    l->prev = NOT_IN_LIST;
}

/* ---- queue ---- */

int tok_queue_reserve(struct tok_queue *q, size_t ranks, size_t positions)
{
    if (!q->bucket) q->bucket = calloc(ranks ? ranks : 1, sizeof *q->bucket);
    if (!q->bucket) return -1;
    if (q->positions < positions) {
        free(q->link);
        q->link = malloc(positions * sizeof *q->link);
        q->positions = q->link ? positions : 0;
        if (!q->positions) return -1;
    }
    for (size_t i = 0; i < positions; i++) q->link[i] = (struct tok_link){TOK_NO_RANK, NOT_IN_LIST, NONE};
    return 0;
}

void tok_queue_free(struct tok_queue *q)
{
    free(q->bucket);
    free(q->link);
    free(q->ranks.at);
    memset(q, 0, sizeof *q);
}

int tok_queue_push(struct tok_queue *q, uint32_t rank, uint32_t pos)
{
    struct tok_bucket *b = q->bucket + rank;
    q->link[pos].rank = rank;
    insert(q, b, pos + 1);
    if (b->listed) return 0;
    b->listed = 1;
    return heap_push(&q->ranks, rank);
}

void tok_queue_drop(struct tok_queue *q, uint32_t pos)
{
    struct tok_link *l = q->link + pos;
    if (l->prev != NOT_IN_LIST) unlink_place(q, q->bucket + l->rank, pos + 1);
    l->rank = TOK_NO_RANK;
}

/* The list of the lowest rank that has entries, in order. NULL: all are empty. */
static struct tok_bucket *first_bucket(struct tok_queue *q)
{
    while (q->ranks.n) {
        struct tok_bucket *b = q->bucket + q->ranks.at[0];
        if (b->head) return b;
        heap_pop(&q->ranks);
        b->listed = 0;
    }
    return NULL;
}

int tok_queue_pop(struct tok_queue *q, uint32_t *pos)
{
    struct tok_bucket *b = first_bucket(q);
    if (!b) return 0;
    *pos = b->head - 1;
    tok_queue_drop(q, *pos);
    return 1;
}
