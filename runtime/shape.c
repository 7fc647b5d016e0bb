#include "shape.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Copies the run of characters that `ok` accepts; returns its length, 0 when empty or too long. */
static size_t take(char *dst, size_t cap, const char *p, const char *extra)
{
    size_t n = 0;
    while (p[n] && (isalnum((unsigned char)p[n]) || strchr(extra, p[n]))) n++;
    if (n == 0 || n >= cap) return 0;
    memcpy(dst, p, n);
    dst[n] = 0;
    return n;
}

int shape_parse(struct q_shape *s, const char *text, struct q_err *e)
{
    s->n = 0;
    for (const char *p = text; *p;) {
        if (s->n == Q_SHAPE_MAX) return q_fail(e, Q_EINPUT, "shape '%s': more than %d pairs", text, Q_SHAPE_MAX);
        size_t name = take(s->pair[s->n].name, sizeof s->pair[0].name, p, "_");
        size_t value = name && p[name] == '=' ? take(s->pair[s->n].value, sizeof s->pair[0].value, p + name + 1, "_.") : 0;
        if (!value) return q_fail(e, Q_EINPUT, "shape '%s': expected name=value at '%s'", text, p);
        p += name + 1 + value;
        s->n++;
        if (*p == ',') p++;
        else if (*p) return q_fail(e, Q_EINPUT, "shape '%s': expected ',' at '%s'", text, p);
    }
    return Q_OK;
}

const char *shape_find(const struct q_shape *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->pair[i].name, name)) return s->pair[i].value;
    return NULL;
}

long shape_int(const struct q_shape *s, const char *name, long missing)
{
    const char *v = shape_find(s, name);
    char *end;
    if (!v) return missing;
    long n = strtol(v, &end, 10);
    return *end ? missing : n;
}

int shape_is(const struct q_shape *s, const char *name, const char *value)
{
    const char *v = shape_find(s, name);
    return v && !strcmp(v, value);
}
