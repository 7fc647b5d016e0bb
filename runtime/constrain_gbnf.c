/* GBNF, as llama.cpp reads it: rules `name ::= alternatives` of texts, classes, names and groups, each with * + ? {m} {m,} {m,n}. A rule ends at a
 * line end outside of groups, unless the line ends with | or ::=. */
#include "constrain_impl.h"
#include "json_check.h"
#include "unicode.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RULES = 2048 };

struct reader {
    struct grammar *g;
    const char *start, *p, *end;
    int depth;
};

static int line_of(const struct reader *r)
{
    int line = 1;
    for (const char *p = r->start; p < r->p && p < r->end; p++) line += *p == '\n';
    return line;
}

static void fail(struct reader *r, const char *expected)
{
    char found[40] = "the end";
    unsigned char c = r->p < r->end ? (unsigned char)*r->p : 0;
    if (r->p < r->end) snprintf(found, sizeof found, c < 0x20 || c > 0x7E ? "byte 0x%02X" : "'%c'", c);
    grammar_fail(r->g, Q_EINPUT, "grammar line %d: expected %s, found %s", line_of(r), expected, found);
}

static int at(const struct reader *r, const char *s)
{
    size_t n = strlen(s);
    return (size_t)(r->end - r->p) >= n && !memcmp(r->p, s, n);
}

static int take(struct reader *r, const char *s) { return at(r, s) ? (r->p += strlen(s), 1) : 0; }

/* White space and notes; with line ends or up to one. */
static void skip(struct reader *r, int lines)
{
    while (r->p < r->end) {
        if (*r->p == '#') while (r->p < r->end && *r->p != '\n') r->p++;
        else if (*r->p == ' ' || *r->p == '\t' || (lines && (*r->p == '\n' || *r->p == '\r'))) r->p++;
        else break;
    }
}

static int is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; }

/* The rule of that name, a new one if there is none. */
static int rule_named(struct reader *r, const char *name, size_t n)
{
    for (int i = 0; i < r->g->n_rule; i++)
        if ((size_t)r->g->rule[i].n_name == n && !memcmp(r->g->rule[i].name, name, n)) return i;
    if (r->g->n_rule >= MOST_RULES) return grammar_fail(r->g, Q_ELIMIT, "the grammar has more than %d rules", MOST_RULES), 0;
    return grammar_rule(r->g, name, n);
}

static int read_name(struct reader *r)
{
    const char *from = r->p;
    while (r->p < r->end && is_name(*r->p)) r->p++;
    if (r->p == from) return fail(r, "a rule's name"), 0;
    if (r->p - from > 64) return grammar_fail(r->g, Q_EINPUT, "grammar line %d: a rule's name is longer than 64 bytes", line_of(r)), 0;
    return rule_named(r, from, (size_t)(r->p - from));
}

/* ---- characters ---- */

static uint32_t read_hex(struct reader *r, int digits)
{
    uint32_t v = 0;
    for (int i = 0; i < digits; i++, r->p++) {
        char c = r->p < r->end ? *r->p : 0;
        if (c >= '0' && c <= '9') v = v * 16 + (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f') v = v * 16 + (uint32_t)((c | 32) - 'a' + 10);
        else return fail(r, "a hexadecimal digit"), 0;
    }
    return v;
}

/* The text is valid UTF-8. */
static uint32_t read_utf8(struct reader *r)
{
    uint32_t v;
    r->p += utf8_get((const unsigned char *)r->p, &v);
    return v;
}

static uint32_t read_char(struct reader *r)
{
    static const char from[] = "nrt\\\"[]", to[] = "\n\r\t\\\"[]";
    if (*r->p != '\\') return read_utf8(r);
    r->p++;
    if (take(r, "x")) return read_hex(r, 2);
    if (take(r, "u")) return read_hex(r, 4);
    if (take(r, "U")) return read_hex(r, 8);
    const char *which = r->p < r->end && *r->p ? strchr(from, *r->p) : NULL;
    if (!which) return fail(r, "one of n r t \\ \" [ ] x u U behind a backslash"), 0;
    r->p++;
    return (unsigned char)to[which - from];
}

static size_t put_utf8(uint32_t c, char *to)
{
    int more = c >= 0x10000 ? 3 : c >= 0x800 ? 2 : c >= 0x80 ? 1 : 0;
    to[0] = (char)(more ? (0xFF00u >> (more + 1) & 0xFF) | c >> 6 * more : c);
    for (int i = 1; i <= more; i++) to[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3F));
    return (size_t)more + 1;
}

static int read_text(struct reader *r)
{
    const char *from = r->p;
    char *text = malloc((size_t)(r->end - r->p) + 8);
    size_t n = 0;
    if (!text) return grammar_fail(r->g, Q_EMEM, "no memory for a grammar"), 0;
    while (!r->g->rc && r->p < r->end && *r->p != '"' && *r->p != '\n') {
        uint32_t c = read_char(r);
        if (!c || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            grammar_fail(r->g, Q_EINPUT, "grammar line %d: U+%04X is no character of a text", line_of(r), (unsigned)c);
        else n += put_utf8(c, text + n);
    }
    if (!r->g->rc && !take(r, "\"")) r->p = from, fail(r, "a text with its closing quote on the same line");
    int x = expr_text(r->g, text, n);
    free(text);
    return x;
}

static int read_class(struct reader *r)
{
    struct expr_range *range = malloc(sizeof *range * (size_t)(r->end - r->p + 1));
    int n = 0, not = take(r, "^");
    if (!range) return grammar_fail(r->g, Q_EMEM, "no memory for a grammar"), 0;
    while (!r->g->rc && r->p < r->end && *r->p != ']') {
        range[n].lo = range[n].hi = read_char(r);
        if (r->end - r->p > 1 && *r->p == '-' && r->p[1] != ']') r->p++, range[n].hi = read_char(r);
        if (range[n].hi < range[n].lo)
            grammar_fail(r->g, Q_EINPUT, "grammar line %d: a range from U+%04X down to U+%04X", line_of(r), range[n].lo, range[n].hi);
        n++;
    }
    if (!r->g->rc && !take(r, "]")) fail(r, "a ] that ends the class");
    int x = (not ? expr_class_not : expr_class)(r->g, X_CLASS, range, n);
    free(range);
    return x;
}

/* ---- what is repeated ---- */

static int read_count(struct reader *r)
{
    int n = 0;
    if (r->p == r->end || *r->p < '0' || *r->p > '9') return fail(r, "a number of times"), 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        if (n <= GRAMMAR_MAX_COUNT) n = n * 10 + (*r->p - '0');
    return n;
}

static int read_times(struct reader *r, int x)
{
    int min = read_count(r), max = min;
    skip(r, 1);
    if (take(r, ",")) {
        skip(r, 1);
        max = at(r, "}") ? -1 : read_count(r);
        skip(r, 1);
    }
    if (!r->g->rc && !take(r, "}")) fail(r, "a } behind the number of times");
    if (!r->g->rc && max >= 0 && max < min) grammar_fail(r->g, Q_EINPUT, "grammar line %d: at least %d times and at most %d", line_of(r), min, max);
    return expr_repeat(r->g, x, min, max);
}

static int read_repeats(struct reader *r, int x)
{
    for (;;) {
        const char *before = r->p;
        skip(r, r->depth > 0);
        if (r->g->rc) return 0;
        if (take(r, "*")) x = expr_repeat(r->g, x, 0, -1);
        else if (take(r, "+")) x = expr_repeat(r->g, x, 1, -1);
        else if (take(r, "?")) x = expr_repeat(r->g, x, 0, 1);
        else if (take(r, "{")) skip(r, 1), x = read_times(r, x);
        else return r->p = before, x;
    }
}

static int read_alternatives(struct reader *r);

static int read_group(struct reader *r)
{
    if (r->depth == GRAMMAR_MAX_DEPTH) grammar_fail(r->g, Q_ELIMIT, "grammar line %d: groups nest more than %d deep", line_of(r), r->depth);
    if (r->g->rc) return 0;
    r->depth++;
    int x = read_alternatives(r);
    r->depth--;
    if (!r->g->rc && !take(r, ")")) fail(r, "a ) that ends the group");
    return x;
}

/* Whether a rule begins here: NAME ::= */
static int at_rule(const struct reader *r)
{
    struct reader look = *r;
    while (look.p < look.end && is_name(*look.p)) look.p++;
    if (look.p == r->p) return 0;
    skip(&look, 0);
    return at(&look, "::=");
}

/* -1: no item begins here. */
static int read_item(struct reader *r)
{
    if (take(r, "\"")) return read_text(r);
    if (take(r, "[")) return read_class(r);
    if (take(r, ".")) return expr_class_not(r->g, X_CLASS, NULL, 0);
    if (take(r, "(")) return read_group(r);
    if (r->p < r->end && is_name(*r->p) && !at_rule(r)) return expr_rule(r->g, read_name(r));
    if (at(r, "<") || at(r, "!<")) grammar_fail(r->g, Q_EUNSUP, "grammar line %d: tokens by id or name (<...>) are not supported", line_of(r));
    return -1;
}

static int read_sequence(struct reader *r)
{
    struct expr_kids kids = {0};
    while (!r->g->rc) {
        skip(r, r->depth > 0);
        int x = read_item(r);
        if (x < 0) break;
        expr_kids_add(r->g, &kids, read_repeats(r, x));
    }
    return expr_kids_join(r->g, X_SEQ, &kids);
}

static int read_alternatives(struct reader *r)
{
    struct expr_kids kids = {0};
    skip(r, 1);
    expr_kids_add(r->g, &kids, read_sequence(r));
    while (!r->g->rc && take(r, "|")) {
        skip(r, 1);
        expr_kids_add(r->g, &kids, read_sequence(r));
    }
    return expr_kids_join(r->g, X_ALT, &kids);
}

static void read_rule(struct reader *r)
{
    const char *from = r->p;
    int rule = read_name(r);
    skip(r, 0);
    if (!r->g->rc && !take(r, "::=")) fail(r, "::= behind a rule's name");
    int body = read_alternatives(r);
    skip(r, 0);
    if (!r->g->rc && r->p < r->end && *r->p != '\n' && *r->p != '\r') fail(r, "the end of a rule");
    if (!r->g->rc && r->g->rule[rule].body >= 0) {
        r->p = from;
        grammar_fail(r->g, Q_EINPUT, "grammar line %d: the rule '%s' is there twice", line_of(r), r->g->rule[rule].name);
    }
    grammar_define(r->g, rule, body);
    skip(r, 1);
}

void constrain_read_gbnf(struct grammar *g, const struct constrain_text *text)
{
    struct reader r = {g, text->at, text->at, text->at + text->n, 0};
    if (!utf8_valid(text->at, text->n)) grammar_fail(g, Q_EINPUT, "the grammar is not UTF-8");
    for (skip(&r, 1); r.p < r.end && !g->rc;) read_rule(&r);
    for (int i = 0; i < g->n_rule && !g->rc; i++) {
        if (g->rule[i].body < 0) grammar_fail(g, Q_EINPUT, "the grammar uses the rule '%s' and does not define it", g->rule[i].name);
        if (!strcmp(g->rule[i].name, "root")) g->root = i;
    }
    if (g->root < 0) grammar_fail(g, Q_EINPUT, "the grammar has no rule 'root'");
}
