#include "args.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Digits alone: no sign, no blanks, nothing behind. Returns 0 if *v holds the number. */
static int take_digits(const char *text, unsigned long long *v)
{
    char *end;
    if (!isdigit((unsigned char)*text)) return -1;
    errno = 0;
    *v = strtoull(text, &end, 10);
    return *end || errno ? -1 : 0;
}

static int take_int(const struct arg *a, const char *text, struct q_err *e)
{
    unsigned long long v;
    if (take_digits(text, &v) || v < (unsigned long long)a->min || v > (unsigned long long)a->max)
        return q_fail(e, Q_EINPUT, "%s: expected %d..%d, found '%s'", a->name, a->min, a->max, text);
    *(int *)a->to = (int)v;
    return Q_OK;
}

static int take_part(const struct arg *a, const char *text, struct q_err *e)
{
    struct arg_part *part = a->to;
    char first[16] = "";
    unsigned long long i, n;
    const char *slash = strchr(text, '/');
    if (slash && slash - text < (int)sizeof first) memcpy(first, text, (size_t)(slash - text));
    if (!slash || take_digits(first, &i) || take_digits(slash + 1, &n) || i < 1 || i > n || n > (unsigned long long)a->max)
        return q_fail(e, Q_EINPUT, "%s: expected I/N with I in 1..N and N up to %d, found '%s'", a->name, a->max, text);
    part->i = (int)i;
    part->n = (int)n;
    return Q_OK;
}

static int take_list(const struct arg *a, const char *text, struct q_err *e)
{
    struct arg_list *list = a->to;
    if (list->n == ARGS_LIST) return q_fail(e, Q_EINPUT, "%s: expected at most %d of them, found '%s' behind", a->name, ARGS_LIST, text);
    list->v[list->n++] = text;
    return Q_OK;
}

static int take(const struct arg *a, const char *text, struct q_err *e)
{
    switch (a->kind) {
    case ARG_INT: return take_int(a, text, e);
    case ARG_PART: return take_part(a, text, e);
    case ARG_LIST: return take_list(a, text, e);
    case ARG_SEED: return take_digits(text, a->to) ? q_fail(e, Q_EINPUT, "%s: expected a whole number below 2^64, found '%s'", a->name, text) : Q_OK;
    case ARG_FLAG: *(int *)a->to = 1; return Q_OK;
    default: *(const char **)a->to = text; return Q_OK;
    }
}

int args_read(const struct arg *all, int n, int argc, char **argv, struct q_err *e)
{
    for (int i = 1; i < argc; i++) {
        const struct arg *a = all;
        while (a < all + n && strcmp(a->name, argv[i])) a++;
        if (a == all + n) return q_fail(e, Q_EINPUT, "unknown option '%s' (--help lists them)", argv[i]);
        if (a->kind != ARG_FLAG && ++i == argc) return q_fail(e, Q_EINPUT, "%s: expected a value", a->name);
        int rc = take(a, argv[i], e);
        if (rc) return rc;
    }
    return Q_OK;
}

int args_ops(const char *list, struct gen *g, struct q_err *e)
{
    for (const char *word = list, *end; word; word = *end ? end + 1 : NULL) {
        const char *const *op = gen_ops(g);
        size_t n = strcspn(word, ",");
        end = word + n;
        while (*op && (strlen(*op) != n || strncmp(*op, word, n))) op++;
        if (!*op) return q_fail(e, Q_EINPUT, "--op: expected ops with commas between (quarry-gen --list), found '%.*s'", (int)n, word);
    }
    return Q_OK;
}

int args_want(const char *list, const char *op)
{
    size_t n = strlen(op);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, op, n) && (!p[n] || p[n] == ',')) return 1;
    return !list;
}
