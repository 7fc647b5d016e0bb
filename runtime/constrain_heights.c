/* What is known about a grammar before any text is read: which rules take the empty text, which begin with themselves, and how deep rules must
 * at least nest from a state to its rule's end. All by walking edges backwards, once each. */
#include "constrain_nfa.h"
#include <stdlib.h>
#include <string.h>

struct facts {
    struct nfa *a;
    const struct grammar *g;
    int *from;             /* [n_edge], and the rest: all owned */
    int *into, *into_at;   /* edges by the state they lead to: into[into_at[q] .. into_at[q + 1]) */
    int *calls, *calls_at; /* call edges by rule */
    int *queue, *later;    /* states of this level and of the next */
    int *start_of, *n_in;  /* state -> the rule that starts there, -1; per rule: beginnings of others with it */
    char *empty, *noisy;   /* per state: reaches its accept by nothing; a byte or a call lies before the accept */
    int n, n_later;
};

/* Fills at[] and list[] with edges by key. */
static void sort_edges(const struct facts *f, int *at, int *list, int n_key, int by_rule)
{
    const struct nfa *a = f->a;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < a->n_edge; i++) {
            int key = by_rule ? a->edge[i].rule : a->edge[i].to;
            if (by_rule && a->edge[i].kind != NFA_CALL) continue;
            if (pass) list[at[key]++] = i;
            else at[key + 1]++;
        }
        for (int k = 0; !pass && k < n_key; k++) at[k + 1] += at[k];
    }
    memmove(at + 1, at, sizeof *at * (size_t)n_key);
    at[0] = 0;
}

static int open_facts(struct facts *f, struct nfa *a, const struct grammar *g, struct q_err *e)
{
    size_t ns = (size_t)a->n_state + 2, ne = (size_t)a->n_edge + 1, nr = (size_t)a->n_rule + 2;
    *f = (struct facts){.a = a, .g = g};
    f->from = calloc(2 * ne + ns + ne + nr + 3 * ns + nr, sizeof *f->from);
    f->empty = calloc(2 * ns, 1);
    if (!f->from || !f->empty) return q_fail(e, Q_EMEM, "no memory for a grammar's automaton");
    f->into = f->from + ne;
    f->into_at = f->into + ne;
    f->calls = f->into_at + ns;
    f->calls_at = f->calls + ne;
    f->queue = f->calls_at + nr;
    f->later = f->queue + ns;
    f->start_of = f->later + ns;
    f->n_in = f->start_of + ns;
    f->noisy = f->empty + ns;
    for (int q = 0; q < a->n_state; q++) {
        f->start_of[q] = -1;
        for (int i = a->state[q].edge; i >= 0; i = a->edge[i].next) f->from[i] = q;
    }
    for (int r = 0; r < a->n_rule; r++) f->start_of[a->rule[r].start] = r;
    sort_edges(f, f->into_at, f->into, a->n_state, 0);
    sort_edges(f, f->calls_at, f->calls, a->n_rule, 1);
    return Q_OK;
}

/* ---- the empty text ---- */

static void mark(struct facts *f, char *set, int q)
{
    if (set[q]) return;
    set[q] = 1;
    f->queue[f->n++] = q;
}

static void mark_callers(struct facts *f, int rule)
{
    struct nfa *a = f->a;
    a->rule[rule].nullable = 1;
    for (int i = f->calls_at[rule]; i < f->calls_at[rule + 1]; i++)
        if (f->empty[a->edge[f->calls[i]].to]) mark(f, f->empty, f->from[f->calls[i]]);
}

static void find_empty(struct facts *f)
{
    struct nfa *a = f->a;
    f->n = 0;
    for (int r = 0; r < a->n_rule; r++) mark(f, f->empty, a->rule[r].accept);
    for (int at = 0; at < f->n; at++) {
        int q = f->queue[at];
        if (f->start_of[q] >= 0) mark_callers(f, f->start_of[q]);
        for (int i = f->into_at[q]; i < f->into_at[q + 1]; i++) {
            const struct nfa_edge *x = a->edge + f->into[i];
            if (x->kind == NFA_FREE || (x->kind == NFA_CALL && a->rule[x->rule].nullable)) mark(f, f->empty, f->from[f->into[i]]);
        }
    }
}

static void find_noisy(struct facts *f)
{
    struct nfa *a = f->a;
    f->n = 0;
    for (int i = 0; i < a->n_edge; i++)
        if (a->edge[i].kind != NFA_FREE) mark(f, f->noisy, f->from[i]);
    for (int at = 0; at < f->n; at++)
        for (int i = f->into_at[f->queue[at]]; i < f->into_at[f->queue[at] + 1]; i++)
            if (a->edge[f->into[i]].kind == NFA_FREE) mark(f, f->noisy, f->from[f->into[i]]);
}

/* ---- heights ---- */

static void reach(struct facts *f, int q, int height, int now)
{
    struct nfa_state *s = f->a->state + q;
    if (height >= s->height) return;
    s->height = height;
    if (height == now) f->queue[f->n++] = q;
    else f->later[f->n_later++] = q;
}

/* A call is over its callee's nesting, but a call at the very end of a rule opens nothing: the rule is done with. */
static void reach_call(struct facts *f, int edge, int now)
{
    const struct nfa *a = f->a;
    const struct nfa_edge *x = a->edge + edge;
    int callee = a->state[a->rule[x->rule].start].height, rest = a->state[x->to].height;
    if (callee > now || rest > now) return;
    callee += f->noisy[x->to];
    reach(f, f->from[edge], callee > rest ? callee : rest, now);
}

static void find_level(struct facts *f, int now)
{
    const struct nfa *a = f->a;
    for (int at = 0; at < f->n; at++) {
        int q = f->queue[at], rule = f->start_of[q];
        if (a->state[q].height != now) continue;
        for (int i = f->into_at[q]; i < f->into_at[q + 1]; i++) {
            if (a->edge[f->into[i]].kind == NFA_CALL) reach_call(f, f->into[i], now);
            else reach(f, f->from[f->into[i]], now, now);
        }
        for (int i = rule < 0 ? 0 : f->calls_at[rule]; rule >= 0 && i < f->calls_at[rule + 1]; i++) reach_call(f, f->calls[i], now);
    }
}

static void find_heights(struct facts *f)
{
    f->n = 0;
    for (int r = 0; r < f->a->n_rule; r++) reach(f, f->a->rule[r].accept, 0, 0);
    for (int now = 0; f->n; now++) {
        f->n_later = 0;
        find_level(f, now);
        int *swap = f->queue;
        f->queue = f->later;
        f->later = swap;
        f->n = f->n_later;
    }
}

/* ---- left recursion ---- */

/* Rules that rule r may begin with: calls[] gets them, once each edge. */
static int beginnings(struct facts *f, int r, char *seen, int *list)
{
    const struct nfa *a = f->a;
    int n = 0;
    f->n = 0;
    mark(f, seen, a->rule[r].start);
    for (int at = 0; at < f->n; at++) {
        for (int i = a->state[f->queue[at]].edge; i >= 0; i = a->edge[i].next) {
            const struct nfa_edge *x = a->edge + i;
            if (x->kind == NFA_CALL) list[n++] = x->rule;
            if (x->kind == NFA_FREE || (x->kind == NFA_CALL && a->rule[x->rule].nullable)) mark(f, seen, x->to);
        }
    }
    return n;
}

/* Takes rules that no other begins with away, until none is left, or a circle. The states of `seen` belong to one rule each. */
static int find_circle(struct facts *f, char *seen, int *list, int *ready)
{
    const struct nfa *a = f->a;
    int n = 0, done = 0;
    for (int r = 0; r < a->n_rule; r++)
        for (int i = beginnings(f, r, seen, list); i-- > 0;) f->n_in[list[i]]++;
    memset(seen, 0, (size_t)a->n_state);
    for (int r = 0; r < a->n_rule; r++)
        if (!f->n_in[r]) ready[n++] = r;
    for (; done < n; done++)
        for (int i = beginnings(f, ready[done], seen, list); i-- > 0;)
            if (!--f->n_in[list[i]]) ready[n++] = list[i];
    for (int r = 0; n < a->n_rule && r < a->n_rule; r++)
        if (f->n_in[r]) return r;
    return -1;
}

static int check_circle(struct facts *f, struct q_err *e)
{
    const struct nfa *a = f->a;
    int *list = malloc(sizeof *list * (size_t)(a->n_edge + a->n_rule + 1));
    char *seen = calloc((size_t)a->n_state + 1, 1);
    int rc = Q_OK;
    if (list && seen) {
        int r = find_circle(f, seen, list, list + a->n_edge);
        if (r >= 0) rc = q_fail(e, Q_EINPUT, "the rule '%s' begins with itself (left recursion), or is part of such a circle", f->g->rule[r].name);
    } else {
        rc = q_fail(e, Q_EMEM, "no memory for a grammar's automaton");
    }
    free(list);
    free(seen);
    return rc;
}

/* Rules of parts of a schema are called by their path: the deepest of those that no text fits, or NULL. */
static const char *impossible_part(const struct facts *f)
{
    const struct expr_rule *deepest = NULL;
    for (int r = 0; r < f->g->n_rule; r++) {
        const struct expr_rule *x = &f->g->rule[r];
        if (*x->name != '#' || f->a->state[f->a->rule[r].start].height != NFA_NEVER) continue;
        if (!deepest || x->n_name > deepest->n_name) deepest = x;
    }
    return deepest ? deepest->name : NULL;
}

static int check_root(const struct facts *f, struct q_err *e)
{
    int height = f->a->state[f->a->rule[f->g->root].start].height;
    const char *part = height == NFA_NEVER ? impossible_part(f) : NULL;
    if (part) return q_fail(e, Q_EINPUT, "no text fits the schema at %.200s: what it asks for contradicts itself, or has no end", part);
    if (height == NFA_NEVER) return q_fail(e, Q_EINPUT, "no text fits: the rule '%s' never comes to an end", f->g->rule[f->g->root].name);
    if (height > NFA_MAX_HEIGHT) return q_fail(e, Q_ELIMIT, "every text nests %d rules deep, at most %d can be", height, NFA_MAX_HEIGHT);
    return Q_OK;
}

int nfa_heights(struct nfa *a, const struct grammar *g, struct q_err *e)
{
    struct facts f;
    int rc = open_facts(&f, a, g, e);
    if (!rc) {
        find_empty(&f);
        find_noisy(&f);
        rc = check_circle(&f, e);
    }
    if (!rc) find_heights(&f);
    if (!rc) rc = check_root(&f, e);
    free(f.from);
    free(f.empty);
    return rc;
}
