#include "constrain_alike.h"
#include <stdlib.h>
#include <string.h>

/* A rule of fewer states has few masks; one of more kinds would hardly have a smaller tree. MOST_LOOKED: nodes of the vocabulary's tree that are
 * looked at for all rules of a grammar; LEAST_SAVED: a tree is that many times smaller. */
enum { LEAST_STATES = 40, MOST_KINDS = 64, MOST_LOOKED = 3 << 20, LEAST_SAVED = 4 };

/* ---- kinds of bytes ---- */

/* Whether the rule's states, first to behind - 1, are worth a tree. */
static int is_worth(const struct nfa *a, int first, int behind)
{
    int many = 0;
    for (int q = first; q < behind; q++) {
        many |= a->state[q].plain == NFA_PLAIN_MANY;
        for (int j = a->state[q].edge; j >= 0; j = a->edge[j].next)
            if (a->edge[j].kind == NFA_CALL) return 0;
    }
    return many && behind - first >= LEAST_STATES;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    return (x ^ x >> 27) * 0x94D049BB133111EBu;
}

/* How many bytes behind this one are left as they are: an escape's, and UTF-8's where not every second byte may come. */
static int exact_behind(unsigned char byte)
{
    return byte == '\\' ? TREE_MAX_DEPTH : byte == 0xE0 || byte == 0xED || byte == 0xF0 || byte == 0xF4;
}

static void mark(char *usual, int *queue, int *n, int q)
{
    if (usual[q]) return;
    usual[q] = 1;
    queue[(*n)++] = q;
}

/* Marks the states from first on that are reached without exact bytes. queue: [states]. */
static void mark_usual(const struct nfa *a, int first, char *usual, int *queue)
{
    int n = 0;
    mark(usual, queue, &n, first);
    for (int i = 0; i < n; i++)
        for (int j = a->state[queue[i]].edge; j >= 0; j = a->edge[j].next) {
            const struct nfa_edge *x = a->edge + j;
            int exact = x->kind == NFA_BYTES && x->lo == x->hi ? exact_behind(x->lo) : 0;
            if (!exact) mark(usual, queue, &n, x->to);
            for (int k = exact == 1 ? a->state[x->to].edge : -1; k >= 0; k = a->edge[k].next)
                mark(usual, queue, &n, a->edge[k].to);
        }
}

/* Bytes over which the same edges lead are of one kind: they have the same sum over their edges. 0: too many kinds. */
static int find_kinds(const struct nfa *a, int first, int behind, const char *usual, unsigned char kind[256])
{
    uint64_t change[257] = {0}, known[MOST_KINDS] = {0}, sum = 0;
    int n = 1;
    for (int q = first; q < behind; q++)
        for (int j = usual[q] ? a->state[q].edge : -1; j >= 0; j = a->edge[j].next) {
            const struct nfa_edge *x = a->edge + j;
            uint64_t h = mix((uint64_t)q << 32 | (unsigned)x->to);
            if (x->kind != NFA_BYTES) continue;
            change[x->lo] += h;
            change[x->hi + 1] -= h;
        }
    for (int b = 0; b < 256; b++) {
        int k = 0;
        sum += change[b];
        while (k < n && known[k] != sum) k++;
        if (k == MOST_KINDS) return 0;
        if (k == n) known[n++] = sum;
        kind[b] = (unsigned char)k;
    }
    return 1;
}

/* ---- a tree ---- */

/* While it is made: children are linked, and counts are not yet places. */
struct draft {
    int first, sibling, n_id, n_inner, place;
    unsigned char byte, exact;
};

struct maker {
    const struct trees *trees;
    const struct tree *tree;
    const unsigned char *kind;
    struct draft *draft; /* owned: [cap] */
    int *of;             /* owned: [tree->n], the draft that a node is, -1: the rule never gets there */
    int n, cap, looked;
};

/* -1: no memory. */
static int child(struct maker *m, int parent, unsigned char byte)
{
    int at = m->draft[parent].first, exact = m->draft[parent].exact;
    while (at >= 0 && (exact ? m->draft[at].byte != byte : m->kind[m->draft[at].byte] != m->kind[byte])) at = m->draft[at].sibling;
    if (at >= 0) return at;
    if (m->n == m->cap) {
        struct draft *p = realloc(m->draft, sizeof *p * (size_t)m->cap * 2);
        if (!p) return -1;
        m->draft = p;
        m->cap *= 2;
    }
    m->draft[m->n] = (struct draft){.first = -1, .sibling = m->draft[parent].first, .byte = byte};
    int left = exact_behind(byte);
    m->draft[m->n].exact = (unsigned char)(left >= exact ? left : exact - 1);
    return m->draft[parent].first = m->n++;
}

static int count_same(const struct trees *trees, int id)
{
    int n = 0;
    for (; id >= 0; id = trees->same[id]) n++;
    return n;
}

/* 0: it would hardly be smaller; -1: no memory. */
static int draw_up(struct maker *m)
{
    int path[TREE_MAX_DEPTH + 1] = {0};
    memset(m->of, 0xFF, sizeof *m->of * (size_t)m->tree->n);
    m->draft[0] = (struct draft){.first = -1};
    m->n = 1;
    for (int i = 1; i < m->tree->n; m->looked++) {
        struct tree_node at = m->tree->node[i];
        int from = path[at.depth - 1];
        if (!m->kind[at.byte] && !m->draft[from].exact) {
            i = at.end;
            continue;
        }
        int to = child(m, from, at.byte);
        if (to < 0) return -1;
        if (m->looked > 1 << 17 && m->n > m->looked / LEAST_SAVED) return 0;
        m->of[i] = path[at.depth] = to;
        m->draft[to].n_id += count_same(m->trees, at.token);
        m->draft[to].n_inner += at.end > ++i;
    }
    return 1;
}

/* Places the drafts below `parent`, whose place is known, and what they hold. */
static void place(struct maker *m, struct alike_tree *t, int parent, int depth, int *n_id, int *n_inner)
{
    for (int d = m->draft[parent].first; d >= 0; d = m->draft[d].sibling) {
        struct draft *x = m->draft + d;
        x->place = t->n++;
        t->node[x->place] = (struct alike_node){.id = *n_id, .inner = *n_inner, .bits = -1, .byte = x->byte, .depth = (unsigned char)depth};
        *n_id += x->n_id;
        *n_inner += x->n_inner;
        place(m, t, d, depth + 1, n_id, n_inner);
        t->node[x->place].end = t->n;
    }
}

static void fill_lists(const struct maker *m, struct alike_tree *t)
{
    for (int i = 1; i < m->tree->n; i++) {
        if (m->of[i] < 0) continue;
        struct alike_node *x = t->node + m->draft[m->of[i]].place;
        for (int id = m->tree->node[i].token; id >= 0; id = m->trees->same[id]) t->id[x->id + x->n_id++] = id;
        if (m->tree->node[i].end > i + 1) t->inner[x->inner + x->n_inner++] = i;
    }
}

/* Nodes with many tokens have their bits too. */
static int fill_bits(const struct trees *trees, struct alike_tree *t)
{
    for (int i = 1; i < t->n; i++)
        if (t->node[i].n_id > trees->n_words / 4) t->node[i].bits = t->n_bits++;
    t->bits = calloc((size_t)t->n_bits * (size_t)trees->n_words + 1, sizeof *t->bits);
    for (int i = 1; i < t->n && t->bits; i++) {
        const struct alike_node *x = t->node + i;
        uint32_t *bits = t->bits + (size_t)(x->bits < 0 ? 0 : x->bits) * (size_t)trees->n_words;
        for (int k = x->id; k < x->id + x->n_id && x->bits >= 0; k++) bits[t->id[k] / 32] |= 1u << t->id[k] % 32;
    }
    return t->bits ? 1 : -1;
}

static int make_tree(struct maker *m, struct alike_tree *t)
{
    int n_id = 0, n_inner = 0, ok = draw_up(m);
    if (ok <= 0) return ok;
    t->node = malloc(sizeof *t->node * (size_t)m->n);
    if (!t->node) return -1;
    t->node[t->n++] = (struct alike_node){.bits = -1};
    place(m, t, 0, 1, &n_id, &n_inner);
    t->node[0].end = t->n;
    t->id = malloc(sizeof *t->id * (size_t)(n_id + 1));
    t->inner = malloc(sizeof *t->inner * (size_t)(n_inner + 1));
    if (!t->id || !t->inner) return -1;
    fill_lists(m, t);
    return fill_bits(m->trees, t);
}

/* ---- of a grammar ---- */

static void free_one(struct alike *x)
{
    for (int i = 0; i < TREES; i++) {
        free(x->part[i].node);
        free(x->part[i].id);
        free(x->part[i].inner);
        free(x->part[i].bits);
    }
    free(x);
}

/* 1: made; 0: it is not worth it; -1: no memory. */
static int make(struct alike *x, const struct trees *trees, int *looked)
{
    int most = 1, ok = 1;
    for (int i = 0; i < TREES; i++)
        if (trees->part[i].n > most) most = trees->part[i].n;
    struct maker m = {.trees = trees, .kind = x->kind, .cap = 1 << 10};
    m.draft = malloc(sizeof *m.draft * (size_t)m.cap);
    m.of = malloc(sizeof *m.of * (size_t)most);
    if (!m.draft || !m.of) ok = -1;
    for (int i = 0; i < TREES && ok > 0; i++) {
        m.tree = trees->part + i;
        m.looked = 0;
        ok = make_tree(&m, x->part + i);
        *looked += m.looked;
    }
    free(m.draft);
    free(m.of);
    return ok;
}

static struct alike *find(struct program *p, const unsigned char kind[256])
{
    struct alike *x = p->alike;
    while (x && memcmp(x->kind, kind, sizeof x->kind)) x = x->next;
    return x;
}

/* The tree of a rule: a new one, one that another rule has, or none. */
static int build_rule(struct program *p, const struct trees *trees, int first, int behind, struct alike **out, int *looked, int *queue)
{
    unsigned char kind[256];
    if (!is_worth(&p->nfa, first, behind)) return 1;
    mark_usual(&p->nfa, first, p->usual, queue);
    if (!find_kinds(&p->nfa, first, behind, p->usual, kind)) return 1;
    if ((*out = find(p, kind))) return 1;
    struct alike *x = calloc(1, sizeof *x);
    if (!x) return -1;
    memcpy(x->kind, kind, sizeof kind);
    int ok = make(x, trees, looked);
    if (ok <= 0) return free_one(x), ok;
    x->next = p->alike;
    p->alike = *out = x;
    return 1;
}

int alike_build(struct program *p, const struct trees *trees, struct q_err *e)
{
    const struct nfa *a = &p->nfa;
    int looked = 0, *queue = malloc(sizeof *queue * (size_t)(a->n_state + 1));
    p->alike_of = calloc((size_t)a->n_rule + 1, sizeof *p->alike_of);
    p->usual = calloc((size_t)a->n_state + 1, 1);
    int ok = queue && p->alike_of && p->usual ? 1 : -1;
    for (int r = 0; r < a->n_rule && looked < MOST_LOOKED && ok >= 0; r++) {
        int behind = r + 1 < a->n_rule ? a->rule[r + 1].start : a->n_state;
        ok = build_rule(p, trees, a->rule[r].start, behind, p->alike_of + r, &looked, queue);
    }
    free(queue);
    return ok < 0 ? q_fail(e, Q_EMEM, "no memory for the tokens of a grammar's rules") : Q_OK;
}

void alike_free(struct program *p)
{
    for (struct alike *x = p->alike, *next; x; x = next) {
        next = x->next;
        free_one(x);
    }
    free(p->alike_of);
    free(p->usual);
}

const struct alike *alike_of(const struct program *p, const int *set, int n)
{
    int lo = 0, hi = p->nfa.n_rule;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (p->nfa.rule[mid].start <= *set) lo = mid;
        else hi = mid;
    }
    for (int i = 0; i < n && p->alike_of[lo]; i++)
        if (!p->usual[set[i]]) return NULL;
    return p->alike_of[lo];
}

size_t alike_bytes(const struct program *p, const struct trees *trees)
{
    size_t n = 0;
    for (const struct alike *x = p->alike; x; x = x->next)
        for (int i = 0; i < TREES; i++) {
            const struct alike_tree *t = x->part + i;
            const struct alike_node *last = t->node + t->n - 1;
            n += (size_t)t->n * sizeof *t->node + (size_t)t->n_bits * (size_t)trees->n_words * sizeof *t->bits;
            n += (size_t)(last->id + last->n_id) * sizeof *t->id + (size_t)(last->inner + last->n_inner) * sizeof *t->inner;
        }
    return n;
}
