/* Expressions to automata. Every construct begins at a state that is there and returns the state behind it; no edge ever leads back
 * into the state it began at, so that alternatives may share it. */
#include "constrain_nfa.h"
#include "constrain_bytes.h"
#include "constrain_text.h"
#include <stdlib.h>
#include <string.h>

void nfa_free(struct nfa *a)
{
    free(a->state);
    free(a->edge);
    free(a->rule);
    *a = (struct nfa){0};
}

static int grow(struct grammar *g, void *array, int n, int *cap, size_t size)
{
    void **at = array;
    if (n < *cap) return 1;
    int want = *cap * 2 + 256;
    void *p = realloc(*at, (size_t)want * size);
    if (!p) return grammar_fail(g, Q_EMEM, "no memory for a grammar's automaton"), 0;
    *at = p;
    *cap = want;
    return 1;
}

int nfa_add_state(struct nfa *a, struct grammar *g)
{
    if (a->n_state >= NFA_MAX_STATES)
        grammar_fail(g, Q_ELIMIT, "the grammar needs more than %d states; long repetitions and long lists do that", NFA_MAX_STATES);
    if (g->rc || !grow(g, &a->state, a->n_state, &a->cap_state, sizeof *a->state)) return -1;
    a->state[a->n_state] = (struct nfa_state){.edge = -1, .height = NFA_NEVER, .like = -1, .plain = NFA_PLAIN_NONE};
    return a->n_state++;
}

void nfa_add_edge(struct nfa *a, struct grammar *g, int from, struct nfa_edge edge)
{
    if (a->n_edge >= NFA_MAX_EDGES) grammar_fail(g, Q_ELIMIT, "the grammar needs more than %d edges", NFA_MAX_EDGES);
    if (g->rc || from < 0 || edge.to < 0 || !grow(g, &a->edge, a->n_edge, &a->cap_edge, sizeof *a->edge)) return;
    edge.next = a->state[from].edge;
    a->edge[a->n_edge] = edge;
    a->state[from].edge = a->n_edge++;
    if (edge.kind == NFA_BYTES && text_may_begin(edge.lo, edge.hi)) a->state[from].plain = NFA_PLAIN_MANY;
}

static void add_free(struct nfa *a, struct grammar *g, int from, int to)
{
    if (from != to) nfa_add_edge(a, g, from, (struct nfa_edge){.to = to, .kind = NFA_FREE});
}

static void add_bytes(struct nfa *a, struct grammar *g, int from, int lo, int hi, int to)
{
    nfa_add_edge(a, g, from, (struct nfa_edge){.to = to, .kind = NFA_BYTES, .lo = (unsigned char)lo, .hi = (unsigned char)hi});
}

static void add_set(struct nfa *a, struct grammar *g, int from, const struct byte_set *s, int to)
{
    for (int i = 0; i < s->n; i++) add_bytes(a, g, from, s->lo[i], s->hi[i], to);
}

static int build_text(struct nfa *a, struct grammar *g, int from, const char *s, int n)
{
    for (int i = 0; i < n && !g->rc; i++) {
        int to = nfa_add_state(a, g);
        add_bytes(a, g, from, (unsigned char)s[i], (unsigned char)s[i], to);
        from = to;
    }
    return from;
}

/* ---- one character ---- */

/* Sequences with a common end share its states. */
struct tail {
    struct byte_set set;
    int to, state;
};
enum { TAILS = 512 };

struct char_build {
    struct nfa *a;
    struct grammar *g;
    int from, to, n;
    struct tail tail[TAILS]; /* beyond these, states are not shared */
};

static int tail(struct char_build *c, const struct byte_set *s, int to)
{
    for (int i = 0; i < c->n; i++)
        if (c->tail[i].to == to && !memcmp(&c->tail[i].set, s, sizeof *s)) return c->tail[i].state;
    int state = nfa_add_state(c->a, c->g);
    add_set(c->a, c->g, state, s, to);
    if (c->n < TAILS) c->tail[c->n++] = (struct tail){*s, to, state};
    return state;
}

static void put_sequence(void *arg, const struct byte_set *s, int n)
{
    struct char_build *c = arg;
    int to = c->to;
    for (int i = n; i-- > 1 && !c->g->rc;) to = tail(c, s + i, to);
    add_set(c->a, c->g, c->from, s, to);
}

/* What a state's plain characters do once it has the class's edges too; `was`: what they did before. */
static int add_plain(const struct grammar *g, const struct expr_node *x, int was, int to)
{
    int has = text_has_plain(g->range + x->at, x->n);
    if (has < 0 || was == NFA_PLAIN_MANY) return NFA_PLAIN_MANY;
    return !has ? was : was == NFA_PLAIN_NONE ? to : NFA_PLAIN_MANY;
}

static int build_class(struct nfa *a, struct grammar *g, int from, const struct expr_node *x)
{
    int was = a->state[from].plain;
    struct char_build *c = malloc(sizeof *c);
    if (!c) return grammar_fail(g, Q_EMEM, "no memory for a grammar's automaton"), -1;
    *c = (struct char_build){.a = a, .g = g, .from = from, .to = nfa_add_state(a, g)};
    for (int i = 0; i < x->n && !g->rc; i++) {
        struct expr_range r = g->range[x->at + i];
        if (x->kind == X_JSON) bytes_json(r, put_sequence, c);
        else bytes_utf8(r, put_sequence, c);
    }
    int to = c->to;
    free(c);
    if (!g->rc) a->state[from].plain = add_plain(g, x, was, to);
    return to;
}

/* ---- text up to a tag, or without it ---- */

/* The longest beginning of the tag that tag[0, j) followed by c ends with. */
static int longest(const char *tag, int j, char c)
{
    for (int k = j; k >= 0; k--)
        if (tag[k] == c && !memcmp(tag, tag + j - k, (size_t)k)) return k + 1;
    return 0;
}

/* State j has seen j bytes of the tag. A character that is not ASCII goes back to none. */
static int build_tag(struct nfa *a, struct grammar *g, int from, const struct expr_node *x)
{
    int n = x->n, state[64];
    if (n < 1 || n > 63) return grammar_fail(g, Q_EINTERNAL, "a tag of %d bytes", n), -1;
    for (int j = 0; j <= n; j++) state[j] = nfa_add_state(a, g);
    int all = expr_class(g, X_CLASS, &(struct expr_range){0x80, 0x10FFFF}, 1);
    if (g->rc) return -1;
    struct expr_node wide = g->node[all];
    const char *tag = g->byte + x->at;
    add_free(a, g, from, state[0]);
    for (int j = 0; j < n && !g->rc; j++) {
        for (int c = 1; c < 128; c++) add_bytes(a, g, state[j], c, c, state[longest(tag, j, (char)c)]);
        add_free(a, g, build_class(a, g, state[j], &wide), state[0]);
    }
    if (x->kind == X_UNTIL) return state[n];
    int to = nfa_add_state(a, g);
    for (int j = 0; j < n; j++) add_free(a, g, state[j], to);
    return to;
}

/* ---- joined ---- */

static int is_text(const struct expr_node *x) { return x->kind == X_CLASS || x->kind == X_JSON || x->kind == X_TEXT; }

/* Whether every text of the expression has a byte, as far as that can be seen at once: of rules only those that are a character or a text. */
static int has_a_byte(const struct grammar *g, int at)
{
    const struct expr_node *x = g->node + at;
    int with = 0;
    if (x->kind == X_RULE) return g->rule[x->rule].body >= 0 && is_text(g->node + g->rule[x->rule].body);
    if (x->kind == X_REPEAT) return x->min > 0 && has_a_byte(g, x->at);
    if (x->kind != X_SEQ && x->kind != X_ALT) return is_text(x);
    for (int i = 0; i < x->n; i++) {
        with += has_a_byte(g, g->kid[x->at + i]);
        if (with != (x->kind == X_ALT) * (i + 1)) break;
    }
    return x->kind == X_ALT ? x->n > 0 && with == x->n : with;
}

/* Turns of a repetition, each of as many states and at least a byte. Up to its end they are like its first turn. */
struct turns {
    int end;   /* the turn that ends it */
    int first; /* of these turns */
    int base;  /* first state of the first turn */
    int on, may;
};

static void begin_turn(const struct nfa *a, struct turns *t, int i)
{
    if (i == t->first) t->base = a->n_state;
}

static void end_turn(struct nfa *a, const struct turns *t, int i, int begin)
{
    if (!t->on || i == t->first) return;
    for (int q = begin; q < a->n_state; q++) {
        a->state[q].like = a->state[q].place = q - begin + t->base;
        a->state[q].left = a->state[q].turns = t->end - i - 1;
        a->state[q].nest = a->nest;
        a->state[q].may = t->may ? t->base + 1 : 0;
    }
}

/* The kid n times over. */
static int build_times(struct nfa *a, struct grammar *g, int from, int kid, int n, int on)
{
    struct turns must = {.end = n, .on = on};
    for (int i = 0, was = -1; i < n && !g->rc && from != was; i++) {
        int begin = a->n_state;
        was = from; /* a kid that is the empty text need not be repeated */
        begin_turn(a, &must, i);
        from = nfa_build_expr(a, g, from, kid);
        end_turn(a, &must, i, begin);
    }
    return from;
}

/* Any number of times. */
static int build_loop(struct nfa *a, struct grammar *g, int from, int kid)
{
    int loop = nfa_add_state(a, g);
    add_free(a, g, from, loop);
    add_free(a, g, nfa_build_expr(a, g, loop, kid), loop);
    return loop;
}

/* The turns min to max - 1, each of which may be the end. */
static int build_some(struct nfa *a, struct grammar *g, int from, int kid, int min, int max, int on)
{
    struct turns may = {.end = max, .first = min, .on = on, .may = 1};
    int to = nfa_add_state(a, g);
    for (int i = min; i < max && !g->rc; i++) {
        int begin = a->n_state;
        begin_turn(a, &may, i);
        add_free(a, g, from, to);
        int at = nfa_add_state(a, g);
        add_free(a, g, from, at);
        from = nfa_build_expr(a, g, at, kid);
        end_turn(a, &may, i, begin);
    }
    add_free(a, g, from, to);
    return to;
}

static int build_repeat(struct nfa *a, struct grammar *g, int from, const struct expr_node *x)
{
    int kid = x->at, min = x->min, max = x->max, on = has_a_byte(g, kid);   /* x moves when the grammar grows */
    a->nest++;
    from = build_times(a, g, from, kid, min, on);
    from = max < 0 ? build_loop(a, g, from, kid) : build_some(a, g, from, kid, min, max, on);
    a->nest--;
    return from;
}

static int build_alt(struct nfa *a, struct grammar *g, int from, const struct expr_node *x)
{
    int to = nfa_add_state(a, g);
    for (int i = 0; i < x->n && !g->rc; i++) add_free(a, g, nfa_build_expr(a, g, from, g->kid[x->at + i]), to);
    return to;
}

/* Before part i: `none` when no part came yet, `some` when one did; both lead, the latter over a separator, to where the part begins. */
static int build_parts(struct nfa *a, struct grammar *g, int from, const struct expr_node *x)
{
    int none = from, some = nfa_add_state(a, g);
    for (int i = 1; i + 1 < x->n && !g->rc; i += 2) {
        int begin = nfa_add_state(a, g), next_none = nfa_add_state(a, g), next_some = nfa_add_state(a, g), must = g->kid[x->at + i + 1];
        if (none >= 0) add_free(a, g, none, begin);
        add_free(a, g, nfa_build_expr(a, g, some, g->kid[x->at]), begin);
        add_free(a, g, nfa_build_expr(a, g, begin, g->kid[x->at + i]), next_some);
        if (none >= 0 && !must) add_free(a, g, none, next_none);
        if (!must) add_free(a, g, some, next_some);
        none = must ? -1 : next_none;
        some = next_some;
    }
    if (none >= 0) add_free(a, g, none, some);
    return some;
}

static int build_call(struct nfa *a, struct grammar *g, int from, int rule)
{
    int to = nfa_add_state(a, g);
    nfa_add_edge(a, g, from, (struct nfa_edge){.to = to, .kind = NFA_CALL, .rule = rule});
    return to;
}

int nfa_build_expr(struct nfa *a, struct grammar *g, int from, int at)
{
    if (g->rc || from < 0) return -1;
    struct expr_node x = g->node[at];
    switch (x.kind) {
    case X_EMPTY: return from;
    case X_NOTHING: return nfa_add_state(a, g);
    case X_TEXT: return build_text(a, g, from, g->byte + x.at, x.n);
    case X_CLASS:
    case X_JSON: return build_class(a, g, from, &x);
    case X_SEQ:
        for (int i = 0; i < x.n && !g->rc; i++) from = nfa_build_expr(a, g, from, g->kid[x.at + i]);
        return from;
    case X_ALT: return build_alt(a, g, from, &x);
    case X_REPEAT: return build_repeat(a, g, from, &x);
    case X_RULE: return build_call(a, g, from, x.rule);
    case X_PARTS: return build_parts(a, g, from, &x);
    case X_AND: return nfa_build_and(a, g, from, g->kid[x.at], g->kid[x.at + 1]);
    case X_UNTIL:
    case X_AVOID: return build_tag(a, g, from, &x);
    }
    return -1;
}

/* They grew by doubling, and programs are kept by what they take. */
static void fit(void *array, int n, int *cap, size_t size)
{
    void **at = array, *p = realloc(*at, (size_t)n * size + 1);
    if (!p) return;
    *at = p;
    *cap = n;
}

int nfa_build(struct nfa *a, struct grammar *g)
{
    *a = (struct nfa){.n_rule = g->n_rule};
    if (g->rc) return g->rc;
    a->rule = calloc((size_t)g->n_rule + 1, sizeof *a->rule);
    if (!a->rule) grammar_fail(g, Q_EMEM, "no memory for a grammar's automaton");
    for (int i = 0; i < g->n_rule && !g->rc; i++) {
        a->rule[i].start = nfa_add_state(a, g);
        a->rule[i].accept = nfa_build_expr(a, g, a->rule[i].start, g->rule[i].body);
    }
    if (g->rc) return nfa_free(a), g->rc;
    fit(&a->state, a->n_state, &a->cap_state, sizeof *a->state);
    fit(&a->edge, a->n_edge, &a->cap_edge, sizeof *a->edge);
    return Q_OK;
}
