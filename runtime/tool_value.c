#include "tool_value.h"
#include "json_check.h"
#include "text.h"
#include "tool_calls.h"
#include <stdio.h>

/* JSON's word for a value, and the one that templates show (Python's). */
static const struct word {
    const char *json, *python;
    unsigned kind;
} words[] = {{"true", "True", Q_KIND_BOOLEAN}, {"false", "False", Q_KIND_BOOLEAN}, {"null", "None", Q_KIND_NULL}};

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int q_json_escape(struct tok_text *out, const char *s, size_t n, struct q_err *e)
{
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    size_t plain = 0;
    if (!n) return Q_OK;
    int rc = Q_OK;
    for (size_t i = 0; i < n && !rc; i++) {
        const unsigned char c = (unsigned char)s[i];
        char code[8];
        if (c >= 32 && c != '"' && c != '\\') continue;
        const char *named = c ? strchr(from, c) : NULL;
        int m = named ? snprintf(code, sizeof code, "\\%c", to[named - from]) : snprintf(code, sizeof code, "\\u%04x", c);
        rc = q_text_add(out, s + plain, i - plain, e);
        if (!rc) rc = q_text_add(out, code, (size_t)m, e);
        plain = i + 1;
    }
    return rc ? rc : q_text_add(out, s + plain, n - plain, e);
}

/* The kind of JSON value that begins with c; 0: none does. */
static unsigned kind_by_first(char c)
{
    return c == '{' ? Q_KIND_OBJECT : c == '[' ? Q_KIND_ARRAY : c == '"' ? Q_KIND_STRING : c == 't' || c == 'f' ? Q_KIND_BOOLEAN
           : c == 'n' ? Q_KIND_NULL : c == '-' || (c >= '0' && c <= '9') ? Q_KIND_NUMBER : 0;
}

/* s without the white space around it. */
static const char *trimmed(const char *s, size_t *n)
{
    while (*n && is_space(s[*n - 1])) --*n;
    while (*n && is_space(*s)) s++, --*n;
    return s;
}

static const struct word *find_word(const struct q_tool_value *v, const char *s, size_t n)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const struct word *w = &words[i];
        if (v->kinds & w->kind && ((n == strlen(w->json) && !memcmp(s, w->json, n)) || (n == strlen(w->python) && !memcmp(s, w->python, n))))
            return w;
    }
    return NULL;
}

/* Whether what is held may still become something else than a string. Where strings are allowed most values are strings, and those
 * should not wait; where not, only the whole can tell. Once no, always no, so it does not matter how the text was cut. */
static int may_be_other(const struct q_tool_value *v)
{
    enum { MARGIN = 64 }; /* white space around a word, at most: looked at again with every piece */
    size_t n = v->held.n, i = 0;
    const char *s = v->held.at;
    if (n > Q_TOOL_HELD) return 0;
    if (!(v->kinds & Q_KIND_STRING)) return 1;
    while (i < n && i < MARGIN && is_space(s[i])) i++;
    if (i == n) return 1;
    unsigned kind = s[i] == 'T' || s[i] == 'F' ? Q_KIND_BOOLEAN : s[i] == 'N' ? Q_KIND_NULL : kind_by_first(s[i]);
    if (!(kind & v->kinds & ~(unsigned)Q_KIND_STRING)) return 0;
    return !(kind & (Q_KIND_BOOLEAN | Q_KIND_NULL)) || n <= MARGIN;
}

static int become_string(struct q_tool_value *v, struct tok_text *out, struct q_err *e)
{
    int rc = q_text_add(out, "\"", 1, e);
    v->is_string = 1;
    if (!rc) rc = q_json_escape(out, v->held.at, v->held.n, e);
    v->held.n = 0;
    return rc;
}

void q_tool_value_start(struct q_tool_value *v, unsigned kinds)
{
    v->kinds = kinds;
    v->is_string = 0;
    v->held.n = 0;
}

int q_tool_value_push(struct q_tool_value *v, const char *s, size_t n, struct tok_text *out, struct q_err *e)
{
    if (v->is_string) return q_json_escape(out, s, n, e);
    if (v->kinds == Q_KIND_STRING) {
        int rc = become_string(v, out, e);
        return rc ? rc : q_json_escape(out, s, n, e);
    }
    int rc = q_text_add(&v->held, s, n, e);
    return rc || may_be_other(v) ? rc : become_string(v, out, e);
}

int q_tool_value_end(struct q_tool_value *v, struct tok_text *out, struct q_err *e)
{
    size_t n = v->held.n;
    const char *s = trimmed(v->held.at, &n);
    const struct word *w = v->is_string ? NULL : find_word(v, s, n);
    if (w) return q_text_add(out, w->json, strlen(w->json), e);
    unsigned kind = n ? kind_by_first(*s) : 0;
    /* Where no string is allowed, JSON of the wrong kind passes too: it is what the model meant, and the caller checks it. */
    int wanted = kind & v->kinds & ~(unsigned)Q_KIND_STRING || (kind && !(v->kinds & Q_KIND_STRING));
    if (!v->is_string && wanted && !json_check(s, n, JSON_MAX_DEPTH - 1, "", NULL)) return q_text_add(out, s, n, e);
    int rc = v->is_string ? Q_OK : become_string(v, out, e);
    return rc ? rc : q_text_add(out, "\"", 1, e);
}

void q_tool_value_free(struct q_tool_value *v)
{
    free(v->held.at);
    *v = (struct q_tool_value){0};
}
