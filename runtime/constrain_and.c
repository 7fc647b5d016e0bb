/* Both of two expressions: their automata run side by side, in pairs of states. A turn of a repetition is like no earlier one here: fewer turns left
 * of one side may be too few for what the other still needs, so what goes on from the earlier may end here. */
#include "constrain_nfa.h"
#include <stdlib.h>

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
    for (int i = 0; i < p->n; i++) {
        unsigned h = hash(p->pair[i].x, p->pair[i].y) & (unsigned)p->mask;
        while (p->slot[h]) h = (h + 1) & (unsigned)p->mask;
        p->slot[h] = i + 1;
    }
    return 1;
}

/* The product's state for (x, y). */
static int state_of(struct product *p, int x, int y)
{
    if (p->g->rc || (p->n == p->cap && !rehash(p))) return -1;
    unsigned h = hash(x, y) & (unsigned)p->mask;
    for (; p->slot[h]; h = (h + 1) & (unsigned)p->mask) {
        struct pair *have = p->pair + p->slot[h] - 1;
        if (have->x == x && have->y == y) return have->state;
    }
    p->pair[p->n] = (struct pair){x, y, nfa_add_state(p->a, p->g)};
    p->slot[h] = ++p->n;
    return p->pair[p->n - 1].state;
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

int nfa_build_and(struct nfa *a, struct grammar *g, int from, int x, int y)
{
    struct product p = {.a = a, .g = g};
    int x0 = nfa_add_state(&p.part, g), x1 = nfa_build_expr(&p.part, g, x0, x);
    int y0 = nfa_add_state(&p.part, g), y1 = nfa_build_expr(&p.part, g, y0, y);
    if (!g->rc) nfa_add_edge(a, g, from, (struct nfa_edge){.kind = NFA_FREE, .to = state_of(&p, x0, y0)});
    while (!g->rc && p.done < p.n) link_pair(&p, p.pair[p.done++]);
    int to = g->rc ? -1 : state_of(&p, x1, y1);
    nfa_free(&p.part);
    free(p.pair);
    free(p.slot);
    return to;
}
