#include "space.h"
#include "runtime/shape.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- collecting -------------------------------------------------------------------------------------------------------- */

struct collect {
    struct space *s;
    int cap, failed;
};

static void count_reason(struct space *s, const char *text)
{
    int i = 0;
    while (i < s->n_reasons && strncmp(s->reason[i].text, text, sizeof s->reason[i].text - 1)) i++;
    if (i == SPACE_REASONS) i--;
    if (i == s->n_reasons) snprintf(s->reason[s->n_reasons++].text, sizeof s->reason[0].text, "%s", text);
    s->reason[i].n++;
}

static int collect(void *arg, const char *params, int legal, const char *reason)
{
    struct collect *c = arg;
    struct space *s = c->s;
    s->total++;
    if (!legal) {
        count_reason(s, reason);
        return 0;
    }
    if (s->n == c->cap) {
        int cap = c->cap ? 2 * c->cap : 64;
        void *more = realloc(s->params, (size_t)cap * sizeof *s->params);
        if (!more) return c->failed = 1;
        s->params = more;
        c->cap = cap;
    }
    snprintf(s->params[s->n++], sizeof *s->params, "%s", params);
    return 0;
}

int space_open(struct space *s, struct gen *g, const char *op, const char *shape, const char *card, const char *numerics, struct q_err *e)
{
    struct collect c = { s, 0, 0 };
    memset(s, 0, sizeof *s);
    int rc = gen_space(g, op, shape, card, numerics, collect, &c, e);
    if (c.failed) rc = q_fail(e, Q_EMEM, "no memory for the candidates of %s", op);
    if (!rc && !s->n) rc = q_fail(e, Q_EUNSUP, "%s %s: no legal candidate", op, shape);
    if (rc) space_close(s);
    return rc;
}

void space_close(struct space *s)
{
    free(s->params);
    memset(s, 0, sizeof *s);
}

int space_find(const struct space *s, const char *params)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->params[i], params)) return i;
    return -1;
}

/* --- drawing ----------------------------------------------------------------------------------------------------------- */

static unsigned long long mix(unsigned long long *seed)
{
    unsigned long long z = *seed += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    return z ^ (z >> 29);
}

/* The instruction path of a params text: a CPU's isa, a card's path; "" without one. */
static const char *path_of(const char *params, size_t *n)
{
    const char *isa = strstr(params, "isa="), *path = strstr(params, "path="), *p = isa ? isa + 4 : path ? path + 5 : "";
    *n = strcspn(p, ",");
    return p;
}

static int same_path(const char *a, const char *b)
{
    size_t na, nb;
    const char *pa = path_of(a, &na), *pb = path_of(b, &nb);
    return na == nb && !memcmp(pa, pb, na);
}

int space_paths(const struct space *s, char (*path)[24])
{
    int n = 0;
    for (int i = 0; i < s->n && n < SPACE_PATHS; i++) {
        size_t len;
        const char *p = path_of(s->params[i], &len);
        int known = !len || len >= sizeof *path;
        for (int j = 0; j < n; j++) known |= strlen(path[j]) == len && !memcmp(path[j], p, len);
        if (!known) snprintf(path[n++], sizeof *path, "%.*s", (int)len, p);
    }
    return n;
}

static int push(int *out, int n, int most, int candidate)
{
    for (int i = 0; i < n; i++)
        if (out[i] == candidate) return n;
    if (candidate >= 0 && n < most) out[n++] = candidate;
    return n;
}

/* A sample of those on `path` (or, with `others`, of those not on it), up to `most` in out. */
static int draw(const struct space *s, const char *path, int others, int most, unsigned long long seed, int *out, int n)
{
    int *order = malloc((size_t)s->n * sizeof *order), k = 0;
    if (!order) return n;
    for (int i = 0; i < s->n; i++)
        if (same_path(s->params[i], path) != others) order[k++] = i;
    for (int i = k - 1; i > 0; i--) {
        int j = (int)(mix(&seed) % (unsigned)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (int i = 0; i < k && n < most; i++) n = push(out, n, most, order[i]);
    free(order);
    return n;
}

/* --- steps ------------------------------------------------------------------------------------------------------------- */

enum { VALUES = 24 };

/* The values of one param, in the order in which the space brings them. */
struct values {
    char text[VALUES][40];
    int n;
};

static void add_value(struct values *v, const char *text)
{
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->text[i], text)) return;
    if (v->n < VALUES) snprintf(v->text[v->n++], sizeof v->text[0], "%s", text);
}

static int place_of(const struct values *v, const char *text)
{
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->text[i], text)) return i;
    return -1;
}

/* The values of each param. */
static struct values *values_of(const struct space *s)
{
    struct values *v = calloc(Q_SHAPE_MAX, sizeof *v);
    struct q_shape p;
    for (int i = 0; v && i < s->n; i++)
        if (!shape_parse(&p, s->params[i], NULL))
            for (int j = 0; j < p.n; j++) add_value(&v[j], p.pair[j].value);
    return v;
}

/* In how many params two differ, and by how many values. */
static int differ(const struct values *v, const struct q_shape *a, const struct q_shape *b, int *values)
{
    int params = 0;
    *values = 0;
    for (int i = 0; i < a->n && i < b->n; i++) {
        int d = place_of(&v[i], a->pair[i].value) - place_of(&v[i], b->pair[i].value);
        params += d != 0;
        *values += d < 0 ? -d : d;
    }
    return a->n == b->n ? params : Q_SHAPE_MAX;
}

int space_near(const struct space *s, int at, int by, int *out, int most)
{
    struct values *v = values_of(s);
    struct q_shape here, p;
    int n = 0, values;
    if (v && !shape_parse(&here, s->params[at], NULL))
        for (int i = 0; i < s->n && n < most; i++)
            if (!shape_parse(&p, s->params[i], NULL) && differ(v, &here, &p, &values) == 1 && values == by && same_path(s->params[i], s->params[at]))
                out[n++] = i;
    free(v);
    return n;
}

/* --- picking ----------------------------------------------------------------------------------------------------------- */

/* All on the path of `first`, up to `end` in out. */
static int push_path(const struct space *s, const char *first, int end, int *out, int n)
{
    for (int i = 0; i < s->n; i++)
        if (same_path(s->params[i], first)) n = push(out, n, end, i);
    return n;
}

static int push_near(const struct space *s, int end, int *out, int n)
{
    int index[VALUES], at = out[0];
    for (int by = 1; by < VALUES && n < end; by++) {
        int k = space_near(s, at, by, index, VALUES);
        for (int i = 0; i < k; i++) n = push(out, n, end, index[i]);
    }
    return n;
}

static int count_path(const struct space *s, const char *first)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) n += same_path(s->params[i], first);
    return n;
}

int space_pick(const struct space *s, const char *first, const struct space_plan *plan, const char (*seeds)[256], int n_seeds,
               unsigned long long seed, int *out)
{
    int n = push(out, 0, 1, space_find(s, first)), reserved = plan->most >= 8 ? (plan->most + 4) / 6 : 0, others = 0;
    if (!n) return 0;
    if (count_path(s, first) <= plan->whole) n = push_path(s, first, plan->whole, out, n);
    else {
        n = push_near(s, 1 + plan->near, out, n);
        n = draw(s, first, 0, n + plan->most - 1 - reserved, seed, out, n);
        others = reserved ? plan->most : 0;      /* the path may have had fewer */
    }
    if (others < n + reserved) others = n + reserved;
    n = draw(s, first, 1, others, seed, out, n);
    for (int i = 0; i < n_seeds; i++) n = push(out, n, n + 1, space_find(s, seeds[i]));
    return n;
}
