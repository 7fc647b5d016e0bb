/* Regular expressions in ECMA syntax, as expressions over characters. ^ and $ may stand at the ends of the pattern or of its topmost alternatives.
 * \d and \w are ASCII, as there; \s is what both ECMA and others call white space, \S what none does. */
#include "constrain_impl.h"
#include "json_check.h"
#include "unicode.h"
#include <stdlib.h>
#include <string.h>

struct reader {
    struct grammar *g;
    const char *start, *p, *end, *what;
    enum expr_kind kind;
    int anywhere, depth;
};

static const struct expr_range digits[] = {{'0', '9'}};
static const struct expr_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const struct expr_range spaces[] = {{'\t', '\r'}, {' ', ' '}};
static const struct expr_range all_spaces[] = {{'\t', '\r'}, {0x1C, ' '}, {0x85, 0x85}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A},
                                               {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
static const struct expr_range line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static int fail(struct reader *r, int code, const char *why)
{
    int shown = (int)(r->end - r->start < 100 ? r->end - r->start : 100);
    grammar_fail(r->g, code, "%s '%.*s', offset %d: %s", r->what, shown, r->start, (int)(r->p - r->start), why);
    return 0;
}

static int take(struct reader *r, const char *s)
{
    size_t n = strlen(s);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, s, n)) return 0;
    r->p += n;
    return 1;
}

static int peek(const struct reader *r) { return r->p < r->end ? (unsigned char)*r->p : -1; }

static uint32_t read_utf8(struct reader *r)
{
    uint32_t v;
    r->p += utf8_get((const unsigned char *)r->p, &v);
    return v;
}

/* ---- characters and classes ---- */

/* Ranges of a class as they gather. */
struct ranges {
    struct expr_range *at; /* owned */
    int n, cap;
};

static void add(struct reader *r, struct ranges *to, uint32_t lo, uint32_t hi)
{
    if (to->n == to->cap) {
        int cap = to->cap * 2 + 16;
        struct expr_range *p = realloc(to->at, sizeof *p * (size_t)cap);
        if (!p) return grammar_fail(r->g, Q_EMEM, "no memory for a pattern");
        to->at = p;
        to->cap = cap;
    }
    to->at[to->n++] = (struct expr_range){lo, hi};
}

static void add_all(struct reader *r, struct ranges *to, const struct expr_range *s, int n, int not)
{
    uint32_t next = 0;
    for (int i = 0; i < n; i++) {
        if (!not) add(r, to, s[i].lo, s[i].hi);
        else if (s[i].lo > next) add(r, to, next, s[i].lo - 1);
        next = s[i].hi + 1;
    }
    if (not) add(r, to, next, 0x10FFFF);
}

static uint32_t read_hex(struct reader *r, int digits_n)
{
    uint32_t v = 0;
    for (int i = 0; i < digits_n; i++, r->p++) {
        int c = peek(r), d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0) return (uint32_t)fail(r, Q_EINPUT, "expected a hexadecimal digit");
        v = v * 16 + (uint32_t)d;
    }
    return v;
}

static uint32_t read_unicode(struct reader *r)
{
    uint32_t v = 0;
    if (take(r, "{")) {
        for (int i = 0; i < 6 && peek(r) != '}'; i++) v = v * 16 + read_hex(r, 1);
        if (!take(r, "}")) fail(r, Q_EINPUT, "expected } behind \\u{");
        return v;
    }
    v = read_hex(r, 4);
    if (v >= 0xD800 && v < 0xDC00 && take(r, "\\u")) v = 0x10000 + ((v - 0xD800) << 10) + ((read_hex(r, 4) - 0xDC00) & 0x3FF);
    return v;
}

/* Behind a backslash: puts the ranges of a class and returns 1, or one character into *c and returns 0. */
static int read_escape(struct reader *r, struct ranges *to, uint32_t *c)
{
    static const char from[] = "nrtfv", is[] = "\n\r\t\f\v";
    int x = peek(r);
    const char *plain = x > 0 ? strchr(from, x) : NULL;
    if (x < 0) return fail(r, Q_EINPUT, "expected a character behind the backslash");
    if (x >= 0x80) return *c = read_utf8(r), 0;
    r->p++;
    switch (x) {
    case 'd':
    case 'D': return add_all(r, to, digits, COUNT(digits), x == 'D'), 1;
    case 'w':
    case 'W': return add_all(r, to, words, COUNT(words), x == 'W'), 1;
    case 's': return add_all(r, to, spaces, COUNT(spaces), 0), 1;
    case 'S': return add_all(r, to, all_spaces, COUNT(all_spaces), 1), 1;
    case 'x': return *c = read_hex(r, 2), 0;
    case 'u': return *c = read_unicode(r), 0;
    case '0': return *c = 0, fail(r, Q_EUNSUP, "a NUL is no character of a text");
    case 'b':
    case 'B': return fail(r, Q_EUNSUP, "word boundaries (\\b, \\B) are not supported");
    case 'p':
    case 'P': return fail(r, Q_EUNSUP, "Unicode properties (\\p) are not supported");
    }
    if (plain) return *c = (unsigned char)is[plain - from], 0;
    if (x == 'k' || (x >= '1' && x <= '9')) return fail(r, Q_EUNSUP, "back references are not supported");
    if ((x | 32) >= 'a' && (x | 32) <= 'z') return fail(r, Q_EUNSUP, "an escape of this letter is not supported");
    return *c = (uint32_t)x, 0;
}

/* One member of a class; returns 1 when it was a class itself. */
static int read_member(struct reader *r, struct ranges *to, uint32_t *c)
{
    if (take(r, "\\b")) return *c = '\b', 0;
    if (take(r, "\\")) return read_escape(r, to, c);
    return *c = read_utf8(r), 0;
}

static void read_members(struct reader *r, struct ranges *to)
{
    while (!r->g->rc && r->p < r->end && peek(r) != ']') {
        uint32_t lo = 0, hi = 0;
        if (read_member(r, to, &lo)) continue;
        hi = lo;
        if (r->end - r->p > 1 && r->p[0] == '-' && r->p[1] != ']') {
            r->p++;
            if (read_member(r, to, &hi)) fail(r, Q_EINPUT, "a range that ends with a class");
        }
        if (hi < lo) fail(r, Q_EINPUT, "a range whose end is before its beginning");
        add(r, to, lo, hi);
    }
}

static int read_class(struct reader *r)
{
    struct ranges to = {0};
    int not = take(r, "^");
    read_members(r, &to);
    if (!r->g->rc && !take(r, "]")) fail(r, Q_EINPUT, "expected ] at the end of a class");
    int x = (not ? expr_class_not : expr_class)(r->g, r->kind, to.at, to.n);
    free(to.at);
    return x;
}

static int one(struct reader *r, uint32_t c) { return expr_class(r->g, r->kind, &(struct expr_range){c, c}, 1); }

static int read_escaped(struct reader *r)
{
    struct ranges to = {0};
    uint32_t c = 0;
    int x = read_escape(r, &to, &c) ? expr_class(r->g, r->kind, to.at, to.n) : one(r, c);
    free(to.at);
    return x;
}

/* ---- structure ---- */

static int read_alternatives(struct reader *r);

static int read_group(struct reader *r)
{
    if (take(r, "?")) {
        int named = take(r, "P<") || (peek(r) == '<' && r->end - r->p > 1 && r->p[1] != '=' && r->p[1] != '!' && take(r, "<"));
        while (named && r->p < r->end && *r->p++ != '>') {}
        if (!named && !take(r, ":")) return fail(r, Q_EUNSUP, "look-around and flags, (?..., are not supported");
    }
    if (r->depth == GRAMMAR_MAX_DEPTH) return fail(r, Q_ELIMIT, "groups nest too deep");
    r->depth++;
    int x = read_alternatives(r);
    r->depth--;
    if (!r->g->rc && !take(r, ")")) fail(r, Q_EINPUT, "expected ) at the end of a group");
    return x;
}

/* -1: none begins here. */
static int read_atom(struct reader *r)
{
    int c = peek(r);
    if (c < 0 || c == '|' || c == ')') return -1;
    if (c == '*' || c == '+' || c == '?') return fail(r, Q_EINPUT, "nothing to repeat");
    if (c == '^' || c == '$') return fail(r, Q_EUNSUP, "^ and $ are supported only at the ends of the pattern");
    if (take(r, "(")) return read_group(r);
    if (take(r, "[")) return read_class(r);
    if (take(r, ".")) return expr_class_not(r->g, r->kind, line_ends, COUNT(line_ends));
    if (take(r, "\\")) return read_escaped(r);
    return one(r, read_utf8(r));
}

static int read_count(struct reader *r)
{
    int n = 0;
    for (; peek(r) >= '0' && peek(r) <= '9'; r->p++)
        if (n <= GRAMMAR_MAX_COUNT) n = n * 10 + (peek(r) - '0');
    return n;
}

/* {m}, {m,}, {m,n}; anything else that begins with { is text, as in ECMA. */
static int read_times(struct reader *r, int *min, int *max)
{
    const char *from = r->p++;
    int some = peek(r) >= '0' && peek(r) <= '9';
    *max = *min = read_count(r);
    if (take(r, ",")) *max = peek(r) == '}' ? -1 : read_count(r);
    if (!some || !take(r, "}")) return r->p = from, 0;
    if (*max >= 0 && *max < *min) fail(r, Q_EINPUT, "a repetition whose most is less than its least");
    return 1;
}

static int read_repeats(struct reader *r, int x)
{
    int min = 0, max = -1;
    if (take(r, "*")) {}
    else if (take(r, "+")) min = 1;
    else if (take(r, "?")) max = 1;
    else if (peek(r) != '{' || !read_times(r, &min, &max)) return x;
    take(r, "?"); /* lazy or not, the language is the same */
    if (peek(r) == '+' || peek(r) == '*') return fail(r, Q_EUNSUP, "possessive and double repetitions are not supported");
    return expr_repeat(r->g, x, min, max);
}

static int any_text(struct reader *r) { return expr_repeat(r->g, expr_class_not(r->g, r->kind, NULL, 0), 0, -1); }

static int read_sequence(struct reader *r)
{
    struct expr_kids kids = {0};
    int top = !r->depth, open_front = top && r->anywhere && !(peek(r) == '^'), open_back = top && r->anywhere;
    if (top) take(r, "^");
    if (open_front) expr_kids_add(r->g, &kids, any_text(r));
    while (!r->g->rc) {
        if (top && peek(r) == '$' && (r->end - r->p == 1 || r->p[1] == '|')) {
            r->p++;
            open_back = 0;
            break;
        }
        int x = read_atom(r);
        if (x < 0) break;
        expr_kids_add(r->g, &kids, read_repeats(r, x));
    }
    if (open_back) expr_kids_add(r->g, &kids, any_text(r));
    return expr_kids_join(r->g, X_SEQ, &kids);
}

static int read_alternatives(struct reader *r)
{
    struct expr_kids kids = {0};
    do expr_kids_add(r->g, &kids, read_sequence(r));
    while (!r->g->rc && take(r, "|"));
    return expr_kids_join(r->g, X_ALT, &kids);
}

int constrain_regex(struct grammar *g, const char *pattern, size_t n, enum expr_kind kind, int anywhere, const char *what)
{
    struct reader r = {g, pattern, pattern, pattern + n, what, kind, anywhere, 0};
    if (!utf8_valid(pattern, n)) return grammar_fail(g, Q_EINPUT, "%s is not UTF-8", what), 0;
    int x = read_alternatives(&r);
    if (!g->rc && r.p < r.end) fail(&r, Q_EINPUT, "a ) without its (");
    return x;
}

void constrain_read_regex(struct grammar *g, const struct constrain_text *text)
{
    g->root = grammar_rule(g, "regex", 5);
    grammar_define(g, g->root, constrain_regex(g, text->at, text->n, X_CLASS, 0, "regex"));
}
