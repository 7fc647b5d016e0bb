#include "constrain_bytes.h"
#include <string.h>

struct span {
    const int *top;
    int n;
    digits_put *put;
    void *arg;
    int a[DIGITS_MAX], b[DIGITS_MAX]; /* digits decided so far */
};

static int all(const int *digit, const int *want, int from, int n)
{
    for (int i = from; i < n; i++)
        if (digit[i] != (want ? want[i] : 0)) return 0;
    return 1;
}

/* Digits from i on; lo, hi NULL: no bound, the digits before decide already. */
static void span(struct span *s, const int *lo, const int *hi, int i)
{
    int low = lo && !all(lo, NULL, i, s->n), high = hi && !all(hi, s->top, i, s->n);
    if (i == s->n || (!low && !high)) {
        for (int k = i; k < s->n; k++) s->a[k] = 0, s->b[k] = s->top[k];
        s->put(s->arg, s->a, s->b, s->n);
        return;
    }
    int first = lo ? lo[i] : 0, last = hi ? hi[i] : s->top[i];
    if (lo && hi && first == last) {
        s->a[i] = s->b[i] = first;
        span(s, lo, hi, i + 1);
        return;
    }
    if (low && !all(lo, NULL, i + 1, s->n)) {
        s->a[i] = s->b[i] = first++;
        span(s, lo, NULL, i + 1);
    }
    int end = high && !all(hi, s->top, i + 1, s->n);
    if (first <= last - end) {
        s->a[i] = first;
        s->b[i] = last - end;
        span(s, NULL, NULL, i + 1);
    }
    if (end) {
        s->a[i] = s->b[i] = last;
        span(s, NULL, hi, i + 1);
    }
}

void digits_span(const int *lo, const int *hi, const int *top, int n, digits_put *put, void *arg)
{
    struct span s = {.top = top, .n = n, .put = put, .arg = arg};
    span(&s, lo, hi, 0);
}

/* ---- UTF-8 ---- */

struct sink {
    bytes_put *put;
    void *arg;
    int lead; /* of the first byte */
};

static void put_utf8(void *arg, const int *a, const int *b, int n)
{
    struct sink *s = arg;
    struct byte_set set[4];
    for (int i = 0; i < n; i++) {
        int base = i ? 0x80 : s->lead;
        set[i] = (struct byte_set){1, {(unsigned char)(base + a[i])}, {(unsigned char)(base + b[i])}};
    }
    s->put(s->arg, set, n);
}

static void split(uint32_t v, const int *top, int n, int *digit)
{
    for (int i = n; i-- > 0; v /= (uint32_t)top[i] + 1) digit[i] = (int)(v % ((uint32_t)top[i] + 1));
}

static void span_numbers(uint32_t lo, uint32_t hi, const int *top, int n, digits_put *put, void *arg)
{
    int a[DIGITS_MAX], b[DIGITS_MAX];
    split(lo, top, n, a);
    split(hi, top, n, b);
    digits_span(a, b, top, n, put, arg);
}

void bytes_utf8(struct expr_range r, bytes_put *put, void *arg)
{
    static const struct { uint32_t last; int lead, n, top[4]; } form[] = {
        {0x7F, 0, 1, {127}}, {0x7FF, 0xC0, 2, {31, 63}}, {0xFFFF, 0xE0, 3, {15, 63, 63}}, {0x10FFFF, 0xF0, 4, {7, 63, 63, 63}}};
    uint32_t first = 0;
    for (int i = 0; i < 4; first = form[i++].last + 1) {
        uint32_t lo = r.lo > first ? r.lo : first, hi = r.hi < form[i].last ? r.hi : form[i].last;
        struct sink s = {put, arg, form[i].lead};
        if (lo <= hi) span_numbers(lo, hi, form[i].top, form[i].n, put_utf8, &s);
    }
}

/* ---- JSON ---- */

static struct byte_set byte(unsigned char c) { return (struct byte_set){1, {c}, {c}}; }

/* Hex digits from a to b, letters in both cases. */
static struct byte_set hex(int a, int b)
{
    struct byte_set s = {0};
    if (a < 10) s.lo[s.n] = (unsigned char)('0' + a), s.hi[s.n++] = (unsigned char)('0' + (b < 9 ? b : 9));
    for (int base = 'a'; b > 9 && base >= 'A'; base -= 'a' - 'A')
        s.lo[s.n] = (unsigned char)(base + (a > 10 ? a - 10 : 0)), s.hi[s.n++] = (unsigned char)(base + b - 10);
    return s;
}

static void put_hex4(void *arg, const int *a, const int *b, int n)
{
    struct sink *s = arg;
    struct byte_set set[6] = {byte('\\'), byte('u')};
    for (int i = 0; i < n; i++) set[2 + i] = hex(a[i], b[i]);
    s->put(s->arg, set, 6);
}

/* \uD8xx\uDCxx: the 20 bits are 2, 4, 4 of the first half and 2, 4, 4 of the second. */
static void put_pair(void *arg, const int *a, const int *b, int n)
{
    struct sink *s = arg;
    struct byte_set set[12];
    for (int i = 0; i < 2; i++) {
        struct byte_set *h = set + 6 * i;
        h[0] = byte('\\');
        h[1] = byte('u');
        h[2] = hex(13, 13);
        h[3] = hex((i ? 12 : 8) + a[3 * i], (i ? 12 : 8) + b[3 * i]);
        h[4] = hex(a[3 * i + 1], b[3 * i + 1]);
        h[5] = hex(a[3 * i + 2], b[3 * i + 2]);
    }
    s->put(s->arg, set, 12);
}

static void put_escapes(struct expr_range r, struct sink *s)
{
    static const char short_form[][2] = {{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}};
    for (size_t i = 0; i < sizeof short_form / 2; i++) {
        struct byte_set set[2] = {byte('\\'), byte((unsigned char)short_form[i][1])};
        uint32_t c = (unsigned char)short_form[i][0];
        if (c >= r.lo && c <= r.hi) s->put(s->arg, set, 2);
    }
}

/* The part of r from lo to hi, if any. */
static int part(struct expr_range r, uint32_t lo, uint32_t hi, struct expr_range *out)
{
    *out = (struct expr_range){r.lo > lo ? r.lo : lo, r.hi < hi ? r.hi : hi};
    return out->lo <= out->hi;
}

void bytes_json(struct expr_range r, bytes_put *put, void *arg)
{
    static const int top4[] = {15, 15, 15, 15}, top20[] = {3, 15, 15, 3, 15, 15};
    static const struct expr_range plain[] = {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x10FFFF}}, coded[] = {{0, 0x1F}, {0x7F, 0xFFFF}};
    struct sink s = {put, arg, 0};
    struct expr_range p;
    for (int i = 0; i < 3; i++)
        if (part(r, plain[i].lo, plain[i].hi, &p)) bytes_utf8(p, put, arg);
    put_escapes(r, &s);
    for (int i = 0; i < 2; i++)
        if (part(r, coded[i].lo, coded[i].hi, &p)) span_numbers(p.lo, p.hi, top4, 4, put_hex4, &s);
    if (part(r, 0x10000, 0x10FFFF, &p)) span_numbers(p.lo - 0x10000, p.hi - 0x10000, top20, 6, put_pair, &s);
}
