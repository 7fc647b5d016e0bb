#include "look.h"
#include "runtime/kset_shapes.h"
#include "tune.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct looking {
    const struct target *t;
    struct gen *g;
    struct store *s;
    struct q_err err;          /* of choose_layout, which cannot return one */
    char layout[24];
};

struct store_key look_key(const struct target *t, const struct looked *v)
{
    return (struct store_key){ v->problem.op, v->problem.shape, v->problem.rows, v->problem.ctx, q_numerics_name(t->numerics), t->card.key,
                               v->generator };
}

/* The first admitted record down the layers. */
static int find(const struct looking *w, struct looked *v, struct q_err *e)
{
    struct store_key k;
    int layer = 0, bad = target_key(w->t, w->g, &v->problem, v->generator, &k, e);
    if (bad) return bad;
    while (!(bad = store_find(w->s, &k, &layer, &v->record, NULL)))
        if (target_admits(w->t, v->record.numerics)) break;
    if (bad) v->record.origin[0] = 0;
    return Q_OK;
}

/* For kset_problems. */
static const char *choose_layout(void *arg, const char *type, long n, long k)
{
    struct looking *w = arg;
    struct looked v = { .problem = { .op = "layout" } };
    struct gen_kernel gk;
    shape_layout(v.problem.shape, sizeof v.problem.shape, type, n, k);
    if (find(w, &v, &w->err)) return NULL;
    snprintf(w->layout, sizeof w->layout, "%s", v.record.layout);
    if (v.record.origin[0]) return w->layout;
    if (target_emit(w->t, w->g, &v.problem, NULL, &gk, &w->err)) return NULL;
    snprintf(w->layout, sizeof w->layout, "%s", gk.layout);
    gen_kernel_free(&gk);
    return w->layout;
}

static int known_before(const struct look *l, const char *op)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->v[i].problem.op, op)) return 1;
    return 0;
}

/* The list op by op: ops in the order in which the model first needs them. */
static int enter(struct look *l, const struct looking *w, const struct q_problem_list *list, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < list->n; i++) {
        if (known_before(l, list->p[i].op)) continue;
        for (int j = i; j < list->n && !rc; j++) {
            if (strcmp(list->p[j].op, list->p[i].op)) continue;
            l->v[l->n].problem = list->p[j];
            rc = find(w, &l->v[l->n++], e);
        }
    }
    return rc;
}

int look_open(struct look *l, const struct target *t, struct gen *g, struct store *s, int join, struct q_err *e)
{
    struct looking w = { .t = t, .g = g, .s = s };
    struct q_problem_list list = { 0 };
    memset(l, 0, sizeof *l);
    int rc = kset_problems(t->model, &t->card, t->numerics, t->kv_k, t->kv_v, t->sparse, choose_layout, &w, &list, e);
    if (rc == Q_EMISS && w.err.code) rc = q_fail(e, w.err.code, "%s", w.err.text);
    if (!rc && join) tune_join_buckets(&list);
    if (!rc && !(l->v = calloc((size_t)list.n, sizeof *l->v))) rc = q_fail(e, Q_EMEM, "no memory for %d problems", list.n);
    if (!rc) rc = enter(l, &w, &list, e);
    free(list.p);
    if (rc) look_close(l);
    return rc;
}

/* --- what is recorded ------------------------------------------------------------------------------------------------- */

struct collecting {
    struct look *l;
    const struct target *t;
    struct gen *g;
    int cap, failed;
};

static int is_winner(const struct collecting *c, const struct record *r)
{
    char generator[65];
    return (!strcmp(r->origin, "tuned") || !strcmp(r->origin, "shipped")) && !strcmp(r->profile, q_numerics_name(c->t->numerics))
           && strcmp(r->op, "ceiling") && !gen_hash(c->g, r->op, generator, NULL) && !strcmp(generator, r->generator);
}

static int is_answered(const struct look *l, const struct q_problem *p)
{
    for (int i = 0; i < l->n; i++)
        if (q_problem_is(&l->v[i].problem, p)) return 1;
    return 0;
}

/* For store_each: the problems. */
static int collect(void *arg, const struct record *r, const char *path)
{
    struct collecting *c = arg;
    struct look *l = c->l;
    struct q_problem p = { .rows = r->rows, .ctx = r->ctx };
    (void)path;
    strcpy(p.op, r->op);
    strcpy(p.shape, r->shape);
    if (!is_winner(c, r) || is_answered(l, &p)) return 0;
    if (l->n == c->cap) {
        int cap = c->cap ? 2 * c->cap : 64;
        struct looked *more = realloc(l->v, (size_t)cap * sizeof *more);
        if (!more) return c->failed = 1;
        l->v = more;
        c->cap = cap;
    }
    l->v[l->n++].problem = p;
    return 0;
}

static int by_problem(const void *a, const void *b)
{
    const struct q_problem *x = &((const struct looked *)a)->problem, *y = &((const struct looked *)b)->problem;
    int d = strcmp(x->op, y->op);
    if (!d) d = strcmp(x->shape, y->shape);
    return d ? d : x->rows != y->rows ? x->rows - y->rows : x->ctx - y->ctx;
}

static int look_at_records(struct look *l, const struct target *t, struct gen *g, struct store *s, struct q_err *e)
{
    struct collecting c = { .l = l, .t = t, .g = g };
    struct looking w = { .t = t, .g = g, .s = s };
    memset(l, 0, sizeof *l);
    int rc = store_each(s, t->card.key, collect, &c, e);
    if (!rc && c.failed) rc = q_fail(e, Q_EMEM, "no memory for %d records", l->n);
    if (!rc && !l->n)
        rc = q_fail(e, Q_EMISS, "nothing was measured for %s with numerics %s; -m FILE or --preset NAME tells what a model would run with",
                    t->card.key, q_numerics_name(t->numerics));
    if (!rc) qsort(l->v, (size_t)l->n, sizeof *l->v, by_problem);
    for (int i = 0; i < l->n && !rc; i++) rc = find(&w, &l->v[i], e);
    return rc;
}

int look_of_options(struct look *l, struct target *t, struct gen *g, struct store *s, const struct options *o, struct q_err *e)
{
    if (!o->model && !o->preset) return look_at_records(l, t, g, s, e);
    int rc = target_open(t, o->model, o->preset, o->type, e);
    return rc ? rc : look_open(l, t, g, s, 0, e);
}

void look_close(struct look *l)
{
    free(l->v);
    memset(l, 0, sizeof *l);
}

int look_is_tuned(const char *op) { return strcmp(op, "repack") && strcmp(op, "synth"); }

int look_count(const struct look *l, const char *op)
{
    int n = 0;
    for (int i = 0; i < l->n; i++) n += !op || !strcmp(l->v[i].problem.op, op);
    return n;
}

int look_has_op(const struct look *l, const char *op, struct q_err *e)
{
    char names[600] = "";
    size_t at = 0;
    if (!op || look_count(l, op)) return Q_OK;
    for (int i = 0; i < l->n && at < sizeof names; i++)
        if (!i || strcmp(l->v[i].problem.op, l->v[i - 1].problem.op))
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? " " : "", l->v[i].problem.op);
    return q_fail(e, Q_EINPUT, "op: expected one of %s, found '%s'", names, op);
}
