#include "constrain_mask.h"
#include <stdlib.h>
#include <string.h>

/* What follows at a spot. Few tokens are a list, many are bits. */
struct local {
    uint32_t *bits; /* [n_words], or NULL: */
    int *id;        /* [n_id] */
    int *end;       /* [n_end]: nodes with a subtree where the rule may have ended */
    int n_id, n_end;
    int depth;      /* rules that were, or would have to be, open above the spot, at most */
    int too_wide;   /* more ends than are worth keeping: they are not known */
};
enum { MAX_ENDS = 1 << 14 };

struct walk {
    struct pda *s;
    const struct trees *trees;
    int part; /* of the trees */
    uint32_t *bits;
    int depth;
    int *end; /* [MAX_ENDS], NULL: not asked for */
    int n_end;
};

static void allow(const struct walk *w, int id)
{
    for (; id >= 0; id = w->trees->same[id]) w->bits[id / 32] |= 1u << id % 32;
}

/* Tries all tokens in the subtree of node `root`, whose bytes led to `state`. */
static void walk(struct walk *w, int state, int root)
{
    struct pda *s = w->s;
    const struct tree_node *node = w->trees->part[w->part].node;
    const unsigned char *class_of = s->p->class_of;
    int path[TREE_MAX_DEPTH + 1], i = root + 1, visited = 0;
    path[node[root].depth] = state;
    for (int stop = node[root].end; i < stop && !s->rc; visited++) {
        struct tree_node at = node[i];
        int to = pda_step(s, path[at.depth - 1], class_of[at.byte]);
        if (!to) {
            i = at.end;
            continue;
        }
        if (at.token >= 0) allow(w, at.token);
        if (s->state[to].reach > w->depth) w->depth = s->state[to].reach;
        if (w->end && s->state[to].may_end && at.end > i + 1 && w->n_end <= MAX_ENDS) {
            if (w->n_end < MAX_ENDS) w->end[w->n_end] = i;
            w->n_end++;
        }
        path[at.depth] = to;
        i++;
    }
    pda_work(s, (size_t)visited);
}

static int keep_ids(struct pda *s, struct local *l, const uint32_t *bits, int n_words)
{
    l->id = pda_arena_take(&s->arena, sizeof *l->id * (size_t)(l->n_id + 1));
    if (!l->id) return pda_fail(s, Q_EMEM);
    int n = 0;
    for (int i = 0; i < n_words; i++)
        for (uint32_t w = bits[i]; w; w &= w - 1) l->id[n++] = i * 32 + __builtin_ctz(w);
    return 1;
}

static int keep_bits(struct pda *s, struct local *l, const uint32_t *bits, int n_words)
{
    l->bits = pda_arena_take(&s->arena, sizeof *bits * (size_t)n_words);
    if (!l->bits) return pda_fail(s, Q_EMEM);
    memcpy(l->bits, bits, sizeof *bits * (size_t)n_words);
    return 1;
}

static struct local *keep(const struct walk *w)
{
    struct pda *s = w->s;
    struct local *l = s->rc ? NULL : pda_arena_take(&s->arena, sizeof *l);
    if (!l) return pda_fail(s, Q_EMEM), NULL;
    *l = (struct local){.depth = w->depth, .n_end = w->n_end, .too_wide = w->n_end > MAX_ENDS};
    for (int i = 0; i < w->trees->n_words; i++) l->n_id += __builtin_popcount(w->bits[i]);
    if (!(l->n_id < w->trees->n_words / 4 ? keep_ids : keep_bits)(s, l, w->bits, w->trees->n_words)) return NULL;
    if (l->too_wide) return l;
    l->end = pda_arena_take(&s->arena, sizeof *l->end * (size_t)(l->n_end + 1));
    if (!l->end) return pda_fail(s, Q_EMEM), NULL;
    memcpy(l->end, w->end, sizeof *l->end * (size_t)l->n_end);
    return l;
}

static struct local *local_of(struct pda *s, const struct trees *trees, int part, int spot)
{
    if (s->spot[spot].local[part]) return s->spot[spot].local[part];
    int like = pda_spot_like(s, spot, tree_most[part]);
    if (like != spot) {
        struct local *l = s->rc ? NULL : local_of(s, trees, part, like);
        return s->rc ? NULL : (s->spot[spot].local[part] = l);
    }
    struct walk w = {.s = s, .trees = trees, .part = part};
    w.bits = calloc((size_t)trees->n_words + MAX_ENDS, sizeof *w.bits);
    if (!w.bits) return pda_fail(s, Q_EMEM), NULL;
    w.end = (int *)(w.bits + trees->n_words);
    walk(&w, pda_alone(s, spot), 0);
    s->spot[spot].local[part] = keep(&w);
    free(w.bits);
    return s->spot[spot].local[part];
}

static void add_local(const struct walk *w, const struct local *l)
{
    for (int i = 0; i < l->n_id && !l->bits; i++) w->bits[l->id[i] / 32] |= 1u << l->id[i] % 32;
    for (int i = 0; i < w->trees->n_words && l->bits; i++) w->bits[i] |= l->bits[i];
}

/* 0 when the spot cannot be told apart from its stack: it is too wide, or its rules would nest too deep on it. */
static int add_frame(struct walk *w, int spot, int stack)
{
    struct pda *s = w->s;
    const struct local *l = local_of(s, w->trees, w->part, spot);
    if (!l || s->stack[stack].depth + l->depth > NFA_MAX_HEIGHT) return 0;
    int n, resume = l->n_end && stack ? pda_resume(s, stack) : 0;
    pda_frames(s, resume, &n);
    if (l->too_wide && n) return 0;
    add_local(w, l);
    for (int i = 0; i < l->n_end && n && !s->rc; i++) walk(w, resume, l->end[i]);
    return 1;
}

/* The state's mask by a walk through all of it, or one that was kept. */
static void walk_whole(struct walk *w, int state)
{
    struct pda *s = w->s;
    size_t bytes = sizeof *w->bits * (size_t)w->trees->n_words;
    for (int i = 0; i < 8; i++)
        if (state && s->whole[i].state == state) return (void)memcpy(w->bits, s->whole[i].bits, bytes);
    memset(w->bits, 0, bytes);
    for (w->part = 0; w->part < TREES; w->part++) walk(w, state, 0);
    struct whole_mask *keep_at = s->whole + s->n_whole++ % 8;
    if (!keep_at->bits) keep_at->bits = pda_arena_take(&s->arena, bytes);
    if (!keep_at->bits) return (void)pda_fail(s, Q_EMEM);
    keep_at->state = s->rc ? 0 : state;
    memcpy(keep_at->bits, w->bits, bytes);
}

static int said(const struct pda *s, struct q_err *e)
{
    if (s->rc == Q_EMEM) return q_fail(e, Q_EMEM, "no memory for the masks of a grammar");
    if (s->rc) return q_fail(e, s->rc, "the grammar is too ambiguous: the next token has too many readings at once");
    return Q_OK;
}

static int is_empty(const uint32_t *bits, int n)
{
    for (int i = 0; i < n; i++)
        if (bits[i]) return 0;
    return 1;
}

int mask_fill(struct pda *s, const struct trees *trees, int state, uint32_t *bits, struct q_err *e)
{
    struct walk w = {.s = s, .trees = trees, .bits = bits};
    int n, whole = 0;
    s->work = 0;
    s->most_work = MASK_MOST_WORK;
    memset(bits, 0, sizeof *bits * (size_t)trees->n_words);
    pda_frames(s, state, &n);
    for (int i = 0; i < n && !whole && !s->rc; i++) {
        const int *frame = pda_frames(s, state, &n) + 2 * i;
        for (w.part = 0; w.part < TREES && !whole; w.part++) whole = !add_frame(&w, frame[0], frame[1]);
    }
    if (whole && !s->rc) walk_whole(&w, state);
    if (s->rc) return said(s, e);
    for (int i = 0; i < trees->n_ends && s->state[state].may_end; i++) bits[trees->ends[i] / 32] |= 1u << trees->ends[i] % 32;
    return is_empty(bits, trees->n_words) ? q_fail(e, Q_ELIMIT, "nothing may follow: the text nests %d rules deep", NFA_MAX_HEIGHT) : Q_OK;
}

int mask_ahead(struct pda *s, const struct trees *trees, struct q_err *e)
{
    s->work = 0;
    s->most_work = MASK_MOST_WORK;
    pda_spot_start(s, s->p->root);
    for (int r = 0; r < s->p->nfa.n_rule && s->work < MASK_AHEAD_WORK && !s->rc; r++) pda_spot_start(s, r);
    for (int i = 1; i < s->spots.n && s->work < MASK_AHEAD_WORK && !s->rc; i++) {
        for (int c = 0; c < s->p->n_class && !s->rc; c++) pda_spot_next(s, i, c);
        for (int part = 0; part < TREES && s->spot[i].takes_byte; part++) local_of(s, trees, part, i);
    }
    return said(s, e);
}
