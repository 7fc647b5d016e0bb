/* Special tokens in text: finding them (the leftmost, of those the longest), and marks that keep strings from outside from
 * being read as control tokens. All of Qwen's 26 start with '<', so the scan is a search for one byte in practice; there are
 * few with one first byte, and each is compared at a place once. */
#define _GNU_SOURCE /* memmem */
#include "tok_impl.h"
#include <stdlib.h>
#include <string.h>

static const char MARK[3] = {(char)0xEF, (char)0xB7, (char)0x90}; /* U+FDD0 */

int tok_is_control(const struct tokenizer *t, int32_t id)
{
    return t->type[id] == TOK_CONTROL || t->type[id] == TOK_UNKNOWN;
}

static int is_special(const struct tokenizer *t, int32_t id)
{
    return t->text[id].n && (tok_is_control(t, id) || t->type[id] == TOK_USER);
}

static size_t char_length(struct tok_str s)
{
    uint32_t cp;
    return utf8_get((const unsigned char *)s.at, &cp);
}

/* A mark goes after a control token's first character, and is no character of one. */
static int check_guardable(const struct tokenizer *t, int32_t id, const char *where, struct q_err *e)
{
    struct tok_str s = t->text[id];
    if (!tok_is_control(t, id)) return Q_OK;
    if (char_length(s) == s.n)
        return q_fail(e, Q_EUNSUP, "%s: control token %d is the single character '%.*s': text could not be told from it",
                      where, (int)id, (int)s.n, s.at);
    if (memmem(s.at, s.n, MARK, sizeof MARK))
        return q_fail(e, Q_EUNSUP, "%s: control token %d contains U+FDD0, which marks text here", where, (int)id);
    return Q_OK;
}

static unsigned char first_byte(const struct tokenizer *t, int32_t id)
{
    return (unsigned char)t->text[id].at[0];
}

/* qsort has no argument for a context; an insertion sort over the few special tokens of one first byte needs none. */
static void sort_by_length(const struct tokenizer *t, int32_t *id, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        int32_t v = id[i];
        uint32_t k = i;
        for (; k > 0 && t->text[id[k - 1]].n < t->text[v].n; k--) id[k] = id[k - 1];
        id[k] = v;
    }
}

static int check_count(uint32_t n, const char *where, struct q_err *e)
{
    enum { MOST = 4096 }; /* a match compares against all that share a first byte */
    if (n <= MOST) return Q_OK;
    return q_fail(e, Q_ELIMIT, "%s: %u special tokens, expected at most %d", where, n, MOST);
}

int tok_specials_init(struct tokenizer *t, const char *where, struct q_err *e)
{
    struct tok_specials *sp = &t->specials;
    for (int32_t id = 0; id < t->n; id++) {
        if (!is_special(t, id)) continue;
        sp->first[first_byte(t, id) + 1]++;
        sp->n++;
        int rc = check_guardable(t, id, where, e);
        if (rc) return rc;
    }
    int rc = check_count(sp->n, where, e);
    if (rc) return rc;
    sp->id = malloc((sp->n + 1) * sizeof *sp->id);
    if (!sp->id) return q_fail(e, Q_EMEM, "%s: out of memory for %u special tokens", where, sp->n);
    for (int b = 0; b < 256; b++) sp->first[b + 1] += sp->first[b];
    uint32_t put[256];
    memcpy(put, sp->first, sizeof put);
    for (int32_t id = 0; id < t->n; id++)
        if (is_special(t, id)) sp->id[put[first_byte(t, id)]++] = id;
    for (int b = 0; b < 256; b++) sort_by_length(t, sp->id + sp->first[b], sp->first[b + 1] - sp->first[b]);
    return Q_OK;
}

/* Tokens of one family differ at their ends: the last byte first saves most comparisons. n > 0. */
static int same_bytes(const char *a, const char *b, size_t n)
{
    return a[n - 1] == b[n - 1] && !memcmp(a, b, n);
}

int32_t tok_special_at(const struct tokenizer *t, const char *s, size_t n)
{
    const struct tok_specials *sp = &t->specials;
    unsigned b = (unsigned char)s[0];
    for (uint32_t i = sp->first[b]; i < sp->first[b + 1]; i++) {
        struct tok_str x = t->text[sp->id[i]];
        if (x.n <= n && same_bytes(x.at, s, x.n)) return sp->id[i];
    }
    return -1;
}

size_t tok_special_scan(const struct tokenizer *t, const char *s, size_t n, size_t at)
{
    const struct tok_specials *sp = &t->specials;
    if (!sp->n || at >= n) return n;
    unsigned b = first_byte(t, sp->id[0]);
    if (sp->first[b + 1] - sp->first[b] == sp->n) {
        const char *hit = memchr(s + at, (int)b, n - at);
        return hit ? (size_t)(hit - s) : n;
    }
    for (; at < n; at++) {
        b = (unsigned char)s[at];
        if (sp->first[b] != sp->first[b + 1]) return at;
    }
    return n;
}

/* ---- marks ---- */

/* Does s[0..n) begin with a control token, or is it all the start of one? */
static int begins_control(const struct tokenizer *t, const char *s, size_t n)
{
    const struct tok_specials *sp = &t->specials;
    unsigned b = (unsigned char)s[0];
    for (uint32_t i = sp->first[b]; i < sp->first[b + 1]; i++) {
        struct tok_str x = t->text[sp->id[i]];
        if (tok_is_control(t, sp->id[i]) && same_bytes(x.at, s, x.n < n ? x.n : n)) return 1;
    }
    return 0;
}

static int is_mark(const char *s, size_t n)
{
    return n >= sizeof MARK && !memcmp(s, MARK, sizeof MARK);
}

/* One pass of tok_guard: writes at dst, or only counts where dst is NULL. Returns the length of the guarded string. */
static size_t guard_pass(const struct tokenizer *t, const char *s, size_t n, char *dst)
{
    size_t k = 0;
    for (size_t i = 0; i < n;) {
        size_t len = 1;
        int own = is_mark(s + i, n - i), mark = own;
        if (own) len = sizeof MARK;
        else if (begins_control(t, s + i, n - i)) {
            while (i + len < n && ((unsigned char)s[i + len] & 0xC0) == 0x80) len++;
            mark = 1;
        }
        if (dst) memcpy(dst + k, s + i, len);
        if (dst && mark) memcpy(dst + k + len, MARK, sizeof MARK);
        k += len + (mark ? sizeof MARK : 0);
        i += len;
    }
    return k;
}

int tok_guard(const struct tokenizer *t, const char *text, size_t n, char **out, size_t *out_n, struct q_err *e)
{
    *out = NULL;
    *out_n = guard_pass(t, text, n, NULL);
    if (*out_n == n) return Q_OK;
    *out = malloc(*out_n);
    if (!*out) return q_fail(e, Q_EMEM, "out of memory to guard %zu bytes of text", n);
    guard_pass(t, text, n, *out);
    return Q_OK;
}

static int add_mark(struct tok_marks *m, size_t at)
{
    if (m->n == m->cap) {
        size_t cap = m->cap * 2 + 16;
        size_t *p = realloc(m->at, cap * sizeof *p);
        if (!p) return -1;
        m->at = p;
        m->cap = cap;
    }
    m->at[m->n++] = at;
    return 0;
}

int tok_unguard(const char *s, size_t n, char **out, size_t *out_n, struct tok_marks *marks, struct q_err *e)
{
    char *dst = malloc(n ? n : 1);
    size_t k = 0, i = 0;
    if (!dst) goto fail;
    while (i < n) {
        const char *hit = memmem(s + i, n - i, MARK, sizeof MARK);
        size_t plain = hit ? (size_t)(hit - (s + i)) : n - i;
        memcpy(dst + k, s + i, plain);
        k += plain;
        i += plain;
        if (!hit) break;
        i += sizeof MARK;
        if (is_mark(s + i, n - i)) { /* a pair: the text's own U+FDD0 */
            memcpy(dst + k, MARK, sizeof MARK);
            k += sizeof MARK;
            i += sizeof MARK;
        } else if (add_mark(marks, k)) {
            goto fail;
        }
    }
    *out = dst;
    *out_n = k;
    return Q_OK;
fail:
    free(dst);
    return q_fail(e, Q_EMEM, "out of memory to read %zu bytes of guarded text", n);
}
