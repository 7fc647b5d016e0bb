/* Byte-pair merging: of all neighbouring pairs that are a merge, the one of lowest rank joins first, the leftmost of equals;
 * until no pair is one. Two ways give the same ids: scanning a small array for the minimum suits the usual pre-token of a
 * few bytes; a queue over a linked list keeps a megabyte in one pre-token as quick. */
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
    m->n = n;
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

/* ---- many bytes: queue ---- */

/* Symbols are a doubly linked list in text order, END where there is no neighbour. `merged` is what the pair (this, next)
 * becomes, where it is a merge; then, and only then, this symbol's position is in the queue. */
struct bpe_node {
    uint32_t id, prev, next, merged;
};
#define END UINT32_MAX

static int reserve(const struct tokenizer *t, struct tok_bpe *w, size_t n)
{
    if (n > w->cap) {
        free(w->node);
        w->node = malloc(n * sizeof *w->node);
        w->cap = w->node ? n : 0;
    }
    return w->cap ? tok_queue_reserve(&w->queue, t->merges.n, n) : -1;
}

void tok_bpe_free(struct tok_bpe *w)
{
    free(w->node);
    tok_queue_free(&w->queue);
    memset(w, 0, sizeof *w);
}

/* Puts the pair (i, next), which is not in the queue, there if it is a merge. */
static int queue_pair(const struct tokenizer *t, struct tok_bpe *w, uint32_t i)
{
    struct bpe_node *p = w->node + i;
    if (p->next == END) return 0;
    const struct tok_merge *m = find_merge(&t->merges, p->id, w->node[p->next].id);
    p->merged = m->id;
    return m->rank == TOK_NO_MERGE ? 0 : tok_queue_push(&w->queue, m->rank, i);
}

static int join(const struct tokenizer *t, struct tok_bpe *w, uint32_t i)
{
    struct bpe_node *p = w->node + i;
    uint32_t gone = p->next;
    tok_queue_drop(&w->queue, gone);
    p->id = p->merged;
    p->next = w->node[gone].next;
    if (p->next != END) w->node[p->next].prev = i;
    if (queue_pair(t, w, i)) return -1;
    if (p->prev == END) return 0;
    tok_queue_drop(&w->queue, p->prev);
    return queue_pair(t, w, p->prev);
}

static int start_list(const struct tokenizer *t, const unsigned char *s, size_t n, struct tok_bpe *w)
{
    for (size_t i = 0; i < n; i++) {
        w->node[i].id = (uint32_t)t->byte_id[s[i]];
        w->node[i].prev = i ? (uint32_t)i - 1 : END;
        w->node[i].next = i + 1 < n ? (uint32_t)i + 1 : END;
    }
    for (size_t i = 0; i < n; i++)
        if (queue_pair(t, w, (uint32_t)i)) return -1;
    return 0;
}

static size_t run_large(const struct tokenizer *t, const unsigned char *s, size_t n, struct tok_bpe *w, int32_t *ids)
{
    uint32_t i;
    if (reserve(t, w, n) || start_list(t, s, n, w)) return 0;
    while (tok_queue_pop(&w->queue, &i))
        if (join(t, w, i)) return 0;
    size_t k = 0;
    for (i = 0; i != END; i = w->node[i].next) ids[k++] = (int32_t)w->node[i].id;
    return k;
}

size_t tok_bpe_run(const struct tokenizer *t, const char *s, size_t n, struct tok_bpe *work, int32_t *ids)
{
    const unsigned char *p = (const unsigned char *)s;
    return n <= SMALL ? run_small(t, p, n, ids) : run_large(t, p, n, work, ids);
}
