#include "compare.h"
#include "judge.h"
#include "layouts.h"
#include "rebuild.h"
#include "runtime/shape.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *compare_word(enum compared verdict)
{
    static const char *const words[] = { "same", "within", "better", "worse", "failed" };
    return words[verdict];
}

/* --- the other set ----------------------------------------------------------------------------------------------------- */

/* *counts: whether it is a winner that can stand for a problem here, and then *own is the record as this build says it. */
static int judge_one(struct proving *p, const struct record *r, const char *where, struct record *own, struct compare_result *n, int *counts,
                     struct q_err *e)
{
    struct gen_kernel k;
    struct q_err why;
    *counts = 0;
    if (!strcmp(r->op, "ceiling") || strcmp(r->profile, q_numerics_name(p->t.numerics))) return n->apart++, Q_OK;
    int rc = judge_record(p->g, &p->t.card, r, own, &k, &why);
    if (rc == Q_EUNSUP) return n->stale++, Q_OK;
    if (rc) return q_fail(e, rc, "%.300s: %.700s", where, why.text);
    gen_kernel_free(&k);
    *counts = strcmp(own->origin, "default") != 0;
    return Q_OK;
}

/* *judged: those of all lines that count, as this build says them; the caller frees it. */
static int judge_all(struct proving *p, const struct card_lines *other, const char *where, struct record **judged, int *n,
                     struct compare_result *result, struct q_err *e)
{
    struct record *all = calloc((size_t)other->n + 1, sizeof *all);
    int rc = all ? Q_OK : q_fail(e, Q_EMEM, "no memory for %d records", other->n);
    *n = 0;
    for (int i = 0, counts; i < other->n && !rc; i++) {
        rc = judge_one(p, &other->v[i].record, where, &all[*n], result, &counts, e);
        *n += !rc && counts;
    }
    *judged = all;
    return rc;
}

static const struct record *find(const struct record *v, int n, const struct q_problem *p, int rows, int ctx)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(v[i].op, p->op) && !strcmp(v[i].shape, p->shape) && v[i].rows == rows && v[i].ctx == ctx) return &v[i];
    return NULL;
}

/* The bucket's own, else the one for steps of any size. */
static const struct record *answer_of(const struct record *v, int n, const struct q_problem *p)
{
    const struct record *r = find(v, n, p, p->rows, p->ctx);
    return r ? r : find(v, n, p, 0, 0);
}

/* --- a row ------------------------------------------------------------------------------------------------------------- */

static enum compared verdict_of(double gain, double band)
{
    if (fabs(gain) <= band) return COMPARE_WITHIN;
    return gain > 0 ? COMPARE_BETTER : COMPARE_WORSE;
}

static int compare_layouts(struct proving *p, struct compare_row *row, struct q_err *e)
{
    struct layouts l = { .n = 2 };
    struct q_shape s;
    const char *type;
    int rc = shape_parse(&s, row->own->shape, e);
    if (rc) return rc;
    if (!(type = shape_find(&s, "type"))) return q_fail(e, Q_EINTERNAL, "layout %s: a shape without a type", row->own->shape);
    long n = shape_int(&s, "n", 0), k = shape_int(&s, "k", 0);
    snprintf(l.name[0], sizeof l.name[0], "%s", row->own->layout);
    snprintf(l.name[1], sizeof l.name[1], "%s", row->other->layout);
    if ((rc = layouts_race(&p->env, type, n, k, p->t.model && n == p->t.model->config.n_vocab, &l, e))) return rc;
    row->own_us = l.us[0];
    row->other_us = l.us[1];
    row->gain = l.saved[1];
    row->band = RACE_TIE + 2 * l.noise[1];
    row->verdict = verdict_of(row->gain, row->band);
    return Q_OK;
}

static int compare_kernels(struct proving *p, struct compare_row *row, struct q_err *e)
{
    struct outcome *out = malloc(sizeof *out);
    if (!out) return q_fail(e, Q_EMEM, "no memory for a duel");
    int rc = contest_pair(&p->env, &row->problem, row->own->params, row->other->params, out, e);
    if (!rc) {
        row->own_us = out->duel.base_us;
        row->other_us = out->duel.best_us;
        row->gain = out->duel.gain;
        row->turns = out->duel.turns;
        row->band = RACE_TIE + 2 * out->duel.noise;
        row->verdict = row->turns ? verdict_of(row->gain, row->band) : COMPARE_SAME;
    }
    free(out);
    return rc;
}

/* What is wrong with one problem is that row's. */
static int compare_one(struct proving *p, struct compare_row *row, struct q_err *e)
{
    struct q_err why = { 0 };
    int rc = !strcmp(row->own->op, "layout") ? compare_layouts(p, row, &why) : compare_kernels(p, row, &why);
    if (rc && rc != Q_EINTERNAL && rc != Q_EUNSUP) return q_fail(e, rc, "%s", why.text);
    if (!rc) return Q_OK;
    row->verdict = COMPARE_FAILED;
    snprintf(row->why, sizeof row->why, "%.511s", why.text);
    return Q_OK;
}

static void count(struct compare_result *n, enum compared verdict)
{
    int *const counters[] = { &n->same, &n->within, &n->better, &n->worse, &n->failed };
    ++*counters[verdict];
}

/* --- all --------------------------------------------------------------------------------------------------------------- */

struct comparing {
    struct proving *p;
    struct record *theirs;         /* owned */
    int n_theirs;
    struct compare_row *row;       /* owned: [n] problems that both answer */
    int n;
};

static int is_winner(const struct record *r) { return r->origin[0] && strcmp(r->origin, "default"); }

/* Of buckets that share a winner on both sides the first stands for all. */
static int is_met_before(const struct comparing *c, const struct record *own, const struct record *other)
{
    for (int i = 0; i < c->n; i++) {
        const struct record *r = c->row[i].own;
        if (c->row[i].other != other || strcmp(r->op, own->op) || strcmp(r->shape, own->shape)) continue;
        if (r->rows == own->rows && r->ctx == own->ctx) return 1;
    }
    return 0;
}

static void add_row(struct comparing *c, const struct looked *v, const struct record *other)
{
    struct compare_row *row = &c->row[c->n];
    if (is_met_before(c, &v->record, other)) return;
    *row = (struct compare_row){ .problem = v->problem, .own = &v->record, .other = other };
    if (!v->record.rows && !other->rows) row->problem.rows = 0;
    if (!v->record.ctx && !other->ctx) row->problem.ctx = 0;
    c->n++;
}

/* What both answer, and what only one does. */
static int pair_up(struct comparing *c, struct compare_result *result, struct q_err *e)
{
    const struct look *l = &c->p->look;
    char *met = calloc((size_t)c->n_theirs + 1, 1);
    c->row = calloc((size_t)l->n + 1, sizeof *c->row);
    for (int i = 0; met && c->row && i < l->n; i++) {
        const struct record *own = &l->v[i].record, *other = answer_of(c->theirs, c->n_theirs, &l->v[i].problem);
        int here = is_winner(own) && strcmp(own->op, "ceiling");
        if (here && other) add_row(c, &l->v[i], other), met[other - c->theirs] = 1;
        result->unasked += here && !other;
    }
    for (int i = 0; met && i < c->n_theirs; i++) result->missing += !met[i];
    int rc = met && c->row ? Q_OK : q_fail(e, Q_EMEM, "no memory for %d problems", l->n);
    free(met);
    return rc;
}

static int differs(const struct compare_row *r) { return strcmp(r->own->params, r->other->params) != 0; }

/* One by one they would wait for one compiler each. */
static int build_ahead(const struct comparing *c, struct q_err *e)
{
    struct proving *p = c->p;
    const struct record **r = calloc(2 * (size_t)c->n + 1, sizeof *r);
    int n = 0;
    for (int i = 0; r && i < c->n; i++) {
        if (!differs(&c->row[i]) || !c->row[i].own->kernel[0]) continue;
        r[n++] = c->row[i].own;
        r[n++] = c->row[i].other;
    }
    int rc = r ? rebuild_all(&p->build, &p->t, p->g, r, n, e) : q_fail(e, Q_EMEM, "no memory for %d records", 2 * c->n);
    free(r);
    return rc;
}

static int compare_all(struct comparing *c, void (*row)(void *arg, const struct compare_row *r), void *arg, struct compare_result *result,
                       struct q_err *e)
{
    int rc = build_ahead(c, e);
    for (int i = 0; i < c->n && !rc; i++) {
        struct compare_row *r = &c->row[i];
        if (differs(r) && !(rc = compare_one(c->p, r, e))) row(arg, r);
        if (!rc) count(result, r->verdict);
    }
    return rc;
}

int compare_sets(struct proving *p, const struct card_lines *other, const char *where, void (*row)(void *arg, const struct compare_row *r), void *arg,
                 struct compare_result *result, struct q_err *e)
{
    struct comparing c = { .p = p };
    memset(result, 0, sizeof *result);
    int rc = judge_all(p, other, where, &c.theirs, &c.n_theirs, result, e);
    if (!rc) rc = pair_up(&c, result, e);
    if (!rc && !c.n) rc = q_fail(e, Q_EMISS, "%s: no problem that was measured here is answered there (%d records, %d of other templates)", where,
                                other->n, result->stale);
    if (!rc) rc = compare_all(&c, row, arg, result, e);
    free(c.theirs);
    free(c.row);
    return rc;
}
