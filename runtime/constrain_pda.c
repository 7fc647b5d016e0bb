#include "constrain_pda.h"
#include <stdlib.h>
#include <string.h>

int pda_fail(struct pda *s, int code)
{
    if (!s->rc) s->rc = code;
    return 0;
}

int pda_room(struct pda *s, void *array, int n, int *cap, size_t size)
{
    void **at = array;
    if (n < *cap) return 1;
    int want = *cap * 2 + 64;
    void *p = realloc(*at, (size_t)want * size);
    if (!p) return pda_fail(s, Q_EMEM);
    *at = p;
    *cap = want;
    return 1;
}

void pda_push(struct pda *s, struct ints *list, int x)
{
    if (pda_room(s, &list->at, list->n, &list->cap, sizeof *list->at)) list->at[list->n++] = x;
}

int pda_work(struct pda *s, size_t n)
{
    s->work += n;
    if (s->work > s->most_work || s->arena.used > PDA_MAX) return pda_fail(s, Q_ELIMIT);
    return !s->rc;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return x->spot != y->spot ? (x->spot < y->spot ? -1 : 1) : x->stack < y->stack ? -1 : x->stack > y->stack;
}

int pda_sort_pairs(struct pair *pair, int n)
{
    int k = 0;
    if (n > 1) qsort(pair, (size_t)n, sizeof *pair, compare_pairs);
    for (int i = 0; i < n; i++)
        if (!k || compare_pairs(pair + i, pair + k - 1)) pair[k++] = pair[i];
    return k;
}

int pda_stack(struct pda *s, struct pair *pair, int n)
{
    int fresh, depth = 0, reach = 0;
    n = pda_sort_pairs(pair, n);
    int at = pda_pool_number(&s->stacks, &s->arena, &pair->spot, 2 * n, &fresh);
    if (at < 0 || (fresh && !pda_room(s, &s->stack, at, &s->cap_stack, sizeof *s->stack))) return pda_fail(s, Q_EMEM);
    for (int i = 0; fresh && i < n; i++) {
        if (pair[i].spot < 0) continue;
        const struct stack *below = s->stack + pair[i].stack;
        int here = below->depth + s->spot[pair[i].spot].height;
        if (below->depth >= depth) depth = below->depth + 1;
        if (below->reach > reach) reach = below->reach;
        if (here > reach) reach = here;
    }
    if (fresh) s->stack[at] = (struct stack){.depth = depth, .reach = reach > depth ? reach : depth, .resume = -1};
    return at;
}

/* Spot 0, stack 0 and state 0 are what the header says they are. */
int pda_open(struct pda *s, const struct program *p)
{
    int fresh, dead = 0;
    *s = (struct pda){.p = p, .most_work = SIZE_MAX};
    s->mark = calloc((size_t)p->nfa.n_state + 1, sizeof *s->mark);
    s->turn = calloc((size_t)p->nfa.n_state + 1, sizeof *s->turn);
    s->scratch = calloc(1, sizeof *s->scratch);
    if (!s->mark || !s->turn || !s->scratch) return pda_fail(s, Q_EMEM), s->rc;
    if (pda_pool_number(&s->spots, &s->arena, &dead, 0, &fresh) || !pda_room(s, &s->spot, 0, &s->cap_spot, sizeof *s->spot)) pda_fail(s, Q_EMEM);
    if (!s->rc) s->spot[0] = (struct spot){.height = NFA_NEVER};
    if (!s->rc) pda_stack(s, &(struct pair){-1, -1}, 1);
    if (pda_pool_number(&s->all, &s->arena, &dead, 1, &fresh) || !pda_room(s, &s->state, 0, &s->cap_state, sizeof *s->state)) pda_fail(s, Q_EMEM);
    if (!s->rc) s->state[0] = (struct state){0};
    return s->rc;
}

void pda_close(struct pda *s)
{
    struct pda_scratch *c = s->scratch;
    if (c) {
        free(c->queue.at);
        free(c->set.at);
        free(c->calls.at);
        free(c->order.at);
        free(c->pair);
        free(c->before);
        free(c->node);
        free(c->below);
        free(c);
    }
    pda_pool_free(&s->spots);
    pda_pool_free(&s->stacks);
    pda_pool_free(&s->all);
    pda_pool_free(&s->masks);
    free(s->spot);
    free(s->stack);
    free(s->state);
    free(s->mark);
    free(s->turn);
    pda_arena_free(&s->arena);
    *s = (struct pda){0};
}

int pda_start(struct pda *s, int rule)
{
    int spot = pda_spot_start(s, rule);
    s->scratch->n_pair = 0;
    if (spot) pda_add_pair(s, spot, 0);
    return pda_settle(s, 0);
}

int pda_step_new(struct pda *s, int state, int class)
{
    int n;
    if (s->rc || (!s->state[state].next && !(s->state[state].next = pda_row(s)))) return 0;
    const int *frame = pda_frames(s, state, &n);
    s->scratch->n_pair = 0;
    for (int i = 0; i < n && !s->rc; i++) {
        int spot = pda_spot_next(s, frame[2 * i], class);
        if (spot) pda_add_pair(s, spot, frame[2 * i + 1]);
    }
    int to = s->scratch->n_pair ? pda_settle(s, 0) : 0;
    if (s->rc) return 0;
    return s->state[state].next[class] = to;
}

int pda_resume(struct pda *s, int stack)
{
    int over = 0;
    if (s->rc || s->stack[stack].resume >= 0) return s->rc ? 0 : s->stack[stack].resume;
    struct pool_item x = s->stacks.item[stack];
    s->scratch->n_pair = 0;
    for (int j = 0; j < x.n; j += 2) {
        if (x.at[j] < 0) over = 1;
        else pda_add_pair(s, x.at[j], x.at[j + 1]);
    }
    int to = pda_settle(s, over);
    if (s->rc) return 0;
    return s->stack[stack].resume = to;
}

int pda_single(struct pda *s, int spot, int stack)
{
    int list[3] = {0, spot, stack}, fresh;
    int at = s->rc ? -1 : pda_pool_number(&s->all, &s->arena, list, 3, &fresh);
    if (at < 0 || (fresh && !pda_room(s, &s->state, at, &s->cap_state, sizeof *s->state))) return pda_fail(s, Q_EMEM);
    int here = s->stack[stack].depth + s->spot[spot].height, below = s->stack[stack].reach;
    if (fresh) s->state[at] = (struct state){.reach = here > below ? here : below};
    return at;
}

/* ---- into other states ---- */

static int import_spot(struct pda *to, const struct pda *from, int spot)
{
    return spot < 0 ? spot : pda_spot_of(to, from->spots.item[spot].at, from->spots.item[spot].n);
}

/* known: [from's stacks], the number in `to`, -1. */
static int import_stack(struct pda *to, const struct pda *from, int stack, int *known)
{
    struct pool_item x = from->stacks.item[stack];
    if (known[stack] >= 0) return known[stack];
    struct pair *pair = malloc(sizeof *pair * (size_t)(x.n / 2 + 1));
    if (!pair) return pda_fail(to, Q_EMEM);
    for (int i = 0; i < x.n / 2; i++)
        pair[i] = (struct pair){import_spot(to, from, x.at[2 * i]), x.at[2 * i] < 0 ? -1 : import_stack(to, from, x.at[2 * i + 1], known)};
    int at = to->rc ? 0 : pda_stack(to, pair, x.n / 2);
    free(pair);
    return known[stack] = at;
}

int pda_import(struct pda *to, const struct pda *from, int state)
{
    int n, fresh, *known = malloc(sizeof *known * (size_t)(from->stacks.n + 1));
    const int *frame = pda_frames(from, state, &n);
    struct ints list = {0};
    if (!known) return pda_fail(to, Q_EMEM);
    memset(known, 0xFF, sizeof *known * (size_t)from->stacks.n);
    pda_push(to, &list, from->state[state].may_end);
    for (int i = 0; i < n && !to->rc; i++) {
        pda_push(to, &list, import_spot(to, from, frame[2 * i]));
        pda_push(to, &list, import_stack(to, from, frame[2 * i + 1], known));
    }
    int at = to->rc ? 0 : pda_pool_number(&to->all, &to->arena, list.at, list.n, &fresh);
    free(known);
    free(list.at);
    if (to->rc || at < 0 || (fresh && !pda_room(to, &to->state, at, &to->cap_state, sizeof *to->state))) return pda_fail(to, Q_EMEM);
    if (fresh) to->state[at] = (struct state){.reach = from->state[state].reach, .may_end = from->state[state].may_end};
    return at;
}
