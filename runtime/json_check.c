#define _GNU_SOURCE /* qsort_r */
#include "json_check.h"
#include "err.h"
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key {
    size_t at, len; /* in keys of struct checker: the key with its escapes resolved */
};

/* Keys of all open objects, innermost last: an object's keys leave both arrays when it closes. */
struct checker {
    const char *start, *p, *end, *where;
    int depth, max_depth;
    char *keys;
    size_t keys_len, keys_cap;
    struct key *list;
    size_t list_len, list_cap;
    struct q_err *e;
};

/* Length of the UTF-8 character at s (n > 0 bytes left), 0 if it is malformed. */
static size_t utf8_char(const unsigned char *s, size_t n)
{
    if (s[0] < 0x80) return 1;
    size_t len = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if (s[0] == 0xE0 && s[1] < 0xA0) return 0; /* overlong */
    if (s[0] == 0xED && s[1] > 0x9F) return 0; /* surrogate */
    if (s[0] == 0xF0 && s[1] < 0x90) return 0; /* overlong */
    if (s[0] == 0xF4 && s[1] > 0x8F) return 0; /* above U+10FFFF */
    return len;
}

bool utf8_valid(const char *s, size_t n)
{
    while (n) {
        size_t len = utf8_char((const unsigned char *)s, n);
        if (!len) return false;
        s += len, n -= len;
    }
    return true;
}

/* The 4 hex digits at p; -1 if one is none. */
static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

static int put_utf8(uint32_t cp, char *out)
{
    if (cp < 0x80) return out[0] = (char)cp, 1;
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6), out[1] = (char)(0x80 | (cp & 63));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12), out[1] = (char)(0x80 | (cp >> 6 & 63)), out[2] = (char)(0x80 | (cp & 63));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18), out[1] = (char)(0x80 | (cp >> 12 & 63));
    out[2] = (char)(0x80 | (cp >> 6 & 63)), out[3] = (char)(0x80 | (cp & 63));
    return 4;
}

int json_unescape(const char **p, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = *(*p)++;
    if (c != 'u') return out[0] = to[strchr(from, c) - from], 1;
    uint32_t cp = (uint32_t)hex4(*p);
    *p += 4;
    if (cp >= 0xD800 && cp < 0xDC00) {
        cp = 0x10000 + ((cp - 0xD800) << 10) + ((uint32_t)hex4(*p + 2) - 0xDC00);
        *p += 6;
    }
    return put_utf8(cp, out);
}

/* "byte 17: expected X, found Y" at the current position. */
static int expected(struct checker *c, const char *what)
{
    unsigned char b = c->p < c->end ? (unsigned char)*c->p : 0;
    char found[24];
    if (c->p == c->end) snprintf(found, sizeof found, "the end");
    else if (b > 0x20 && b < 0x7F) snprintf(found, sizeof found, "'%c'", b);
    else snprintf(found, sizeof found, "byte 0x%02x", b);
    return q_fail(c->e, Q_EINPUT, "%s: JSON at byte %zu: expected %s, found %s", c->where, (size_t)(c->p - c->start), what,
                  found);
}

static void skip_space(struct checker *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r')) c->p++;
}

/* Checks the escape behind a backslash at c->p - 1 and moves over it. */
static int check_escape(struct checker *c)
{
    if (c->p == c->end || !*c->p || !strchr("\"\\/bfnrtu", *c->p)) return expected(c, "an escape");
    if (*c->p++ != 'u') return 0;
    int hi = c->end - c->p >= 4 ? hex4(c->p) : -1;
    if (hi < 0) return expected(c, "4 hex digits");
    if (hi == 0) return expected(c, "a character other than \\u0000");
    if (hi >= 0xDC00 && hi < 0xE000) return expected(c, "the first half of a surrogate pair");
    c->p += 4;
    if (hi < 0xD800 || hi >= 0xDC00) return 0;
    int lo = c->end - c->p >= 6 && c->p[0] == '\\' && c->p[1] == 'u' ? hex4(c->p + 2) : -1;
    if (lo < 0xDC00 || lo > 0xDFFF) return expected(c, "the second half of a surrogate pair");
    c->p += 6;
    return 0;
}

/* Checks the string at c->p and moves behind its closing quote. */
static int check_string(struct checker *c)
{
    if (c->p == c->end || *c->p != '"') return expected(c, "a string");
    c->p++;
    for (;;) {
        if (c->p == c->end) return expected(c, "'\"'");
        unsigned char b = (unsigned char)*c->p;
        if (b < 0x20) return expected(c, "no control character in a string");
        if (b == '"') return c->p++, 0;
        if (b == '\\') {
            c->p++;
            int err = check_escape(c);
            if (err) return err;
            continue;
        }
        size_t len = utf8_char((const unsigned char *)c->p, (size_t)(c->end - c->p));
        if (!len) return expected(c, "valid UTF-8");
        c->p += len;
    }
}

static bool digits(struct checker *c)
{
    const char *from = c->p;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9') c->p++;
    return c->p > from;
}

/* A number that a double cannot hold would turn into infinity further on. `text` is followed by a non-digit. */
static int check_magnitude(struct checker *c, const char *from)
{
    size_t n = (size_t)(c->p - from);
    char small[64], *copy = n < sizeof small ? small : malloc(n + 1);
    if (!copy) return q_fail(c->e, Q_EMEM, "%s: no memory to check a number of %zu digits", c->where, n);
    memcpy(copy, from, n);
    copy[n] = 0;
    bool fits = isfinite(strtod(copy, NULL));
    if (copy != small) free(copy);
    if (fits) return 0;
    c->p = from;
    return expected(c, "a number within the range of a double");
}

static int check_number(struct checker *c)
{
    const char *from = c->p;
    if (*c->p == '-') c->p++;
    if (c->p < c->end && *c->p == '0') c->p++;
    else if (!digits(c)) return expected(c, "a value");
    if (c->p < c->end && *c->p == '.') {
        c->p++;
        if (!digits(c)) return expected(c, "a digit");
    }
    if (c->p < c->end && (*c->p | 32) == 'e') {
        c->p++;
        if (c->p < c->end && (*c->p == '+' || *c->p == '-')) c->p++;
        if (!digits(c)) return expected(c, "a digit");
    }
    return c->p - from > 300 || memchr(from, 'e', (size_t)(c->p - from)) || memchr(from, 'E', (size_t)(c->p - from))
               ? check_magnitude(c, from)
               : 0;
}

static int grow(struct checker *c, void **array, size_t *cap, size_t need, size_t item)
{
    if (need <= *cap) return 0;
    size_t to = need > 2 * *cap ? need : 2 * *cap;
    void *bigger = realloc(*array, to * item);
    if (!bigger) return q_fail(c->e, Q_EMEM, "%s: no memory to check the keys of an object", c->where);
    *array = bigger;
    *cap = to;
    return 0;
}

/* Remembers the key whose text is from (behind its quote) .. to (its closing quote), escapes resolved. */
static int push_key(struct checker *c, const char *from, const char *to)
{
    size_t at = c->keys_len;
    int err = grow(c, (void **)&c->keys, &c->keys_cap, at + (size_t)(to - from), 1);
    if (!err) err = grow(c, (void **)&c->list, &c->list_cap, c->list_len + 1, sizeof *c->list);
    if (err) return err;
    while (from < to) {
        if (*from == '\\') {
            from++;
            c->keys_len += (size_t)json_unescape(&from, c->keys + c->keys_len);
        } else {
            c->keys[c->keys_len++] = *from++;
        }
    }
    c->list[c->list_len++] = (struct key){at, c->keys_len - at};
    return 0;
}

static int compare_keys(const void *a, const void *b, void *keys)
{
    const struct key *x = a, *y = b;
    if (x->len != y->len) return x->len < y->len ? -1 : 1;
    return x->len ? memcmp((const char *)keys + x->at, (const char *)keys + y->at, x->len) : 0;
}

/* Forgets the keys from `first` on, after looking for one that stands there twice. */
static int pop_keys(struct checker *c, size_t first)
{
    size_t n = c->list_len - first;
    if (n == 0) return 0;
    struct key *list = c->list + first;
    size_t keys_len = list[0].at;
    qsort_r(list, n, sizeof *list, compare_keys, c->keys);
    for (size_t i = 1; i < n; i++)
        if (compare_keys(list + i - 1, list + i, c->keys) == 0)
            return q_fail(c->e, Q_EINPUT, "%s: JSON object that ends at byte %zu: key \"%.*s\" stands there twice", c->where,
                          (size_t)(c->p - c->start), (int)(list[i].len < 60 ? list[i].len : 60), c->keys + list[i].at);
    c->list_len = first;
    c->keys_len = keys_len;
    return 0;
}

static int check_value(struct checker *c);

static int check_key(struct checker *c)
{
    const char *from = c->p + 1;
    int err = check_string(c);
    if (!err) err = push_key(c, from, c->p - 1);
    if (err) return err;
    skip_space(c);
    if (c->p == c->end || *c->p != ':') return expected(c, "':'");
    c->p++;
    return 0;
}

/* The inside of an array or object, c->p behind its opening bracket. */
static int check_members(struct checker *c, char close)
{
    size_t first_key = c->list_len;
    skip_space(c);
    if (c->p < c->end && *c->p == close) return c->p++, 0;
    for (;;) {
        skip_space(c);
        int err = close == '}' ? check_key(c) : 0;
        if (!err) err = check_value(c);
        if (err) return err;
        skip_space(c);
        if (c->p < c->end && *c->p == close) break;
        if (c->p == c->end || *c->p != ',') return expected(c, close == '}' ? "',' or '}'" : "',' or ']'");
        c->p++;
    }
    c->p++;
    return pop_keys(c, first_key);
}

static int check_word(struct checker *c, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0) return expected(c, "a value");
    c->p += n;
    return 0;
}

static int check_value(struct checker *c)
{
    skip_space(c);
    if (c->p == c->end) return expected(c, "a value");
    switch (*c->p) {
    case '"': return check_string(c);
    case 't': return check_word(c, "true");
    case 'f': return check_word(c, "false");
    case 'n': return check_word(c, "null");
    case '[':
    case '{': {
        if (c->depth == c->max_depth)
            return q_fail(c->e, Q_EINPUT, "%s: JSON at byte %zu: nested deeper than %d", c->where,
                          (size_t)(c->p - c->start), c->max_depth);
        c->depth++;
        char close = *c->p++ == '[' ? ']' : '}';
        int err = check_members(c, close);
        c->depth--;
        return err;
    }
    default: return check_number(c);
    }
}

int json_check(const char *text, size_t n, int max_depth, const char *where, struct q_err *e)
{
    struct checker c = {.start = text, .p = text, .end = text + n, .where = where, .max_depth = max_depth, .e = e};
    int err = check_value(&c);
    skip_space(&c);
    if (!err && c.p < c.end) err = expected(&c, "the end");
    free(c.keys);
    free(c.list);
    return err;
}
