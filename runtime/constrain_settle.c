/* From the places that a byte led to, to a state: rules that have ended are left, then rules that come next are entered.
 *
 * Places at the same spot become one, whose stack holds what all of them had below. Spots that are called get their stacks from their callers,
 * callers first: as no rule begins with itself there is such an order. */
#include "constrain_pda.h"
#include <stdlib.h>

/* Pairs on one stack are linked, the last added first. What a stack says of its last holds if that is a pair of now on this stack: pairs of before
 * are gone, and whoever added one on it now has written it anew. */
void pda_add_pair(struct pda *s, int spot, int stack)
{
    struct pda_scratch *c = s->scratch;
    int *last = &s->stack[stack].last, n = c->n_pair;
    int before = *last < n && c->pair[*last].stack == stack ? *last : -1;
    for (int i = before; i >= 0; i = c->before[i])
        if (c->pair[i].spot == spot) return;
    if (!pda_work(s, 1) || !pda_room(s, &c->pair, n, &c->cap_pair, sizeof *c->pair)) return;
    if (!pda_room(s, &c->before, n, &c->cap_before, sizeof *c->before)) return;
    c->before[n] = before;
    c->pair[n] = (struct pair){spot, stack};
    *last = c->n_pair++;
}

/* Lets what lies below ended rules go on. Returns whether the whole text may end. */
static int pop(struct pda *s)
{
    int may_end = 0;
    for (int i = 0; i < s->scratch->n_pair && !s->rc; i++) {
        struct pair at = s->scratch->pair[i];
        if (!s->spot[at.spot].accept) continue;
        struct pool_item below = s->stacks.item[at.stack];
        for (int j = 0; j < below.n; j += 2) {
            if (below.at[j] < 0) may_end = 1;
            else pda_add_pair(s, below.at[j], below.at[j + 1]);
        }
    }
    return may_end;
}

static int node_of(struct pda *s, int spot)
{
    struct pda_scratch *c = s->scratch;
    struct spot *x = s->spot + spot;
    if (x->epoch == s->settled) return x->node;
    if (!pda_room(s, &c->node, c->n_node, &c->cap_node, sizeof *c->node)) return 0;
    x->epoch = s->settled;
    c->node[c->n_node] = (struct settle_node){spot, 0, -1, -1};
    return x->node = c->n_node++;
}

static void put_below(struct pda *s, int node, int spot, int stack)
{
    struct pda_scratch *c = s->scratch;
    if (!pda_work(s, 1) || !pda_room(s, &c->below, c->n_below, &c->cap_below, sizeof *c->below)) return;
    c->below[c->n_below] = (struct below){{spot, stack}, c->node[node].first};
    c->node[node].first = c->n_below++;
}

static void put_all_below(struct pda *s, int node, int stack)
{
    struct pool_item x = s->stacks.item[stack];
    for (int j = 0; j < x.n; j += 2) put_below(s, node, x.at[j], x.at[j + 1]);
}

/* The spots of the pairs, and all that are called from there, as nodes. */
static void find_nodes(struct pda *s)
{
    struct pda_scratch *c = s->scratch;
    c->n_node = c->n_below = 0;
    s->settled++;
    for (int i = 0; i < c->n_pair && !s->rc; i++) {
        int node = node_of(s, c->pair[i].spot);
        if (!s->rc) put_all_below(s, node, c->pair[i].stack);
    }
    for (int i = 0; i < c->n_node && !s->rc; i++) {
        int spot = c->node[i].spot, n = pda_spot_calls(s, spot);
        for (int j = 0; j < n && pda_work(s, 1); j++) {
            int node = node_of(s, s->spot[spot].call[j].start);
            if (!s->rc) c->node[node].n_in++;
        }
    }
}

/* The node's stack is complete: what it calls gets its own. */
static void call_from(struct pda *s, const struct settle_node *node)
{
    const struct spot *x = s->spot + node->spot;
    int stack = node->stack, depth = s->stack[stack].depth;
    for (int j = 0; j < x->n_call && !s->rc; j++) {
        struct spot_call call = x->call[j];
        int tail = s->spot[call.after].done, above = depth + !tail;
        if (above + s->spot[call.start].height > NFA_MAX_HEIGHT || depth + s->spot[call.after].height > NFA_MAX_HEIGHT) continue;
        if (tail) put_all_below(s, s->spot[call.start].node, stack);
        else put_below(s, s->spot[call.start].node, call.after, stack);
    }
}

/* -1: nobody who could call it does, or its rule could not end any more. */
static int node_stack(struct pda *s, const struct settle_node *node)
{
    struct pda_scratch *c = s->scratch;
    c->n_pair = 0;
    for (int i = node->first; i >= 0; i = c->below[i].next) {
        if (!pda_room(s, &c->pair, c->n_pair, &c->cap_pair, sizeof *c->pair)) return -1;
        c->pair[c->n_pair++] = c->below[i].pair;
    }
    int stack = c->n_pair ? pda_stack(s, c->pair, c->n_pair) : -1;
    return s->rc || stack < 0 || s->stack[stack].depth + s->spot[node->spot].height > NFA_MAX_HEIGHT ? -1 : stack;
}

static void enter(struct pda *s)
{
    struct pda_scratch *c = s->scratch;
    c->order.n = 0;
    for (int i = 0; i < c->n_node; i++)
        if (!c->node[i].n_in) pda_push(s, &c->order, i);
    for (int done = 0; done < c->order.n && !s->rc; done++) {
        struct settle_node *node = c->node + c->order.at[done];
        const struct spot *x = s->spot + node->spot;
        for (int j = 0; j < x->n_call; j++)
            if (!--c->node[s->spot[x->call[j].start].node].n_in) pda_push(s, &c->order, s->spot[x->call[j].start].node);
        node->stack = node_stack(s, node);
        if (node->stack >= 0) call_from(s, node);
    }
}

static int state_number(struct pda *s, int may_end)
{
    struct pda_scratch *c = s->scratch;
    int fresh, reach = 0;
    c->n_pair = 0;
    for (int i = 0; i < c->n_node; i++) {
        struct pair at = {c->node[i].spot, c->node[i].stack};
        if (at.stack < 0 || !s->spot[at.spot].takes_byte) continue;
        int here = s->stack[at.stack].depth + s->spot[at.spot].height;
        if (here < s->stack[at.stack].reach) here = s->stack[at.stack].reach;
        if (here > reach) reach = here;
        if (!pda_room(s, &c->pair, c->n_pair, &c->cap_pair, sizeof *c->pair)) return 0;
        c->pair[c->n_pair++] = at;
    }
    int n = pda_sort_pairs(c->pair, c->n_pair);
    c->set.n = 0;
    pda_push(s, &c->set, may_end);
    for (int i = 0; i < n; i++) {
        pda_push(s, &c->set, c->pair[i].spot);
        pda_push(s, &c->set, c->pair[i].stack);
    }
    int at = s->rc ? -1 : pda_pool_number(&s->all, &s->arena, c->set.at, c->set.n, &fresh);
    if (at < 0 || (fresh && !pda_room(s, &s->state, at, &s->cap_state, sizeof *s->state))) return pda_fail(s, Q_EMEM);
    if (fresh) s->state[at] = (struct state){.reach = reach, .may_end = (char)may_end};
    return at;
}

/* Inside a text there mostly is one place, where nothing ends and nothing is called: all that the rest does would give just that. */
static int is_simple(struct pda *s)
{
    const struct pair *at = s->scratch->pair;
    if (s->scratch->n_pair != 1) return 0;
    const struct spot *x = s->spot + at->spot;
    return !x->accept && x->takes_byte && s->stack[at->stack].depth + x->height <= NFA_MAX_HEIGHT && pda_spot_calls(s, at->spot) == 0 && !s->rc;
}

int pda_settle(struct pda *s, int may_end)
{
    if (!may_end && is_simple(s)) return pda_single(s, s->scratch->pair->spot, s->scratch->pair->stack);
    may_end |= pop(s);
    find_nodes(s);
    enter(s);
    return s->rc ? 0 : state_number(s, may_end);
}
