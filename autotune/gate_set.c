#include "gate_impl.h"
#include "defaults.h"
#include <string.h>

/* Default kernels for what the records in `tunes` and the user's own do not answer, with the tune's compiler. */
static int complete_set(const struct gate *g, enum q_numerics numerics, const char *tunes, struct q_err *e)
{
    const struct gate_opts *o = g->o;
    struct store_opts so = { .tunes = tunes };
    struct build_opts b = *o->build;
    struct target t = *o->t;
    struct defaults_result done;
    int rc = store_open(&b.store, &so, e);
    if (rc) return rc;
    t.numerics = numerics;
    rc = defaults_make(&t, o->g, &b, o->compiler, o->given, NULL, NULL, &done, e);
    store_close(b.store);
    return rc;
}

static int in_use(const struct gate *g, const char *op)
{
    for (int i = 0; i < g->n_ops; i++)
        if (!strcmp(g->ops[i], op)) return g->use[i];
    return 1;
}

static int write_records(const struct gate *g, struct q_err *e)
{
    struct store_opts so = { .tunes = g->set };
    struct store *s;
    dir_remove(g->set);
    int rc = dir_make(g->set, e);
    if (!rc) rc = store_open(&s, &so, e);
    if (rc) return rc;
    for (int i = 0; i < g->l->n && !rc; i++) {
        const struct found *f = &g->l->f[i];
        const struct record *r = f->fresh && f->base.origin[0] && !in_use(g, f->problem.op) ? &f->base : &f->record;
        if (r->origin[0]) rc = store_put(s, r, e);
    }
    store_close(s);
    return rc;
}

int gate_write_set(const struct gate *g, enum q_numerics numerics, int of_reference, struct q_err *e)
{
    int rc = of_reference ? Q_OK : write_records(g, e);
    return rc ? rc : complete_set(g, numerics, of_reference ? NULL : g->set, e);
}

void gate_use_first(struct gate *g, int n)
{
    for (int i = 0; i < g->n_ops; i++) g->use[i] = i < n;
}

void gate_list_ops(struct gate *g)
{
    for (int i = 0; i < g->l->n; i++) {
        const struct found *f = &g->l->f[i];
        int j = 0;
        if (!f->fresh || !f->base.origin[0] || !strcmp(f->record.params, f->base.params)) continue;
        while (j < g->n_ops && strcmp(g->ops[j], f->problem.op)) j++;
        if (j == g->n_ops && j < GATE_OPS) strcpy(g->ops[g->n_ops++], f->problem.op);
    }
}

void gate_drop_op(struct gate *g, int culprit)
{
    for (int i = 0; i < g->l->n; i++) {
        struct found *f = &g->l->f[i];
        if (strcmp(f->problem.op, g->ops[culprit]) || !f->base.origin[0]) continue;
        strcpy(f->blamed, f->record.params);
        f->record = f->base;
        f->fresh = 0;
    }
    memmove(&g->ops[culprit], &g->ops[culprit + 1], (size_t)(--g->n_ops - culprit) * sizeof g->ops[0]);
}
