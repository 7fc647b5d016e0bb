/* Byte-pair merging: of all neighbouring pairs that are a merge, the one of lowest rank joins first, the leftmost of equals;
 * until no pair is one. Two ways give the same ids: scanning a small array for the minimum suits the usual pre-token of a
 * few bytes; a heap over a linked list keeps a megabyte in one pre-token at n log n. */
#include "tok_impl.h"
#include <stdlib.h>
#include <string.h>

/* ---- the table of merges ---- */

static uint32_t pair_slot(const struct tok_merges *m, uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(h >> 32) & m->mask;
}

static const struct tok_merge *find_merge(const struct tok_merges *m, uint32_t left, uint32_t right)
{
    uint32_t i = pair_slot(m, left, right);
    for (;; i = (i + 1) & m->mask) {
        const struct tok_merge *s = m->slot + i;
        if (s->rank == TOK_NO_MERGE || (s->left == left && s->right == right)) return s;
    }
}

int tok_merges_init(struct tok_merges *m, size_t n, struct q_err *e)
{
    size_t slots = 16;
    while (slots < n + n / 2) slots *= 2;
    m->slot = malloc(slots * sizeof *m->slot);
    if (!m->slot) return q_fail(e, Q_EMEM, "out of memory for a table of %zu merges", n);
    m->mask = (uint32_t)(slots - 1);
    for (size_t i = 0; i < slots; i++) m->slot[i].rank = TOK_NO_MERGE;
    return Q_OK;
}

uint32_t tok_merges_add(struct tok_merges *m, struct tok_merge merge)
{
    struct tok_merge *s = (struct tok_merge *)find_merge(m, merge.left, merge.right);
    uint32_t earlier = s->rank;
    if (earlier == TOK_NO_MERGE) *s = merge;
    return earlier;
}

/* ---- few bytes: scan ---- */

enum { SMALL = 32 };

struct part {
    uint32_t id;           /* of this symbol */
    uint32_t rank, merged; /* of the pair with the next one; TOK_NO_MERGE */
};

static void pair_up(const struct tok_merges *m, struct part *p)
{
    const struct tok_merge *s = find_merge(m, p[0].id, p[1].id);
    p->rank = s->rank;
    p->merged = s->id;
}

static size_t lowest(const struct part *p, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; i++)
        if (p[i].rank < p[best].rank) best = i;
    return best;
}

static size_t run_small(const struct tokenizer *t, const unsigned char *s, size_t n, int32_t *ids)
{
    struct part p[SMALL];
    for (size_t i = 0; i < n; i++) p[i].id = (uint32_t)t->byte_id[s[i]];
    for (size_t i = 0; i + 1 < n; i++) pair_up(&t->merges, p + i);
    while (n > 1) {
        size_t i = lowest(p, n);
        if (p[i].rank == TOK_NO_MERGE) break;
        p[i].id = p[i].merged;
        memmove(p + i + 1, p + i + 2, (n - i - 2) * sizeof *p);
        n--;
        if (i + 1 < n) pair_up(&t->merges, p + i);
        if (i > 0) pair_up(&t->merges, p + i - 1);
    }
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)p[i].id;
    return n;
}

/* ---- many bytes: heap ---- */

/* Symbols are a doubly linked list in text order. `rank` is that of the pair (this, next); a heap entry whose rank differs
 * from its node's is stale and skipped, so that entries never have to be found and removed. */
struct bpe_node {
    uint32_t id, prev, next; /* END: no neighbour */
    uint32_t rank, merged;
};
#define END UINT32_MAX

struct heap {
    uint64_t *at; /* rank << 32 | position: the order of numbers is the order of merging */
    size_t n;
};

enum { ARITY = 4 };

static void sift_down(struct heap *h, size_t i, uint64_t v)
{
    for (;;) {
        size_t c = i * ARITY + 1, end = c + ARITY < h->n ? c + ARITY : h->n;
        if (c >= h->n) break;
        size_t best = c;
        for (c++; c < end; c++)
            if (h->at[c] < h->at[best]) best = c;
        if (h->at[best] >= v) break;
        h->at[i] = h->at[best];
        i = best;
    }
    h->at[i] = v;
}

static void heapify(struct heap *h)
{
    for (size_t i = h->n / ARITY + 1; i-- > 0;)
        if (i < h->n) sift_down(h, i, h->at[i]);
}

static void push(struct heap *h, uint64_t v)
{
    size_t i = h->n++;
    while (i > 0 && h->at[(i - 1) / ARITY] > v) {
        h->at[i] = h->at[(i - 1) / ARITY];
        i = (i - 1) / ARITY;
    }
    h->at[i] = v;
}

static uint64_t pop(struct heap *h)
{
    uint64_t top = h->at[0], last = h->at[--h->n];
    if (h->n) sift_down(h, 0, last);
    return top;
}

/* Room for n symbols. The heap starts with n - 1 entries at most; each merge takes one out and adds two at most. */
static int reserve(struct tok_bpe *w, size_t n)
{
    if (n <= w->cap) return 0;
    tok_bpe_free(w);
    w->node = malloc(n * sizeof *w->node);
    w->heap = malloc(2 * n * sizeof *w->heap);
    if (!w->node || !w->heap) return -1;
    w->cap = n;
    return 0;
}

void tok_bpe_free(struct tok_bpe *w)
{
    free(w->node);
    free(w->heap);
    memset(w, 0, sizeof *w);
}

/* Looks up the pair (i, next) anew. Returns its heap entry, or 0 where it is no merge. */
static int rank_pair(const struct tokenizer *t, struct bpe_node *node, uint32_t i, uint64_t *entry)
{
    node[i].rank = TOK_NO_MERGE;
    if (node[i].next == END) return 0;
    const struct tok_merge *m = find_merge(&t->merges, node[i].id, node[node[i].next].id);
    node[i].rank = m->rank;
    node[i].merged = m->id;
    *entry = (uint64_t)m->rank << 32 | i;
    return m->rank != TOK_NO_MERGE;
}

static void join(const struct tokenizer *t, struct bpe_node *node, struct heap *h, uint32_t i)
{
    uint32_t gone = node[i].next, next = node[gone].next;
    uint64_t entry;
    node[i].id = node[i].merged;
    node[i].next = next;
    node[gone].rank = TOK_NO_MERGE;
    if (next != END) node[next].prev = i;
    if (rank_pair(t, node, i, &entry)) push(h, entry);
    if (node[i].prev != END && rank_pair(t, node, node[i].prev, &entry)) push(h, entry);
}

static size_t run_large(const struct tokenizer *t, const unsigned char *s, size_t n, struct tok_bpe *w, int32_t *ids)
{
    if (reserve(w, n)) return 0;
    struct bpe_node *node = w->node;
    struct heap h = {w->heap, 0};
    uint64_t entry;
    for (size_t i = 0; i < n; i++) {
        node[i].id = (uint32_t)t->byte_id[s[i]];
        node[i].prev = i ? (uint32_t)i - 1 : END;
        node[i].next = i + 1 < n ? (uint32_t)i + 1 : END;
    }
    for (size_t i = 0; i < n; i++)
        if (rank_pair(t, node, (uint32_t)i, &entry)) h.at[h.n++] = entry;
    heapify(&h);
    while (h.n) {
        entry = pop(&h);
        uint32_t i = (uint32_t)entry;
        if (node[i].rank == entry >> 32) join(t, node, &h, i);
    }
    size_t k = 0;
    for (uint32_t i = 0; i != END; i = node[i].next) ids[k++] = (int32_t)node[i].id;
    return k;
}

size_t tok_bpe_run(const struct tokenizer *t, const char *s, size_t n, struct tok_bpe *work, int32_t *ids)
{
    const unsigned char *p = (const unsigned char *)s;
    return n <= SMALL ? run_small(t, p, n, ids) : run_large(t, p, n, work, ids);
}
