#include "constrain_expr.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void grammar_start(struct grammar *g, struct q_err *e)
{
    *g = (struct grammar){.e = e, .root = -1};
    expr_empty(g);
}

void grammar_free(struct grammar *g)
{
    for (int i = 0; i < g->n_rule; i++) free(g->rule[i].name);
    free(g->node);
    free(g->kid);
    free(g->range);
    free(g->byte);
    free(g->rule);
    *g = (struct grammar){.root = -1};
}

void grammar_fail(struct grammar *g, int code, const char *fmt, ...)
{
    char line[900];
    if (g->rc) return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    g->rc = q_fail(g->e, code, "%s", line);
}

/* Room for `more` items behind *n; 0 when there is none, which is then recorded. */
static int room(struct grammar *g, void *array, int n, int *cap, int more, size_t size)
{
    void **at = array;
    if (g->rc) return 0;
    if (more > GRAMMAR_MAX_NODES * 4 - n) return grammar_fail(g, Q_ELIMIT, "the grammar is too large"), 0;
    if (n + more <= *cap) return 1;
    int want = n + more + *cap / 2 + 64;
    void *p = realloc(*at, (size_t)want * size);
    if (!p) return grammar_fail(g, Q_EMEM, "no memory for a grammar"), 0;
    *at = p;
    *cap = want;
    return 1;
}

static int add_node(struct grammar *g, struct expr_node x)
{
    if (g->n_node >= GRAMMAR_MAX_NODES) grammar_fail(g, Q_ELIMIT, "the grammar has more than %d parts", GRAMMAR_MAX_NODES);
    if (!room(g, &g->node, g->n_node, &g->cap_node, 1, sizeof *g->node)) return 0;
    g->node[g->n_node] = x;
    return g->n_node++;
}

int expr_empty(struct grammar *g) { return g->n_node ? 0 : add_node(g, (struct expr_node){.kind = X_EMPTY}); }

int expr_nothing(struct grammar *g) { return add_node(g, (struct expr_node){.kind = X_NOTHING}); }

static int add_bytes(struct grammar *g, enum expr_kind kind, const char *s, size_t n)
{
    if (n > GRAMMAR_MAX_TEXT) grammar_fail(g, Q_ELIMIT, "a text of the grammar has %zu bytes, more than %d", n, GRAMMAR_MAX_TEXT);
    if (!room(g, &g->byte, g->n_byte, &g->cap_byte, (int)n, 1)) return 0;
    if (n) memcpy(g->byte + g->n_byte, s, n);
    g->n_byte += (int)n;
    return add_node(g, (struct expr_node){.kind = kind, .at = g->n_byte - (int)n, .n = (int)n});
}

int expr_text(struct grammar *g, const char *s, size_t n) { return n ? add_bytes(g, X_TEXT, s, n) : 0; }

int expr_until(struct grammar *g, enum expr_kind kind, const char *tag) { return add_bytes(g, kind, tag, strlen(tag)); }

/* ---- classes ---- */

static int by_lo(const void *a, const void *b)
{
    const struct expr_range *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void add_range(struct grammar *g, uint32_t lo, uint32_t hi)
{
    if (lo > hi || !room(g, &g->range, g->n_range, &g->cap_range, 1, sizeof *g->range)) return;
    g->range[g->n_range++] = (struct expr_range){lo, hi};
}

/* Without what is no character of a text. */
static void add_characters(struct grammar *g, uint32_t lo, uint32_t hi)
{
    if (lo == 0) lo = 1;
    if (hi > 0x10FFFF) hi = 0x10FFFF;
    if (lo < 0xD800) add_range(g, lo, hi < 0xD7FF ? hi : 0xD7FF);
    if (hi > 0xDFFF) add_range(g, lo > 0xE000 ? lo : 0xE000, hi);
}

static int add_class(struct grammar *g, enum expr_kind kind, int at)
{
    if (g->rc) return 0;
    if (g->n_range == at) return expr_nothing(g);
    return add_node(g, (struct expr_node){.kind = kind, .at = at, .n = g->n_range - at});
}

/* Sorted and joined, in new memory; NULL: recorded. */
static struct expr_range *sorted(struct grammar *g, const struct expr_range *r, int *n)
{
    struct expr_range *s = g->rc ? NULL : malloc(sizeof *s * (size_t)(*n + 1));
    int k = 0;
    if (!s) return grammar_fail(g, Q_EMEM, "no memory for a grammar"), NULL;
    if (*n) memcpy(s, r, sizeof *s * (size_t)*n);
    qsort(s, (size_t)*n, sizeof *s, by_lo);
    for (int i = 0; i < *n; i++) {
        if (k && s[i].lo <= s[k - 1].hi + 1) {
            if (s[i].hi > s[k - 1].hi) s[k - 1].hi = s[i].hi;
        } else {
            s[k++] = s[i];
        }
    }
    *n = k;
    return s;
}

int expr_class(struct grammar *g, enum expr_kind kind, const struct expr_range *r, int n)
{
    struct expr_range *s = sorted(g, r, &n);
    int at = g->n_range;
    for (int i = 0; s && i < n; i++) add_characters(g, s[i].lo, s[i].hi);
    free(s);
    return add_class(g, kind, at);
}

int expr_class_not(struct grammar *g, enum expr_kind kind, const struct expr_range *r, int n)
{
    struct expr_range *s = sorted(g, r, &n);
    int at = g->n_range;
    uint32_t next = 0;
    for (int i = 0; s && i < n; i++) {
        if (s[i].lo > next) add_characters(g, next, s[i].lo - 1);
        next = s[i].hi + 1;
    }
    if (next <= 0x10FFFF) add_characters(g, next, 0x10FFFF);
    free(s);
    return add_class(g, kind, at);
}

/* ---- joined ---- */

int expr_join(struct grammar *g, enum expr_kind kind, const int *kids, int n)
{
    if (n == 1) return kind == X_PARTS ? 0 : kids[0];
    if (n == 0) return kind == X_SEQ ? 0 : expr_nothing(g);
    if (!room(g, &g->kid, g->n_kid, &g->cap_kid, n, sizeof *g->kid)) return 0;
    memcpy(g->kid + g->n_kid, kids, sizeof *kids * (size_t)n);
    g->n_kid += n;
    return add_node(g, (struct expr_node){.kind = kind, .at = g->n_kid - n, .n = n});
}

int expr_repeat(struct grammar *g, int kid, int min, int max)
{
    if (min > GRAMMAR_MAX_COUNT || max > GRAMMAR_MAX_COUNT)
        grammar_fail(g, Q_ELIMIT, "a repetition of %d times, more than %d", min > max ? min : max, GRAMMAR_MAX_COUNT);
    if (min == 1 && max == 1) return kid;
    if (max == 0) return 0;
    return add_node(g, (struct expr_node){.kind = X_REPEAT, .at = kid, .n = 1, .min = min, .max = max});
}

int expr_rule(struct grammar *g, int rule) { return add_node(g, (struct expr_node){.kind = X_RULE, .rule = rule}); }

/* ---- lengths ---- */

enum { LONG_ENOUGH = 1 << 30 };

static int times(int n, int count)
{
    long long product = (long long)n * count;
    if (!n || !count) return 0;
    return n < 0 || count < 0 ? -1 : product < LONG_ENOUGH ? (int)product : LONG_ENOUGH;
}

static int plus(int a, int b) { return a < 0 || b < 0 ? -1 : a + b < LONG_ENOUGH ? a + b : LONG_ENOUGH; }

static int characters(const char *s, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++) count += ((unsigned char)s[i] & 0xC0) != 0x80;
    return count;
}

static void join_lengths(enum expr_kind kind, int l, int m, int *least, int *most)
{
    if (kind == X_SEQ) {
        *least = plus(*least, l);
        *most = plus(*most, m);
        return;
    }
    if (l < *least) *least = l;
    if (m < 0 || (*most >= 0 && m > *most)) *most = m;
}

void expr_lengths(const struct grammar *g, int x, int *least, int *most)
{
    const struct expr_node *n = &g->node[x];
    int l, m;
    *least = 0;
    *most = n->kind == X_EMPTY ? 0 : -1;
    if (n->kind == X_TEXT) *least = *most = characters(g->byte + n->at, n->n);
    if (n->kind == X_CLASS || n->kind == X_JSON) *least = *most = 1;
    if (n->kind == X_REPEAT) {
        expr_lengths(g, n->at, &l, &m);
        *least = times(l, n->min);
        *most = times(m, n->max);
    }
    if (n->kind != X_SEQ && n->kind != X_ALT) return;
    expr_lengths(g, g->kid[n->at], least, most);
    for (int i = 1; i < n->n; i++) {
        expr_lengths(g, g->kid[n->at + i], &l, &m);
        join_lengths(n->kind, l, m, least, most);
    }
}

int grammar_rule(struct grammar *g, const char *name, size_t n)
{
    if (!room(g, &g->rule, g->n_rule, &g->cap_rule, 1, sizeof *g->rule)) return 0;
    char *own = strndup(name, n < 80 ? n : 80);
    if (!own) return grammar_fail(g, Q_EMEM, "no memory for a grammar"), 0;
    g->rule[g->n_rule] = (struct expr_rule){own, (int)strlen(own), -1};
    return g->n_rule++;
}

void grammar_define(struct grammar *g, int rule, int body)
{
    if (!g->rc) g->rule[rule].body = body;
}

void expr_kids_add(struct grammar *g, struct expr_kids *k, int x)
{
    if (room(g, &k->at, k->n, &k->cap, 1, sizeof *k->at)) k->at[k->n++] = x;
}

int expr_kids_join(struct grammar *g, enum expr_kind kind, struct expr_kids *k)
{
    int x = g->rc ? 0 : expr_join(g, kind, k->at, k->n);
    free(k->at);
    *k = (struct expr_kids){0};
    return x;
}
