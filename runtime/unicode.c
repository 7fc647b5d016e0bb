#include "unicode.h"
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

void uc_map_fill(struct uc_map *m)
{
    memset(m->prop, UC_OTHER | UC_SLOW, sizeof m->prop);
    for (unsigned i = 0; i < uc_range_count; i++)
        memset(m->prop + uc_ranges[i].first, uc_ranges[i].prop, uc_ranges[i].last - uc_ranges[i].first + 1);
}

/* ---- UTF-8 ---- */

/* The second byte carries the limits that forbid overlong forms, surrogates and code points past U+10FFFF. */
static void second_byte_limits(unsigned char lead, unsigned char *lo, unsigned char *hi)
{
    *lo = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    *hi = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
}

struct utf8_step utf8_next(const unsigned char *p, size_t n)
{
    if (n == 0) return (struct utf8_step){0, 0};
    if (p[0] < 0x80) return (struct utf8_step){1, 1};
    if (p[0] < 0xC2 || p[0] > 0xF4) return (struct utf8_step){1, 0};
    unsigned need = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    unsigned char lo, hi;
    second_byte_limits(p[0], &lo, &hi);
    for (unsigned i = 1; i < need; i++, lo = 0x80, hi = 0xBF) {
        if (i == n) return (struct utf8_step){0, 0};
        if (p[i] < lo || p[i] > hi) return (struct utf8_step){i, 0};
    }
    return (struct utf8_step){need, 1};
}

static int eight_ascii(const char *s)
{
    uint64_t w;
    memcpy(&w, s, 8);
    return (w & 0x8080808080808080u) == 0;
}

size_t utf8_check(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        if (n - i >= 8 && eight_ascii(s + i)) {
            i += 8;
            continue;
        }
        struct utf8_step step = utf8_next((const unsigned char *)s + i, n - i);
        if (!step.good) return i;
        i += step.n;
    }
    return n;
}

/* ---- NFC ----
 * A character without UC_SLOW never changes, never moves and never joins what is before it, so normalisation can start
 * afresh at each one. A stretch is: the last such character before a slow one, and all slow ones that follow. Only
 * stretches are decomposed, put into canonical order and composed; the rest is copied as it is. */

struct stretch {
    utf8proc_int32_t *cp; /* owned; the decomposed code points */
    size_t n, cap;
    uint8_t *ccc; /* owned; scratch of sort_marks: combining classes, then code points, of one run */
    utf8proc_int32_t *sorted;
};

static int stretch_reserve(struct stretch *t, size_t need)
{
    if (need <= t->cap) return 0;
    size_t cap = need + need / 2 + 64;
    void *cp = realloc(t->cp, cap * sizeof *t->cp);
    if (cp) t->cp = cp;
    void *ccc = realloc(t->ccc, cap);
    if (ccc) t->ccc = ccc;
    void *sorted = realloc(t->sorted, cap * sizeof *t->sorted);
    if (sorted) t->sorted = sorted;
    if (!cp || !ccc || !sorted) return -1;
    t->cap = cap;
    return 0;
}

static void stretch_free(struct stretch *t)
{
    free(t->cp);
    free(t->ccc);
    free(t->sorted);
}

/* Appends the canonical decomposition of text s[0..n). A character decomposes to four code points at most in every
 * Unicode version so far; 18 is what the standard allows a library to assume for any mapping. */
static int stretch_decompose(struct stretch *t, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += utf8_get((const unsigned char *)s + i, &cp);
        if (stretch_reserve(t, t->n + 18)) return -1;
        int bound = 0;
        utf8proc_ssize_t k = utf8proc_decompose_char((utf8proc_int32_t)cp, t->cp + t->n, 18,
                                                     UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, &bound);
        if (k < 0 || k > 18) return -1;
        t->n += (size_t)k;
    }
    return 0;
}

/* Stable counting sort of cp[first..first+n) by combining class: a run of marks of any length stays linear. */
static void sort_marks(struct stretch *t, size_t first, size_t n)
{
    size_t start[257] = {0};
    int sorted = 1;
    for (size_t i = 0; i < n; i++) {
        start[t->ccc[i] + 1]++;
        sorted &= i == 0 || t->ccc[i - 1] <= t->ccc[i];
    }
    if (sorted) return;
    for (int c = 0; c < 256; c++) start[c + 1] += start[c];
    for (size_t i = 0; i < n; i++) t->sorted[start[t->ccc[i]]++] = t->cp[first + i];
    memcpy(t->cp + first, t->sorted, n * sizeof *t->cp);
}

static void stretch_order(struct stretch *t)
{
    size_t run = 0;
    for (size_t i = 0; i <= t->n; i++) {
        int ccc = i < t->n ? utf8proc_get_property(t->cp[i])->combining_class : 0;
        if (ccc) {
            t->ccc[run++] = (uint8_t)ccc;
        } else {
            if (run > 1) sort_marks(t, i - run, run);
            run = 0;
        }
    }
}

/* Writes the stretch, composed, at dst; returns the bytes written. NFC may be longer than its input (an excluded composite
 * comes out in parts), so dst has room for UTF-8 of every decomposed code point. */
static size_t stretch_write(struct stretch *t, char *dst)
{
    utf8proc_ssize_t n = utf8proc_normalize_utf32(t->cp, (utf8proc_ssize_t)t->n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    size_t len = 0;
    for (utf8proc_ssize_t i = 0; i < n; i++)
        len += (size_t)utf8proc_encode_char(t->cp[i], (utf8proc_uint8_t *)dst + len);
    return len;
}

/* The next stretch of s at or after `at`: [*first, *end). Returns 0 where no slow character is left. */
static int find_stretch(const struct uc_map *m, const char *s, size_t n, size_t at, size_t *first, size_t *end)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t last = at, i = at;
    uint32_t cp;
    for (;;) {
        while (i < n && p[i] < 0x80) last = i++; /* ASCII is never slow */
        if (i >= n) return 0;
        unsigned k = utf8_get(p + i, &cp);
        if (m->prop[cp] & UC_SLOW) break;
        last = i;
        i += k;
    }
    *first = last;
    while (i < n) {
        unsigned k = utf8_get(p + i, &cp);
        if (!(m->prop[cp] & UC_SLOW)) break;
        i += k;
    }
    *end = i;
    return 1;
}

struct nfc_out {
    char *at; /* owned; NULL until something differs from the source */
    size_t n, cap;
};

static int out_reserve(struct nfc_out *o, size_t more)
{
    if (o->at && o->cap - o->n >= more) return 0;
    size_t cap = (o->n + more) + (o->n + more) / 4 + 64;
    char *at = realloc(o->at, cap);
    if (!at) return -1;
    o->at = at;
    o->cap = cap;
    return 0;
}

static int out_append(struct nfc_out *o, const char *s, size_t n)
{
    if (out_reserve(o, n)) return -1;
    memcpy(o->at + o->n, s, n);
    o->n += n;
    return 0;
}

int uc_nfc(const struct uc_map *m, const char *s, size_t n, char **out, size_t *out_n, struct q_err *e)
{
    struct stretch t = {0};
    struct nfc_out o = {0};
    size_t at = 0, first, end;
    int failed = 0;
    while (!failed && find_stretch(m, s, n, at, &first, &end)) {
        t.n = 0;
        failed = out_append(&o, s + at, first - at) || stretch_decompose(&t, s + first, end - first);
        if (failed) break;
        stretch_order(&t);
        failed = out_reserve(&o, 4 * t.n);
        if (!failed) o.n += stretch_write(&t, o.at + o.n);
        at = end;
    }
    if (!failed && o.at) failed = out_append(&o, s + at, n - at);
    stretch_free(&t);
    if (failed) {
        free(o.at);
        return q_fail(e, Q_EMEM, "out of memory while normalising %zu bytes of text", n);
    }
    *out = o.at;
    *out_n = o.at ? o.n : n;
    return 0;
}
