#define _GNU_SOURCE /* qsort_r */
#include "constrain_tree.h"
#include "constrain_text.h"
#include <stdlib.h>
#include <string.h>

/* In Qwen's vocabulary half, a third, a seventh and a hundredth of the tokens. */
const int tree_most[TREES] = {6, 10, 20, TREE_MAX_DEPTH};

void trees_free(struct trees *trees)
{
    for (int i = 0; i < TREES; i++) {
        free(trees->part[i].node);
        free(trees->rest[i].node);
        free(trees->plain[i].id);
        free(trees->plain[i].bits);
    }
    free(trees->same);
    free(trees->ends);
    *trees = (struct trees){0};
}

static int is_text(const struct tokenizer *t, int id)
{
    int type = tok_type(t, id);
    size_t n = tok_piece(t, id).n;
    return (type == TOK_NORMAL || type == TOK_USER || type == TOK_BYTE) && !tok_is_end(t, id) && n > 0 && n <= TREE_MAX_DEPTH;
}

static int by_bytes(const void *a, const void *b, void *arg)
{
    int x = *(const int *)a, y = *(const int *)b;
    struct tok_str s = tok_piece(arg, x), r = tok_piece(arg, y);
    int c = memcmp(s.at, r.at, s.n < r.n ? s.n : r.n);
    return c ? c : s.n != r.n ? (s.n < r.n ? -1 : 1) : x - y;
}

struct maker {
    struct tree *tree;
    int *same;
    int path[TREE_MAX_DEPTH + 1]; /* node of each depth on the way to the last token */
    int depth;
};

static void leave(struct maker *m, int depth)
{
    for (; m->depth > depth; m->depth--) m->tree->node[m->path[m->depth]].end = m->tree->n;
}

static void add(struct maker *m, struct tok_str s, int common, int id)
{
    struct tree *tree = m->tree;
    leave(m, common);
    while (m->depth < (int)s.n) {
        unsigned char byte = (unsigned char)s.at[m->depth++];
        tree->node[tree->n] = (struct tree_node){0, -1, byte, (unsigned char)m->depth};
        m->path[m->depth] = tree->n++;
    }
    int *token = &tree->node[m->path[m->depth]].token;
    m->same[id] = *token;
    *token = id;
}

static int common_bytes(struct tok_str a, struct tok_str b)
{
    size_t n = a.n < b.n ? a.n : b.n, i = 0;
    while (i < n && a.at[i] == b.at[i]) i++;
    return (int)i;
}

static int fill(struct tree *tree, int *same, const struct tokenizer *t, int *ids, int n)
{
    size_t nodes = 1;
    qsort_r(ids, (size_t)n, sizeof *ids, by_bytes, (void *)t);
    for (int i = 0; i < n; i++) {
        struct tok_str s = tok_piece(t, ids[i]);
        nodes += s.n - (size_t)(i ? common_bytes(tok_piece(t, ids[i - 1]), s) : 0);
    }
    tree->node = malloc(nodes * sizeof *tree->node);
    if (!tree->node || nodes > INT32_MAX) return -1;
    struct maker m = {.tree = tree, .same = same};
    tree->node[tree->n++] = (struct tree_node){.token = -1};
    for (int i = 0; i < n; i++) {
        struct tok_str s = tok_piece(t, ids[i]);
        add(&m, s, i ? common_bytes(tok_piece(t, ids[i - 1]), s) : 0, ids[i]);
    }
    leave(&m, 0);
    tree->node[0].end = tree->n;
    return 0;
}

/* The text tokens of one tree. */
static int list(const struct tokenizer *t, int part, int *ids)
{
    int n = 0, least = part ? tree_most[part - 1] + 1 : 1;
    for (int id = 0; id < tok_count(t); id++) {
        int bytes = is_text(t, id) ? (int)tok_piece(t, id).n : 0;
        if (bytes >= least && bytes <= tree_most[part]) ids[n++] = id;
    }
    return n;
}

/* Takes the plain tokens out of the n ids, ordered by their counts of characters; how many are left, -1: no memory. */
static int take_plain(struct plain_tokens *p, const struct tokenizer *t, int *ids, int n)
{
    int left = 0, of[TREE_MAX_DEPTH + 1] = {0}, *list = malloc(sizeof *list * (size_t)(n + 1) * 2), *count = list + n + 1;
    if (!list) return -1;
    for (int i = 0; i < n; i++) {
        struct tok_str s = tok_piece(t, ids[i]);
        count[i] = text_characters(s.at, s.n);
        of[count[i]]++;
    }
    for (int c = 1; c <= TREE_MAX_DEPTH; c++) {
        p->upto[c] = p->upto[c - 1] + of[c];
        if (of[c]) p->most = c;
        of[c] = p->upto[c - 1];
    }
    for (int i = 0; i < n; i++) {
        if (count[i]) list[of[count[i]]++] = ids[i];
        else ids[left++] = ids[i];
    }
    p->id = list;
    return left;
}

static int mark_plain(struct plain_tokens *p, int n_words)
{
    p->bits = calloc((size_t)(p->most + 1) * (size_t)n_words, sizeof *p->bits);
    for (int c = 1; c <= p->most && p->bits; c++) {
        uint32_t *bits = p->bits + (size_t)c * (size_t)n_words;
        memcpy(bits, bits - n_words, sizeof *bits * (size_t)n_words);
        for (int i = p->upto[c - 1]; i < p->upto[c]; i++) bits[p->id[i] / 32] |= 1u << p->id[i] % 32;
    }
    return p->bits ? 0 : -1;
}

static int build_part(struct trees *trees, int i, const struct tokenizer *t, int *ids)
{
    int n = list(t, i, ids);
    if (fill(trees->part + i, trees->same, t, ids, n)) return -1;
    n = take_plain(trees->plain + i, t, ids, n);
    if (n < 0 || (i + 1 < TREES && mark_plain(trees->plain + i, trees->n_words))) return -1;
    return fill(trees->rest + i, trees->same, t, ids, n);
}

int trees_build(struct trees *trees, const struct tokenizer *t, struct q_err *e)
{
    int all = tok_count(t), *ids = malloc(sizeof *ids * (size_t)(all + 1));
    *trees = (struct trees){.n_ids = all, .n_words = (all + 31) / 32};
    trees->same = malloc(sizeof *trees->same * (size_t)(all + 1));
    trees->ends = malloc(sizeof *trees->ends * (size_t)(all + 1));
    int bad = !ids || !trees->same || !trees->ends;
    for (int i = 0; i < TREES && !bad; i++) bad = build_part(trees, i, t, ids);
    for (int id = 0; !bad && id < all; id++)
        if (tok_is_end(t, id)) trees->ends[trees->n_ends++] = id;
    free(ids);
    if (!bad) return Q_OK;
    trees_free(trees);
    return q_fail(e, Q_EMEM, "no memory for a tree of %d tokens", all);
}
