#include "target.h"
#include "runtime/model_parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef QUARRY_VERSION
#define QUARRY_VERSION "0"
#endif

static int size_part(void *arg, const struct q_part *p, int layer, struct q_tensor *w)
{
    struct q_model *m = ((void **)arg)[0];
    const struct q_format *format = ((void **)arg)[1];
    q_part_name(w->name, layer, p->name);
    w->format = q_part_format(&m->config, p, format);
    w->n = q_dim_of(&m->config, p->n);
    w->k = q_dim_of(&m->config, p->k);
    return 0;
}

/* A preset's tensors without their bytes: a 27B shape is tuned for on a machine that could not hold it. */
static int open_shape(struct q_model **out, const char *preset, const char *type, struct q_err *e)
{
    const struct q_format *format = q_format_by_name(type);
    if (!format) return q_fail(e, Q_EUNSUP, "--type %.32s: expected q8_0, f16, bf16 or f32", type);
    struct q_model *m = calloc(1, sizeof *m);
    if (!m) return q_fail(e, Q_EMEM, "no memory for a model's shape");
    int r = config_from_preset(&m->config, preset, e);
    if (!r) r = config_check(&m->config, preset, e);
    if (!r && !(m->layers = calloc((size_t)m->config.n_layers, sizeof *m->layers))) r = q_fail(e, Q_EMEM, "no memory for a model's shape");
    if (r) {
        free(m);
        return r;
    }
    for (int i = 0; i < m->config.n_layers; i++) m->layers[i].kind = m->config.kind[i];
    void *arg[] = { m, (void *)format };
    q_each_part(m, size_part, arg);
    if (m->config.tied) m->head = m->embd;
    *out = m;
    return Q_OK;
}

int target_open(struct target *t, const char *model, const char *preset, const char *type, struct q_err *e)
{
    t->shape_only = !model;
    return model ? model_open(&t->model, model, e) : open_shape(&t->model, preset, type, e);
}

void target_close(struct target *t)
{
    if (!t->model) return;
    if (t->shape_only) {
        free(t->model->layers);
        free(t->model);
    } else {
        model_close(t->model);
    }
    t->model = NULL;
}

int target_key(const struct target *t, struct gen *g, const struct q_problem *p, char generator[65], struct store_key *k, struct q_err *e)
{
    int r = gen_hash(g, p->op, generator, e);
    *k = (struct store_key){ p->op, p->shape, p->rows, p->ctx, q_numerics_name(t->numerics), t->card.key, generator };
    return r;
}

int target_emit(const struct target *t, struct gen *g, const struct q_problem *p, const char *params, struct gen_kernel *gk, struct q_err *e)
{
    return gen_emit(g, p->op, p->shape, params, t->card.key, q_numerics_name(t->numerics), gk, e);
}

int target_admits(const struct target *t, const char *numerics) { return t->numerics != Q_STRICT || !strcmp(numerics, "canonical"); }

static void fill_problem(struct record *r, const struct store_key *k, const struct q_problem *p)
{
    memset(r, 0, sizeof *r);
    strcpy(r->op, p->op);
    strcpy(r->shape, p->shape);
    r->rows = p->rows;
    r->ctx = p->ctx;
    snprintf(r->profile, sizeof r->profile, "%s", k->profile);
    snprintf(r->card, sizeof r->card, "%s", k->card);
    snprintf(r->generator, sizeof r->generator, "%s", k->generator);
    snprintf(r->version, sizeof r->version, "%s", QUARRY_VERSION);
}

static void fill_cost(struct record_cost *c, struct gen *g, const struct q_problem *p)
{
    static const int rows[] = { 1, 512, 1, 512 }, past[] = { 0, 0, 1024, 1024 };
    c->known = 1;
    for (int i = 0; i < 4 && c->known; i++) c->known = !gen_cost(g, p->op, p->shape, rows[i], past[i], &c->bytes[i], &c->ops[i], NULL);
}

void target_record(struct record *r, struct gen *g, const struct store_key *k, const struct q_problem *p, const struct gen_kernel *gk)
{
    fill_problem(r, k, p);
    strcpy(r->params, gk->params);
    snprintf(r->layout, sizeof r->layout, "%s", gk->layout);
    snprintf(r->numerics, sizeof r->numerics, "%s", gk->numerics);
    if (!gk->unit || !*gk->unit) return;
    fill_cost(&r->cost, g, p);
    strcpy(r->kernel, gk->name);
    r->launch = gk->launch;
    sha_bytes(r->source, gk->unit, strlen(gk->unit));
}

static double last_cache(const struct q_card *c)
{
    int kib = c->kind == Q_CARD_CUDA ? c->l2 : c->l3_kib > c->l2_kib ? c->l3_kib : c->l2_kib;
    return 1024.0 * kib;
}

long target_cold_bytes(const struct target *t)
{
    double cache = 3 * last_cache(&t->card);
    double model = t->model ? (double)t->model->weight_bytes : 0;
    if (t->shape_only || model <= 0 || model > cache) return (long)cache;
    return (long)model;
}
