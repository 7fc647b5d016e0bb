/* Which layout a weight gets, when a tune asks for its problems: what is recorded, else the winner of a race. */
#include "layouts.h"
#include "runtime/kset_shapes.h"
#include "space.h"
#include "tune_impl.h"
#include <stdio.h>
#include <string.h>

/* The record of a layout by its params text. */
static int layout_record(struct tuner *t, const struct q_problem *p, const char *params, struct record *r, struct q_err *e)
{
    char generator[65];
    struct store_key k;
    struct gen_kernel gk;
    int rc = target_key(t->o->t, t->o->g, p, generator, &k, e);
    if (!rc) rc = target_emit(t->o->t, t->o->g, p, params, &gk, e);
    if (rc) return rc;
    target_record(r, t->o->g, &k, p, &gk);
    strcpy(r->origin, "tuned");
    snprintf(r->effort, sizeof r->effort, "%s", t->env.effort->name);
    gen_kernel_free(&gk);
    return Q_OK;
}

/* The default layout unless another is certainly better by a step. */
static int race_layouts(struct tuner *t, const struct q_problem *p, const char *type, long n, long k, struct found *f, struct q_err *e)
{
    struct layouts l = { .n = 0 };
    struct space s;
    int rc = layout_record(t, p, NULL, &f->base, e);
    if (!rc) rc = space_open(&s, t->o->g, p->op, p->shape, t->o->t->card.key, q_numerics_name(t->o->t->numerics), e);
    if (rc) return rc;
    f->record = f->base;
    snprintf(l.name[l.n++], sizeof l.name[0], "%s", f->base.layout);
    for (int i = 0; i < s.n && l.n < LAYOUTS; i++)
        if (strcmp(s.params[i], f->base.params)) snprintf(l.name[l.n++], sizeof l.name[0], "%s", s.params[i] + strlen("layout="));
    space_close(&s);
    if (l.n > 1) rc = layouts_race(&t->env, type, n, k, n == t->o->t->model->config.n_vocab, &l, e);
    if (!rc && l.best) {
        char params[40];
        snprintf(params, sizeof params, "layout=%s", l.name[l.best]);
        rc = layout_record(t, p, params, &f->record, e);
    }
    strcpy(f->record.base_params, f->base.params);
    f->record.base_us = l.us[0];
    f->record.gain = l.best ? l.gain : 0;
    f->base.origin[0] = 0;      /* not a matter of numerics: the gate compares sets of one layout */
    return rc;
}

/* In the store, or with a tune that did not end. Q_EMISS: neither. */
static int find_layout(struct tuner *t, const struct q_problem *p, struct found *f, struct q_err *e)
{
    int rc = tune_find_recorded(t, p, &f->record, e);
    if (rc == Q_EMISS && !(rc = tune_need_journal(t, e))) rc = tune_find_recorded(t, p, &f->record, e);     /* another may have ended meanwhile */
    t->recorded += !rc;
    return rc == Q_EMISS && tune_resume(t, p, f) ? Q_OK : rc;
}

static int choose_layout(struct tuner *t, const struct q_problem *p, const char *type, long n, long k, struct q_err *e)
{
    struct found f = { .problem = *p };
    struct q_err why = { 0 };
    int rc = find_layout(t, p, &f, e);
    if (rc && rc != Q_EMISS) return rc;
    if (rc) {
        if ((rc = tune_need_measurer(t, e))) return rc;
        rc = race_layouts(t, p, type, n, k, &f, &why);
        if (rc && (!tune_is_local(rc) || !f.record.layout[0])) return q_fail(e, rc, "%s", why.text);
        f.fresh = !rc;
        if (rc) tune_note_skipped(t, &why);
        else tune_note_won(t, &f.record, &f.base, NULL);
        progress_line(&t->progress, "layout of %s: %s (default %s, gain %.1f %%)%s%s", p->shape, f.record.layout, f.record.base_params,
                      100 * f.record.gain, rc ? ": not measured: " : "", rc ? why.text : "");
    }
    struct found *kept = found_add(&t->found, p);
    if (!kept) return q_fail(e, Q_EMEM, "no memory for results");
    *kept = f;
    strcpy(t->layout, f.record.layout);
    return Q_OK;
}

static const char *default_layout(struct tuner *t, const struct q_problem *p)
{
    struct record r = { 0 };
    if (layout_record(t, p, NULL, &r, &t->err)) return NULL;
    strcpy(t->layout, r.layout);
    return t->layout;
}

const char *tune_layout_of(void *arg, const char *type, long n, long k)
{
    struct tuner *t = arg;
    struct q_problem p = { .op = "layout" };
    shape_layout(p.shape, sizeof p.shape, type, n, k);
    if (t->o->op) return default_layout(t, &p);
    return choose_layout(t, &p, type, n, k, &t->err) ? NULL : t->layout;
}
