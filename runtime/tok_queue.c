#include "tok_queue.h"
#include <stdlib.h>
#include <string.h>

/* Places in lists are position + 1, so that zeroed memory is an empty list. */
struct tok_bucket {
    uint32_t head, tail;
    uint8_t listed;   /* its rank is in q->ranks */
    uint8_t unsorted; /* some entry is left of the one before it */
    uint8_t open;     /* it was sorted and is being taken: it must stay in order */
};

enum { NONE = 0 };
#define NOT_IN_LIST UINT32_MAX

struct tok_link {
    uint32_t rank; /* of the entry; TOK_NO_RANK: no entry */
    uint32_t prev, next;
};

/* ---- heap ---- */

enum { ARITY = 4 };

static int heap_push(struct tok_heap *h, uint64_t v)
{
    if (h->n == h->cap) {
        size_t cap = h->cap * 2 + 64;
        uint64_t *p = realloc(h->at, cap * sizeof *p);
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
    uint64_t v = h->at[--h->n];
    size_t i = 0, c;
    while ((c = least_child(h, i)) < h->n && h->at[c] < v) {
        h->at[i] = h->at[c];
        i = c;
    }
    h->at[i] = v;
}

/* ---- lists ---- */

static void append(struct tok_queue *q, struct tok_bucket *b, uint32_t place)
{
    q->link[place - 1].prev = b->tail;
    q->link[place - 1].next = NONE;
    if (b->tail) q->link[b->tail - 1].next = place;
    else b->head = place;
    b->tail = place;
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

static int by_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sort_bucket(struct tok_queue *q, struct tok_bucket *b)
{
    size_t n = 0;
    for (uint32_t p = b->head; p; p = q->link[p - 1].next) q->sort[n++] = p;
    qsort(q->sort, n, sizeof *q->sort, by_place);
    b->head = b->tail = NONE;
    for (size_t i = 0; i < n; i++) append(q, b, q->sort[i]);
    b->unsorted = 0;
}

/* ---- queue ---- */

int tok_queue_reserve(struct tok_queue *q, size_t ranks, size_t positions)
{
    if (!q->bucket) q->bucket = calloc(ranks ? ranks : 1, sizeof *q->bucket);
    if (!q->bucket) return -1;
    if (q->positions < positions) {
        free(q->link);
        free(q->sort);
        q->link = malloc(positions * sizeof *q->link);
        q->sort = malloc(positions * sizeof *q->sort);
        q->positions = q->link && q->sort ? positions : 0;
        if (!q->positions) return -1;
    }
    for (size_t i = 0; i < positions; i++) q->link[i] = (struct tok_link){TOK_NO_RANK, NOT_IN_LIST, NONE};
    return 0;
}

void tok_queue_free(struct tok_queue *q)
{
    free(q->bucket);
    free(q->link);
    free(q->sort);
    free(q->ranks.at);
    free(q->late.at);
    memset(q, 0, sizeof *q);
}

int tok_queue_push(struct tok_queue *q, uint32_t rank, uint32_t pos)
{
    struct tok_bucket *b = q->bucket + rank;
    uint32_t place = pos + 1;
    q->link[pos].rank = rank;
    if (b->open && place < b->tail) return heap_push(&q->late, (uint64_t)rank << 32 | pos);
    if (place < b->tail) b->unsorted = 1;
    append(q, b, place);
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

/* The first list with entries, in order; its rank in *rank. NULL: all are empty. */
static struct tok_bucket *first_bucket(struct tok_queue *q, uint32_t *rank)
{
    while (q->ranks.n) {
        *rank = (uint32_t)q->ranks.at[0];
        struct tok_bucket *b = q->bucket + *rank;
        if (b->head) {
            if (b->unsorted) sort_bucket(q, b);
            b->open = 1;
            return b;
        }
        heap_pop(&q->ranks);
        b->listed = b->open = b->unsorted = 0;
    }
    return NULL;
}

static int is_stale(const struct tok_queue *q, uint64_t entry)
{
    return q->link[(uint32_t)entry].rank != entry >> 32;
}

int tok_queue_pop(struct tok_queue *q, uint32_t *pos)
{
    uint32_t rank;
    struct tok_bucket *b = first_bucket(q, &rank);
    while (q->late.n && is_stale(q, q->late.at[0])) heap_pop(&q->late);
    if (!b && !q->late.n) return 0;
    if (q->late.n && (!b || q->late.at[0] < ((uint64_t)rank << 32 | (b->head - 1)))) {
        *pos = (uint32_t)q->late.at[0];
        heap_pop(&q->late);
    } else {
        *pos = b->head - 1;
    }
    tok_queue_drop(q, *pos);
    return 1;
}
