#include "gate_impl.h"
#include "defaults.h"
#include <stdlib.h>
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

static const struct record *record_of(const struct gate *g, int i)
{
    const struct found *f = &g->l->f[i];
    for (int j = g->n_use; j < g->n_changed; j++)
        if (g->changed[j] == i) return &f->base;
    return &f->record;
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
        const struct record *r = record_of(g, i);
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

int gate_list_changed(struct gate *g, struct q_err *e)
{
    g->changed = calloc((size_t)g->l->n + 1, sizeof *g->changed);
    if (!g->changed) return q_fail(e, Q_EMEM, "no memory for the gate");
    for (int i = 0; i < g->l->n; i++) {
        const struct found *f = &g->l->f[i];
        if (f->fresh && f->base.origin[0] && strcmp(f->record.params, f->base.params)) g->changed[g->n_changed++] = i;
    }
    return Q_OK;
}

void gate_drop(struct gate *g, int culprit)
{
    struct found *f = &g->l->f[g->changed[culprit]];
    memcpy(f->blamed, f->record.params, sizeof f->blamed);
    memcpy(f->blamed_object, f->record.objects[0].name, sizeof f->blamed_object);
    f->record = f->base;
    f->fresh = 0;
    memmove(&g->changed[culprit], &g->changed[culprit + 1], (size_t)(--g->n_changed - culprit) * sizeof g->changed[0]);
}
