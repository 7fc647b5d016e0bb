#include "json_text.h"
#include "runtime/json_check.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_free(struct text *t)
{
    free(t->at);
    *t = (struct text){0};
}

int text_ok(const struct text *t) { return !t->bad; }
const char *text_of(const struct text *t) { return t->at ? t->at : ""; }

static int make_room(struct text *t, size_t more)
{
    if (t->bad) return 0;
    if (more < t->cap - t->n) return 1; /* one byte stays for the zero */
    size_t cap = t->cap ? t->cap : 256;
    while (cap <= t->n + more) cap *= 2;
    char *at = realloc(t->at, cap);
    if (!at) return t->bad = 1, 0;
    t->at = at;
    t->cap = cap;
    return 1;
}

void text_add(struct text *t, const char *s, size_t n)
{
    if (!make_room(t, n)) return;
    memcpy(t->at + t->n, s, n);
    t->n += n;
    t->at[t->n] = 0;
}

void text_put(struct text *t, const char *s) { text_add(t, s, strlen(s)); }

void text_printf(struct text *t, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line) t->bad = 1; /* for short texts of numbers only */
    else text_add(t, line, (size_t)n);
}

static const char *escape(unsigned char c, int utf8, char out[8])
{
    static const char plain[] = "\b\f\n\r\t\"\\", names[] = "bfnrt\"\\";
    const char *p = c ? strchr(plain, c) : NULL;
    if (p) snprintf(out, 8, "\\%c", names[p - plain]);
    else if (c < 0x20 || c == 0x7F) snprintf(out, 8, "\\u%04x", c);
    else if (c > 0x7F && !utf8) snprintf(out, 8, "?");
    else return NULL;
    return out;
}

void text_json(struct text *t, const char *s, size_t n)
{
    int utf8 = utf8_valid(s, n);
    size_t from = 0;
    char out[8];
    text_put(t, "\"");
    for (size_t i = 0; i < n; i++) {
        const char *e = escape((unsigned char)s[i], utf8, out);
        if (!e) continue;
        text_add(t, s + from, i - from);
        text_put(t, e);
        from = i + 1;
    }
    text_add(t, s + from, n - from);
    text_put(t, "\"");
}

void text_json_z(struct text *t, const char *s)
{
    if (s) text_json(t, s, strlen(s));
    else text_put(t, "null");
}
