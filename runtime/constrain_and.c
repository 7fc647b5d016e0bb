/* Both of two expressions: their automata run side by side, in pairs of states. Pairs that differ in turns alone are linked, for constrain_kin.c,
 * which finds out how far they are alike: fewer turns left of one side may be too few for what the other still needs. Only pairs that are there
 * anyway are linked, so that a count beside a count stays as long as one of them and does not become each with each. */
#include "constrain_nfa.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    int x, y, state;
};

struct product {
    struct nfa *a;
    struct grammar *g;
    struct nfa part;    /* both expressions */
    struct pair *pair;  /* owned: in the order met; those from `done` on have no edges yet */
    int *slot;          /* owned: pair + 1 by hash, 0 empty */
    int n, cap, done, mask;
};

static unsigned hash(int x, int y) { return ((unsigned)x * 0x9E3779B1u ^ (unsigned)y * 0x85EBCA6Bu) * 0xC2B2AE35u >> 4; }

/* The place of (x, y) in slot[]: its own, or the empty one that it would take. */
static unsigned slot_of(const struct product *p, int x, int y)
{
    unsigned h = hash(x, y) & (unsigned)p->mask;
    while (p->slot[h] && (p->pair[p->slot[h] - 1].x != x || p->pair[p->slot[h] - 1].y != y)) h = (h + 1) & (unsigned)p->mask;
    return h;
}

static int rehash(struct product *p)
{
    int cap = p->cap ? p->cap * 2 : 1024;
    struct pair *pair = realloc(p->pair, sizeof *pair * (size_t)cap);
    if (pair) p->pair = pair;
    int *slot = pair ? calloc((size_t)cap * 2, sizeof *slot) : NULL;
    if (!slot) return grammar_fail(p->g, Q_EMEM, "no memory for a grammar's automaton"), 0;
    free(p->slot);
    p->slot = slot;
    p->cap = cap;
    p->mask = cap * 2 - 1;
    for (int i = 0; i < p->n; i++) p->slot[slot_of(p, p->pair[i].x, p->pair[i].y)] = i + 1;
    return 1;
}

/* The pair (x, y), -1: a failure. A new one has the state given, or, if that is less than 0, a new state. */
static int pair_of(struct product *p, int x, int y, int state)
{
    if (p->g->rc || (p->n == p->cap && !rehash(p))) return -1;
    unsigned h = slot_of(p, x, y);
    if (p->slot[h]) return p->slot[h] - 1;
    p->pair[p->n] = (struct pair){x, y, state < 0 ? nfa_add_state(p->a, p->g) : state};
    p->slot[h] = ++p->n;
    return p->n - 1;
}

/* The product's state for (x, y). */
static int state_of(struct product *p, int x, int y)
{
    int i = pair_of(p, x, y, -1);
    return i < 0 ? -1 : p->pair[i].state;
}

static void link_bytes(struct product *p, int from, const struct nfa_edge *u, const struct nfa_edge *v)
{
    struct nfa_edge both = {.kind = NFA_BYTES, .lo = u->lo > v->lo ? u->lo : v->lo, .hi = u->hi < v->hi ? u->hi : v->hi};
    if (both.lo > both.hi) return;
    both.to = state_of(p, u->to, v->to);
    nfa_add_edge(p->a, p->g, from, both);
}

/* A plain character that both sides take, whichever it is, leads to where it leads both. */
static void link_plain(struct product *p, struct pair at)
{
    int x = p->part.state[at.x].plain, y = p->part.state[at.y].plain, both = NFA_PLAIN_MANY;
    if (x == NFA_PLAIN_NONE || y == NFA_PLAIN_NONE) both = NFA_PLAIN_NONE;
    else if (x >= 0 && y >= 0) both = state_of(p, x, y);
    if (!p->g->rc) p->a->state[at.state].plain = both;
}

static void link_pair(struct product *p, struct pair at)
{
    const struct nfa_edge *e = p->part.edge;
    for (int i = p->part.state[at.x].edge; i >= 0 && !p->g->rc; i = e[i].next) {
        if (e[i].kind == NFA_FREE) nfa_add_edge(p->a, p->g, at.state, (struct nfa_edge){.kind = NFA_FREE, .to = state_of(p, e[i].to, at.y)});
        for (int j = p->part.state[at.y].edge; j >= 0 && e[i].kind == NFA_BYTES; j = e[j].next)
            if (e[j].kind == NFA_BYTES) link_bytes(p, at.state, e + i, e + j);
    }
    for (int j = p->part.state[at.y].edge; j >= 0 && !p->g->rc; j = e[j].next)
        if (e[j].kind == NFA_FREE) nfa_add_edge(p->a, p->g, at.state, (struct nfa_edge){.kind = NFA_FREE, .to = state_of(p, at.x, e[j].to)});
    link_plain(p, at);
}

/* ---- links ---- */

/* Back to the first turns of the outer `nest` repetitions that it is in. */
static int back(const struct nfa *a, int q, int nest)
{
    while (a->state[q].like >= 0 && a->state[q].nest <= nest) q = a->state[q].like;
    return q;
}

/* What pairs have in common that are kin at a level: all but the turn of y; that and the turn of the outermost repetition of x; or all turns. */
static struct pair key_of(const struct product *p, int i, int level)
{
    static const int nest[] = {-1, 1, INT_MAX};
    return (struct pair){back(&p->part, p->pair[i].x, nest[level - 1]), back(&p->part, p->pair[i].y, INT_MAX), 0};
}

/* The first pair with the key of pair i among those asked for. */
static int first_kin(struct product *p, int i, int level)
{
    struct pair key = key_of(p, i, level);
    unsigned h = hash(key.x, key.y) & (unsigned)p->mask;
    for (; p->slot[h]; h = (h + 1) & (unsigned)p->mask) {
        struct pair have = key_of(p, p->slot[h] - 1, level);
        if (have.x == key.x && have.y == key.y) return p->slot[h] - 1;
    }
    p->slot[h] = i + 1;
    return i;
}

/* A link goes to the first of a state's kin at the lowest level at which it is not the first itself. */
static void link_kin(struct product *p)
{
    for (int level = 1; level <= 3; level++) {
        memset(p->slot, 0, sizeof *p->slot * (size_t)(p->mask + 1));
        for (int i = 0; i < p->done; i++) {
            struct nfa_state *x = p->a->state + p->pair[i].state;
            int first = x->like < 0 ? first_kin(p, i, level) : i;
            if (first == i) continue;
            x->like = p->pair[first].state;
            x->left = -level;
        }
    }
}

/* ---- turns that may be the last ---- */

/* Earlier turns of x take all that later ones do, so they do so beside the same y. Where there is no state of the first turn beside that y, the first
 * met of the others is the place of all; not of those of another repetition, to which it would look like the first turn's. */
static void place_turns(struct product *p, int i)
{
    const struct nfa_state *x = p->part.state + p->pair[i].x;
    int own = p->pair[i].state, at = x->may ? pair_of(p, x->place, p->pair[i].y, own) : -1;
    if (at < 0) return;
    struct nfa_state *both = p->a->state + own;
    both->place = p->pair[at].state;
    both->turns = x->turns;
    if (at < p->done || both->place == own || p->a->state[both->place].may == x->may) both->may = x->may;
}

int nfa_build_and(struct nfa *a, struct grammar *g, int from, int x, int y)
{
    struct product p = {.a = a, .g = g};
    int x0 = nfa_add_state(&p.part, g), x1 = nfa_build_expr(&p.part, g, x0, x);
    int y0 = nfa_add_state(&p.part, g), y1 = nfa_build_expr(&p.part, g, y0, y);
    if (!g->rc) nfa_add_edge(a, g, from, (struct nfa_edge){.kind = NFA_FREE, .to = state_of(&p, x0, y0)});
    while (!g->rc && p.done < p.n) link_pair(&p, p.pair[p.done++]);
    int to = g->rc ? -1 : state_of(&p, x1, y1);
    for (int i = 0; i < p.done && !g->rc; i++) place_turns(&p, i);
    if (!g->rc) link_kin(&p);
    nfa_free(&p.part);
    free(p.pair);
    free(p.slot);
    return to;
}
