#include "constrain_mask.h"
#include "constrain_alike.h"
#include "constrain_text.h"
#include <stdlib.h>
#include <string.h>

/* What follows at a spot. Few tokens are a list, many are bits. */
struct local {
    const uint32_t *bits; /* [n_words], or NULL: */
    int *id;        /* [n_id] */
    int *end;       /* [n_end]: nodes of `tree` with a subtree where the rule may have ended */
    const struct tree *tree;
    int n_id, n_end;
    int depth;      /* rules that were, or would have to be, open above the spot, at most */
    int too_wide;   /* more ends than are worth keeping: they are not known */
};
enum { MAX_ENDS = 1 << 14 };

struct walk {
    struct pda *s;
    const struct trees *trees;
    int part; /* of the trees */
    const struct tree *tree; /* that is walked */
    const struct alike *alike; /* the spot's rule tells few bytes apart; NULL */
    int no_plain;              /* it does not let all plain characters pass: no need to find out */
    uint32_t *bits;
    int depth;
    int *end; /* [MAX_ENDS], NULL: not asked for */
    int n_end;
    int *id;  /* [most_id]: those allowed, as long as they are few */
    int n_id, most_id;
};

static void allow(struct walk *w, int id)
{
    w->bits[id / 32] |= 1u << id % 32;
    if (w->n_id < w->most_id) w->id[w->n_id] = id;
    w->n_id++;
}

static void allow_same(struct walk *w, int id)
{
    for (; id >= 0; id = w->trees->same[id]) allow(w, id);
}

typedef uint32_t words8 __attribute__((vector_size(32), aligned(4), may_alias));

static void add_bits(uint32_t *to, const uint32_t *from, int n)
{
    int i = 0;
    for (; i + 8 <= n; i += 8) *(words8 *)(to + i) |= *(const words8 *)(from + i);
    for (; i < n; i++) to[i] |= from[i];
}

/* Plain tokens of up to n characters. */
static void allow_counted(struct walk *w, const struct plain_tokens *plain, int n)
{
    int n_words = w->trees->n_words;
    if (!plain->bits || plain->upto[n] <= w->most_id) {
        for (int i = 0; i < plain->upto[n]; i++) allow(w, plain->id[i]);
        return;
    }
    add_bits(w->bits, plain->bits + (size_t)n * (size_t)n_words, n_words);
    w->n_id += plain->upto[n];
}

/* Tries all tokens in the subtree of node `root`, whose bytes led to `state`. */
static void walk(struct walk *w, int state, int root)
{
    struct pda *s = w->s;
    const struct tree_node *node = w->tree->node;
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
        if (at.token >= 0) allow_same(w, at.token);
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

static void allow_alike(struct walk *w, const struct alike_tree *t, const struct alike_node *x)
{
    for (int k = x->id; k < x->id + x->n_id && x->bits < 0; k++) allow(w, t->id[k]);
    if (x->bits < 0) return;
    add_bits(w->bits, t->bits + (size_t)x->bits * (size_t)w->trees->n_words, w->trees->n_words);
    w->n_id += x->n_id;
}

static void end_alike(struct walk *w, const struct alike_tree *t, const struct alike_node *x)
{
    int room = MAX_ENDS - w->n_end, n = x->n_inner < room ? x->n_inner : room;
    if (n > 0) memcpy(w->end + w->n_end, t->inner + x->inner, sizeof *w->end * (size_t)n);
    w->n_end += x->n_inner < room ? x->n_inner : room + 1;
}

/* As walk, from the root: each text of the rule's kinds of bytes once. */
static void walk_alike(struct walk *w, int state)
{
    struct pda *s = w->s;
    const struct alike_tree *t = w->alike->part + w->part;
    int path[TREE_MAX_DEPTH + 1] = {state}, i = 1, visited = 0;
    for (; i < t->n && !s->rc; visited++) {
        const struct alike_node *at = t->node + i;
        int to = pda_step(s, path[at->depth - 1], s->p->class_of[at->byte]);
        if (!to) {
            i = at->end;
            continue;
        }
        allow_alike(w, t, at);
        if (s->state[to].reach > w->depth) w->depth = s->state[to].reach;
        if (w->end && s->state[to].may_end && w->n_end <= MAX_ENDS) end_alike(w, t, at);
        path[at->depth] = to;
        i++;
    }
    pda_work(s, (size_t)visited);
}

/* Takes the tokens of a subtree back; the list is then no more what the bits are. */
static void forbid(struct walk *w, int root)
{
    const struct tree_node *node = w->tree->node;
    for (int i = root; i < node[root].end; i++)
        for (int id = node[i].token; id >= 0; id = w->trees->same[id]) w->bits[id / 32] &= ~(1u << id % 32);
    w->n_id += w->most_id + 1;
}

/* Tokens that begin with byte node `root`, which is odd: none by their lengths, those that a walk finds. 0: the rule may end among them. */
static int walk_odd(struct walk *w, int state, int root)
{
    const struct tree_node *node = w->tree->node;
    int before = w->n_end, to = pda_step(w->s, state, w->s->p->class_of[node[root].byte]);
    forbid(w, root);
    if (!to) return 1;
    if (node[root].token >= 0) allow_same(w, node[root].token);
    if (w->s->state[to].reach > w->depth) w->depth = w->s->state[to].reach;
    walk(w, to, root);
    return w->n_end == before && !w->s->state[to].may_end;
}

/* Plain tokens by their lengths, where any text may stand for a while. No rule ends inside of one. 0: this is no such place. */
static int allow_plain(struct walk *w, int state)
{
    struct pda *s = w->s;
    const struct plain_tokens *plain = w->trees->plain + w->part;
    int reach = 0, n = text_room(s, state, plain->most, &reach);
    if (n <= 0) return 0; /* where no text stands a walk is soon over */
    allow_counted(w, plain, n);
    if (reach > w->depth) w->depth = reach;
    w->tree = w->trees->part + w->part;
    const struct tree_node *node = w->tree->node;
    for (int i = 1; i < w->tree->n && s->state[state].odd; i = node[i].end)
        if (text_is_odd(s, state, node[i].byte) && !walk_odd(w, state, i)) return 0;
    return 1;
}

/* Into bits that are empty in this part. */
static void walk_part(struct walk *w, int state)
{
    w->tree = NULL;
    struct walk before = *w;
    int plain = !w->no_plain && allow_plain(w, state);
    if (!plain && w->tree != before.tree) forbid(w, 0);
    if (!plain) *w = before;
    w->tree = (plain ? w->trees->rest : w->trees->part) + w->part;
    if (!plain && w->alike) walk_alike(w, state);
    else walk(w, state, 0);
}

static int keep_ids(struct pda *s, struct local *l, const struct walk *w)
{
    l->id = pda_arena_take(&s->arena, sizeof *l->id * (size_t)(w->n_id + 1));
    if (!l->id) return pda_fail(s, Q_EMEM);
    memcpy(l->id, w->id, sizeof *l->id * (size_t)w->n_id);
    l->n_id = w->n_id;
    return 1;
}

/* Each mask once: strings of one grammar have the same ones, as many characters before their ends. */
static int keep_bits(struct pda *s, struct local *l, const struct walk *w)
{
    int fresh, at = pda_pool_number(&s->masks, &s->arena, (const int *)w->bits, w->trees->n_words, &fresh);
    if (at < 0) return pda_fail(s, Q_EMEM);
    l->bits = (const uint32_t *)s->masks.item[at].at;
    return 1;
}

static struct local *keep(const struct walk *w)
{
    struct pda *s = w->s;
    struct local *l = s->rc ? NULL : pda_arena_take(&s->arena, sizeof *l);
    if (!l) return pda_fail(s, Q_EMEM), NULL;
    *l = (struct local){.tree = w->tree, .depth = w->depth, .n_end = w->n_end, .too_wide = w->n_end > MAX_ENDS};
    if (!(w->n_id <= w->most_id ? keep_ids : keep_bits)(s, l, w)) return NULL;
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
    struct walk w = {.s = s, .trees = trees, .part = part, .most_id = trees->n_words / 4};
    w.alike = alike_of(s->p, s->spots.item[spot].at, s->spots.item[spot].n);
    w.no_plain = w.alike && pda_spot_plain(s, spot) < 0;
    w.bits = calloc((size_t)trees->n_words, sizeof *w.bits);
    w.end = malloc(sizeof *w.end * (size_t)(MAX_ENDS + w.most_id + 1));
    if (!w.bits || !w.end) return free(w.bits), free(w.end), pda_fail(s, Q_EMEM), NULL;
    w.id = w.end + MAX_ENDS;
    walk_part(&w, pda_single(s, spot, 0));
    s->spot[spot].local[part] = keep(&w);
    free(w.bits);
    free(w.end);
    return s->spot[spot].local[part];
}

static void add_local(const struct walk *w, const struct local *l)
{
    if (l->bits) add_bits(w->bits, l->bits, w->trees->n_words);
    for (int i = 0; i < l->n_id; i++) w->bits[l->id[i] / 32] |= 1u << l->id[i] % 32;
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
    w->tree = l->tree;
    for (int i = 0; i < l->n_end && n && !s->rc; i++) walk(w, resume, l->end[i]);
    return 1;
}

/* The state's mask by a walk through all of it. */
static void walk_whole(struct walk *w, int state)
{
    memset(w->bits, 0, sizeof *w->bits * (size_t)w->trees->n_words);
    for (w->part = 0; w->part < TREES; w->part++) walk_part(w, state);
}

/* ---- masks that took long ---- */

static const uint32_t *find_whole(const struct pda *s, int state)
{
    for (int i = 0; i < WHOLE_MASKS; i++)
        if (state && s->whole[i].state == state) return s->whole[i].bits;
    return NULL;
}

static void keep_whole(struct pda *s, int state, const uint32_t *bits, int n_words)
{
    struct whole_mask *at = s->whole + s->n_whole++ % WHOLE_MASKS;
    size_t bytes = sizeof *bits * (size_t)n_words;
    if (!at->bits) at->bits = pda_arena_take(&s->arena, bytes);
    if (!at->bits) return (void)pda_fail(s, Q_EMEM);
    at->state = state;
    memcpy(at->bits, bits, bytes);
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

static void put_together(struct walk *w, int state)
{
    struct pda *s = w->s;
    int n, whole = 0;
    memset(w->bits, 0, sizeof *w->bits * (size_t)w->trees->n_words);
    pda_frames(s, state, &n);
    for (int i = 0; i < n && !whole && !s->rc; i++) {
        const int *frame = pda_frames(s, state, &n) + 2 * i;
        for (w->part = 0; w->part < TREES && !whole; w->part++) whole = !add_frame(w, frame[0], frame[1]);
    }
    if (whole && !s->rc) walk_whole(w, state);
}

int mask_fill(struct pda *s, const struct trees *trees, int state, uint32_t *bits, struct q_err *e)
{
    const uint32_t *kept = find_whole(s, state);
    s->work = 0;
    s->most_work = MASK_MOST_WORK;
    if (kept) return memcpy(bits, kept, sizeof *bits * (size_t)trees->n_words), Q_OK;
    put_together(&(struct walk){.s = s, .trees = trees, .bits = bits}, state);
    if (s->rc) return said(s, e);
    for (int i = 0; i < trees->n_ends && s->state[state].may_end; i++) bits[trees->ends[i] / 32] |= 1u << trees->ends[i] % 32;
    if (is_empty(bits, trees->n_words)) return q_fail(e, Q_ELIMIT, "nothing may follow: the text nests %d rules deep", NFA_MAX_HEIGHT);
    if (s->work > WHOLE_WORK) keep_whole(s, state, bits, trees->n_words);
    return s->rc ? said(s, e) : Q_OK;
}

/* Not inside a character: few tokens begin there, so what follows is soon found when it is asked for. */
static int takes_ascii(const struct pda *s, int spot)
{
    const struct nfa *a = &s->p->nfa;
    for (int i = 0; i < s->spots.item[spot].n; i++)
        for (int j = a->state[s->spots.item[spot].at[i]].edge; j >= 0; j = a->edge[j].next)
            if (a->edge[j].kind == NFA_BYTES && a->edge[j].lo < 0x80) return 1;
    return 0;
}

int mask_ahead(struct pda *s, const struct trees *trees, struct q_err *e)
{
    s->work = 0;
    s->most_work = MASK_MOST_WORK;
    pda_spot_start(s, s->p->root);
    for (int r = 0; r < s->p->nfa.n_rule && s->work < MASK_AHEAD_WORK && !s->rc; r++) pda_spot_start(s, r);
    for (int i = 1; i < s->spots.n && s->work < MASK_AHEAD_WORK && !s->rc; i++) {
        if (!takes_ascii(s, i)) continue;
        for (int c = 0; c < s->p->n_class && !s->rc; c++) pda_spot_next(s, i, c);
        for (int part = 0; part < TREES; part++) local_of(s, trees, part, i);
    }
    return said(s, e);
}
