#include "span.h"
#include "json_check.h"
#include <string.h>

static const char *skip_space(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') p++;
    return p;
}

/* p is at the opening quote; returns the place behind the closing one. */
static const char *skip_string(const char *p)
{
    for (p++; *p != '"'; p++)
        if (*p == '\\') p++;
    return p + 1;
}

/* Behind the value that begins at p. */
static const char *skip_value(const char *p)
{
    int depth = 0;
    do {
        if (*p == '"') {
            p = skip_string(p);
            continue;
        }
        if (*p == '{' || *p == '[') depth++;
        else if (*p == '}' || *p == ']') depth--;
        else if (!depth) return p + strcspn(p, ",]} \t\n\r"); /* a number or a word */
        p++;
    } while (depth > 0);
    return p;
}

/* p is at a key's opening quote. */
static int key_is(const char *p, const char *name)
{
    char out[4];
    for (p++; *p != '"';) {
        int n = 1;
        out[0] = *p++;
        if (out[0] == '\\') n = json_unescape(&p, out);
        if (strncmp(name, out, (size_t)n)) return 0;
        name += n;
    }
    return !*name;
}

struct span span_member(struct span object, const char *name)
{
    if (!object.at || *object.at != '{') return (struct span){0};
    const char *p = skip_space(object.at + 1);
    while (*p == '"') {
        int found = key_is(p, name);
        const char *v = skip_space(skip_space(skip_string(p)) + 1); /* over the colon */
        const char *end = skip_value(v);
        if (found) return (struct span){v, (size_t)(end - v)};
        p = skip_space(end);
        if (*p == ',') p = skip_space(p + 1);
    }
    return (struct span){0};
}

struct span span_next(struct span array, struct span element)
{
    if (!array.at || *array.at != '[') return (struct span){0};
    const char *p = skip_space(element.at ? element.at + element.n : array.at + 1);
    if (element.at && *p == ',') p = skip_space(p + 1);
    if (*p == ']') return (struct span){0};
    return (struct span){p, (size_t)(skip_value(p) - p)};
}
