/* Spots: sets of a rule's automaton states, by bytes and by calls. */
#include "constrain_pda.h"
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

static void describe_spot(struct pda *s, int at)
{
    const struct nfa *a = &s->p->nfa;
    struct spot *x = s->spot + at;
    *x = (struct spot){.n_call = -1, .height = NFA_NEVER};
    int calls = 0;
    for (int i = 0; i < s->spots.item[at].n; i++) {
        int q = s->spots.item[at].at[i];
        if (s->p->accept[q]) x->accept = 1;
        if (a->state[q].height < x->height) x->height = a->state[q].height;
        for (int j = a->state[q].edge; j >= 0; j = a->edge[j].next) {
            x->takes_byte |= a->edge[j].kind == NFA_BYTES;
            calls |= a->edge[j].kind == NFA_CALL;
        }
    }
    if (!calls) x->n_call = 0;
    x->done = x->accept && !calls && !x->takes_byte;
}

/* Puts q, and what is reached from it by nothing, into the closure being made. */
static void visit(struct pda *s, int q)
{
    if (s->mark[q] == s->closure || s->p->nfa.state[q].height == NFA_NEVER) return;
    s->mark[q] = s->closure;
    pda_push(s, &s->scratch->queue, q);
}

static int matters(const struct pda *s, int q)
{
    for (int j = s->p->nfa.state[q].edge; j >= 0; j = s->p->nfa.edge[j].next)
        if (s->p->nfa.edge[j].kind != NFA_FREE) return 1;
    return s->p->accept[q];
}

static void begin_closure(struct pda *s)
{
    s->closure++;
    s->scratch->queue.n = s->scratch->set.n = 0;
}

int pda_spot_of(struct pda *s, const int *set, int n)
{
    int fresh = 0, at = pda_pool_number(&s->spots, &s->arena, set, n, &fresh);
    if (at < 0 || (fresh && !pda_room(s, &s->spot, at, &s->cap_spot, sizeof *s->spot))) return pda_fail(s, Q_EMEM);
    if (fresh) describe_spot(s, at);
    return at;
}

/* In turns that may be the last an earlier one takes all that a later one does: of states at the same place of them the earliest is enough, and
 * a text that may be counted in many ways (([a-z]{1,12} ?){2,20}) does not lead to as many states. */
static void drop_covered(struct pda *s)
{
    const struct nfa_state *state = s->p->nfa.state;
    struct ints *set = &s->scratch->set;
    int n = 0;
    for (int i = 0; i < set->n; i++) {
        const struct nfa_state *q = state + set->at[i];
        struct pda_turn *best = q->may ? s->turn + q->place : NULL;
        if (best && (best->closure != s->closure || (best->may == q->may && best->turns < q->turns)))
            *best = (struct pda_turn){s->closure, q->may, q->turns};
    }
    for (int i = 0; i < set->n; i++) {
        const struct nfa_state *q = state + set->at[i];
        int covered = 0;
        if (q->may) covered = s->turn[q->place].may == q->may && s->turn[q->place].turns > q->turns;
        if (q->may && state[q->place].may != q->may) covered |= s->mark[q->place] == s->closure; /* the first turn's */
        if (!covered) set->at[n++] = set->at[i];
    }
    set->n = n;
}

static int end_closure(struct pda *s)
{
    const struct nfa *a = &s->p->nfa;
    struct ints *queue = &s->scratch->queue, *set = &s->scratch->set;
    for (int i = 0; i < queue->n; i++) {
        int q = queue->at[i];
        if (matters(s, q)) pda_push(s, set, q);
        for (int j = a->state[q].edge; j >= 0; j = a->edge[j].next)
            if (a->edge[j].kind == NFA_FREE || (a->edge[j].kind == NFA_CALL && a->rule[a->edge[j].rule].nullable)) visit(s, a->edge[j].to);
    }
    if (!pda_work(s, (size_t)queue->n * 4 + 1) || !set->n) return 0;
    if (set->n > 1) drop_covered(s);
    if (set->n > 1) qsort(set->at, (size_t)set->n, sizeof *set->at, compare);
    return pda_spot_of(s, set->at, set->n);
}

int pda_spot_start(struct pda *s, int rule)
{
    begin_closure(s);
    visit(s, s->p->nfa.rule[rule].start);
    return end_closure(s);
}

int pda_spot_like(struct pda *s, int spot, int bytes)
{
    const struct nfa_state *state = s->p->nfa.state;
    struct pool_item x = s->spots.item[spot];
    struct ints *set = &s->scratch->set;
    int same = 1, n = 0;
    set->n = 0;
    for (int i = 0; i < x.n; i++) {
        int q = x.at[i];
        while (state[q].like >= 0 && state[q].left >= bytes) q = state[q].like;
        same &= q == x.at[i];
        pda_push(s, set, q);
    }
    if (same || s->rc) return spot;
    qsort(set->at, (size_t)set->n, sizeof *set->at, compare);
    for (int i = 0; i < set->n; i++)
        if (!n || set->at[i] != set->at[n - 1]) set->at[n++] = set->at[i];
    return pda_spot_of(s, set->at, n);
}

int *pda_row(struct pda *s)
{
    int *row = pda_arena_take(&s->arena, sizeof *row * (size_t)s->p->n_class);
    if (!row) return pda_fail(s, Q_EMEM), NULL;
    memset(row, 0xFF, sizeof *row * (size_t)s->p->n_class);
    return row;
}

int pda_spot_next(struct pda *s, int spot, int class)
{
    const struct nfa *a = &s->p->nfa;
    if (s->spot[spot].next && s->spot[spot].next[class] >= 0) return s->spot[spot].next[class];
    if (!s->spot[spot].next && !(s->spot[spot].next = pda_row(s))) return 0;
    unsigned char byte = s->p->byte_of[class];
    struct pool_item set = s->spots.item[spot];
    begin_closure(s);
    for (int i = 0; i < set.n; i++)
        for (int j = a->state[set.at[i]].edge; j >= 0; j = a->edge[j].next)
            if (a->edge[j].kind == NFA_BYTES && byte >= a->edge[j].lo && byte <= a->edge[j].hi) visit(s, a->edge[j].to);
    if (!pda_work(s, (size_t)set.n * 4)) return 0;
    int to = end_closure(s);
    if (!s->rc) s->spot[spot].next[class] = to;
    return to;
}

int pda_spot_plain(struct pda *s, int spot)
{
    const struct nfa_state *state = s->p->nfa.state;
    struct pool_item set = s->spots.item[spot];
    begin_closure(s);
    for (int i = 0; i < set.n; i++) {
        int to = state[set.at[i]].plain;
        if (to == NFA_PLAIN_MANY) return -1;
        if (to >= 0) visit(s, to);
    }
    return end_closure(s);
}

/* Fills scratch->calls with (rule, state behind the call), ordered. */
static void list_calls(struct pda *s, int spot)
{
    const struct nfa *a = &s->p->nfa;
    struct pool_item set = s->spots.item[spot];
    struct ints *calls = &s->scratch->calls;
    calls->n = 0;
    for (int i = 0; i < set.n; i++)
        for (int j = a->state[set.at[i]].edge; j >= 0; j = a->edge[j].next)
            if (a->edge[j].kind == NFA_CALL && a->state[a->rule[a->edge[j].rule].start].height != NFA_NEVER) {
                pda_push(s, calls, a->edge[j].rule);
                pda_push(s, calls, a->edge[j].to);
            }
    if (!s->rc && calls->n > 2) qsort(calls->at, (size_t)calls->n / 2, 2 * sizeof *calls->at, compare);
}

int pda_spot_calls(struct pda *s, int spot)
{
    if (s->spot[spot].n_call >= 0) return s->spot[spot].n_call;
    list_calls(s, spot);
    struct ints *calls = &s->scratch->calls;
    int n = 0;
    struct spot_call *own = s->rc ? NULL : pda_arena_take(&s->arena, sizeof *own * (size_t)(calls->n / 2 + 1));
    if (!own) return pda_fail(s, Q_EMEM);
    for (int i = 0; i < calls->n && !s->rc;) {
        int rule = calls->at[i];
        begin_closure(s);
        for (; i < calls->n && calls->at[i] == rule; i += 2) visit(s, calls->at[i + 1]);
        int after = end_closure(s);
        if (after) own[n++] = (struct spot_call){rule, 0, after};
    }
    for (int i = 0; i < n && !s->rc; i++) own[i].start = pda_spot_start(s, own[i].rule);
    if (s->rc) return 0;
    s->spot[spot].call = own;
    return s->spot[spot].n_call = n;
}
