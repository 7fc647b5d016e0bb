/* A kernel's name tells its op, shape and params (gen.lua's name_of): a record that was put together from parts of others, or changed by
 * hand, names a kernel of something else. */
#include "record.h"
#include "shape.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 256 };

static int is_number(const char *v)
{
    size_t n = strspn(v, "0123456789");
    return n && !v[n] && (v[0] != '0' || !v[1]);
}

/* "_n4096", "_q8_0"; more than fits is no kernel's name. */
static size_t add_pairs(char name[NAME], size_t n, const struct q_shape *s)
{
    for (int i = 0; i < s->n && n < NAME; i++) {
        const char *value = s->pair[i].value;
        size_t begin = n;
        n += (size_t)snprintf(name + n, NAME - n, "_%s%s", is_number(value) ? s->pair[i].name : "", value);
        for (size_t k = begin; k < n && k < NAME && !is_number(value); k++) name[k] = name[k] == '.' ? '_' : (char)tolower((unsigned char)name[k]);
    }
    return n;
}

void record_name(char kernel[160], const struct record *r)
{
    char name[NAME];
    struct q_shape shape, params;
    kernel[0] = 0;
    if (shape_parse(&shape, r->shape, NULL) || shape_parse(&params, r->params, NULL)) return;
    size_t n = (size_t)snprintf(name, sizeof name, "%s", r->op);
    n = add_pairs(name, n, &shape);
    if (n < NAME) n = add_pairs(name, n, &params);
    if (n < 160) strcpy(kernel, name);
}

static int is_named(const struct record *r)
{
    char name[160];
    record_name(name, r);
    return !strcmp(name, r->kernel);
}

/* Of a choice: "layout=r16u" and r16u. */
static int is_choice(const struct record *r)
{
    size_t n = strlen(r->op);
    return !r->layout[0] || (!strncmp(r->params, r->op, n) && r->params[n] == '=' && !strcmp(r->params + n + 1, r->layout));
}

int record_check(const struct record *r, const char *where, struct q_err *e)
{
    if (r->kernel[0] ? is_named(r) : is_choice(r)) return Q_OK;
    return q_fail(e, Q_EINPUT, "%s: damaged record: '%.160s' is not what %s, its shape and its params name", where,
                  r->kernel[0] ? r->kernel : r->layout, r->op);
}
