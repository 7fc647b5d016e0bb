#include "forward.h"
#include "rope.h"
#include "kset_shapes.h"
#include "templates/attn_pick/args.h"
#include "templates/attn_prefill/args.h"
#include "templates/conv_silu/args.h"
#include "templates/embed/args.h"
#include "templates/gated_norm/args.h"
#include "templates/gdn_conv_prep/args.h"
#include "templates/gdn_prep/args.h"
#include "templates/gdn_step/args.h"
#include "templates/gdn_step_norm/args.h"
#include "templates/kv_append/args.h"
#include "templates/matmul/args.h"
#include "templates/qk_rope/args.h"
#include "templates/quantize/args.h"
#include "templates/rmsnorm/args.h"
#include "templates/rope_table/args.h"
#include "templates/sample/args.h"
#include "templates/swiglu/args.h"
#include "templates/topk/args.h"
#include <stdlib.h>
#include <string.h>

/* A list under construction. After an error everything is skipped and `rc` keeps the first. */
struct build {
    const struct q_parts *p;
    struct q_list *list;
    enum q_form form;
    char shape[Q_SHAPE_TEXT];
    int rc;
    struct q_err *e;
};

static void push(struct build *b, const char *op, const void *args, size_t bytes)
{
    const struct q_kernel *kernel;
    if (!b->rc) b->rc = kset_find(b->p->kernels, op, b->shape, &kernel, b->e);
    if (!b->rc) b->rc = list_push(b->list, kernel, op, args, bytes, b->e);
    if (b->rc) return;
    struct q_launch *l = &b->list->launch[b->list->n - 1];
    kset_about(b->p->kernels, op, b->shape, &l->shape, &l->cost);
}

/* Rows of activations in the two forms that a product may take. */
struct rows {
    const i32 *n;          /* device count */
    const float *f32;
    struct act_q8 q8;
};

static void push_norm(struct build *b, unsigned out, const struct rows *y, const i32 *list, const float *x, const struct q_tensor *w, long n)
{
    struct rmsnorm_args args = {.n_rows = y->n, .list = list, .x = x, .w = weights_find(b->p->weights, w)->data,
                                .eps = b->p->model->config.rms_eps, .y = (float *)y->f32, .q = y->q8};
    shape_rmsnorm(b->shape, sizeof b->shape, n, out);
    push(b, "rmsnorm", &args, sizeof args);
}

static void push_matrix(struct build *b, const struct q_weight *w, struct matmul_args *args, const struct rows *x, enum q_epi epi)
{
    args->n_rows = x->n;
    args->w = w->data;
    args->x = x->f32;
    args->a = x->q8;
    args->work = b->p->scratch->work;
    shape_matmul(b->shape, sizeof b->shape, w->tensor, w->act, w->layout->name, epi);
    push(b, b->form == Q_FEW ? "matvec" : "matmul", args, sizeof *args);
}

static void push_product(struct build *b, const struct q_tensor *t, const struct rows *x, float *y, int add)
{
    struct matmul_args args = {.y = y, .y_stride = t->n};
    push_matrix(b, weights_find(b->p->weights, t), &args, x, add ? Q_EPI_ADD : Q_EPI_NONE);
}

/* The product after this one reads the same rows and writes elsewhere, so members of the team may go on without meeting. */
static void with_next(struct build *b)
{
    if (!b->rc) b->list->launch[b->list->n - 1].with_next = 1;
}

/* Products of the same rows by n matrices: one launch where they are a joint. */
static void push_products(struct build *b, const struct q_tensor *const *t, float *const *y, int n, const struct rows *x)
{
    const struct q_weight *whole = weights_joint(b->p->weights, t[0]);
    struct matmul_args args = {0};
    for (int i = 0; i < n && !whole; i++) {
        push_product(b, t[i], x, y[i], 0);
        if (i + 1 < n) with_next(b);
    }
    if (!whole) return;
    for (int i = 0; i < MATMUL_PARTS; i++) {
        args.part[i] = i < n ? y[i] : NULL;
        args.first[i + 1] = args.first[i] + (i < n ? (i32)t[i]->n : 0);
    }
    push_matrix(b, whole, &args, x, Q_EPI_PARTS);
}

/* A block's last product, added to the residual stream. out: what is in x; fp32 is quantised first if the weight wants that. */
static void push_residual(struct build *b, const struct q_tensor *t, const struct rows *x, unsigned out)
{
    if (kset_act(t, b->p->numerics) == Q_ACT_Q8 && !(out & Q_OUT_Q8)) {
        struct quantize_args args = {.n_rows = x->n, .x = x->f32, .q = x->q8};
        shape_quantize(b->shape, sizeof b->shape, (long)t->k);
        push(b, "quantize", &args, sizeof args);
    }
    push_product(b, t, x, b->p->scratch->x, 1);
}

static void push_qkv(struct build *b, const struct q_layer *l, const struct rows *h)
{
    const struct q_parts *p = b->p;
    const struct q_scratch *s = p->scratch;
    const struct q_config *c = &p->model->config;
    push_products(b, (const struct q_tensor *[]){&l->wq, &l->wk, &l->wv}, (float *[]){s->wide, s->k, s->v}, 3, h);
    struct qk_rope_args args = {.step = p->step, .qg = s->wide, .q = s->mid, .k = s->k, .wq = weights_find(p->weights, &l->q_norm)->data,
                                .wk = weights_find(p->weights, &l->k_norm)->data, .eps = c->rms_eps, .cs = s->cs};
    shape_qk_rope(b->shape, sizeof b->shape, c);
    push(b, "qk_rope", &args, sizeof args);
}

/* Which pages the attention after it reads. */
static void push_pick(struct build *b, int layer)
{
    const struct q_parts *p = b->p;
    const struct q_scratch *s = p->scratch;
    const struct q_config *c = &p->model->config;
    struct attn_pick_args args = {.step = p->step, .q = s->mid, .pages_k = p->kv->k[layer], .scale = c->attn_scale, .mass = (f32)p->sparse.mass,
                                  .dense = p->sparse.from, .share = (f32)p->sparse.share, .pick = s->pick, .work = s->work};
    shape_attn_pick(b->shape, sizeof b->shape, c, p->kv_k);
    push(b, "attn_pick", &args, sizeof args);
}

static void push_attention(struct build *b, const struct q_layer *l, int layer)
{
    const struct q_parts *p = b->p;
    const struct q_scratch *s = p->scratch;
    const struct q_config *c = &p->model->config;
    struct kv_append_args append = {.step = p->step, .k = s->k, .v = s->v, .pages_k = p->kv->k[layer], .pages_v = p->kv->v[layer]};
    shape_kv_append(b->shape, sizeof b->shape, c, p->kv_k, p->kv_v);
    push(b, "kv_append", &append, sizeof append);
    struct attn_args attn = {.step = p->step, .q = s->mid, .qg = s->wide, .pages_k = p->kv->k[layer], .pages_v = p->kv->v[layer],
                             .scale = c->attn_scale, .o = s->m, .oq = s->mq, .work = s->work};
    if (s->pick && b->form == Q_MANY) {
        push_pick(b, layer);
        attn.pick = s->pick;
    }
    shape_attn(b->shape, sizeof b->shape, c, p->kv_k, p->kv_v, kset_out_attn(l, c, p->numerics));
    push(b, b->form == Q_MANY ? "attn_prefill" : "attn_decode", &attn, sizeof attn);
}

/* The chunked form is another numerics class, so strict and reference run the recurrence for any number of rows. */
static const char *delta_op(const struct build *b)
{
    int recurrent = b->form != Q_MANY || b->p->numerics == Q_STRICT || b->p->numerics == Q_REFERENCE;
    return recurrent ? "gdn_step" : "gdn_chunk";
}

/* The whole delta net of few rows in two launches: on a card a step waits longer for launches than for what they do. */
static void push_delta_fused(struct build *b, const struct q_layer *l, int layer)
{
    const struct q_parts *p = b->p;
    const struct q_scratch *s = p->scratch;
    const struct q_config *c = &p->model->config;
    struct gdn_conv_prep_args in = {.step = p->step, .u = s->wide, .w = weights_find(p->weights, &l->conv)->data, .state = p->states->conv[layer],
                                    .c = s->mid, .alpha = s->alpha, .beta = s->beta, .a = weights_find(p->weights, &l->a)->data,
                                    .dt = weights_find(p->weights, &l->dt)->data, .g = s->g, .b = s->b};
    shape_gdn_conv_prep(b->shape, sizeof b->shape, c);
    push(b, "gdn_conv_prep", &in, sizeof in);
    struct gdn_step_norm_args out = {.step = p->step, .c = s->mid, .g = s->g, .b = s->b, .state = p->states->s[layer], .z = s->z,
                                     .w = weights_find(p->weights, &l->ssm_norm)->data, .eps = c->rms_eps, .y = s->m, .q = s->mq};
    shape_gdn_step_norm(b->shape, sizeof b->shape, c, kset_out_gated_norm(l, c, p->numerics));
    push(b, "gdn_step_norm", &out, sizeof out);
}

static void push_delta(struct build *b, const struct q_layer *l, int layer)
{
    if (b->form == Q_FEW && !b->p->scratch->device->host_memory) {
        push_delta_fused(b, l, layer);
        return;
    }
    const struct q_parts *p = b->p;
    const struct q_scratch *s = p->scratch;
    const struct q_config *c = &p->model->config;
    struct conv_silu_args conv = {.step = p->step, .u = s->wide, .w = weights_find(p->weights, &l->conv)->data, .state = p->states->conv[layer],
                                  .y = s->mid};
    shape_conv_silu(b->shape, sizeof b->shape, c);
    push(b, "conv_silu", &conv, sizeof conv);
    struct gdn_prep_args prep = {.n_rows = &p->step->n_rows, .c = s->mid, .alpha = s->alpha, .beta = s->beta,
                                 .a = weights_find(p->weights, &l->a)->data, .dt = weights_find(p->weights, &l->dt)->data, .g = s->g, .b = s->b};
    shape_gdn_prep(b->shape, sizeof b->shape, c);
    push(b, "gdn_prep", &prep, sizeof prep);
    struct gdn_args gdn = {.step = p->step, .c = s->mid, .g = s->g, .b = s->b, .state = p->states->s[layer], .o = s->o, .work = s->work};
    shape_gdn(b->shape, sizeof b->shape, c);
    push(b, delta_op(b), &gdn, sizeof gdn);
    struct gated_norm_args norm = {.n_rows = &p->step->n_rows, .o = s->o, .z = s->z, .w = weights_find(p->weights, &l->ssm_norm)->data,
                                   .eps = c->rms_eps, .y = s->m, .q = s->mq};
    shape_gated_norm(b->shape, sizeof b->shape, c, kset_out_gated_norm(l, c, p->numerics));
    push(b, "gated_norm", &norm, sizeof norm);
}

static void push_ffn(struct build *b, const struct q_layer *l, const struct rows *h, const struct rows *m)
{
    const struct q_scratch *s = b->p->scratch;
    push_norm(b, kset_out_ffn_norm(l, b->p->numerics), h, NULL, s->x, &l->ffn_norm, b->p->model->config.n_embd);
    push_products(b, (const struct q_tensor *[]){&l->ffn_gate, &l->ffn_up}, (float *[]){s->wide, s->mid}, 2, h);
    struct swiglu_args args = {.n_rows = m->n, .gate = s->wide, .up = s->mid, .y = (float *)m->f32, .q = m->q8};
    shape_swiglu(b->shape, sizeof b->shape, b->p->model->config.n_ff, kset_out_swiglu(l, b->p->numerics));
    push(b, "swiglu", &args, sizeof args);
    push_product(b, &l->ffn_down, m, s->x, 1);
}

/* nth: how many layers of the same kind come before it on this device. */
static void push_layer(struct build *b, const struct q_layer *l, int nth)
{
    const struct q_scratch *s = b->p->scratch;
    struct rows h = {&b->p->step->n_rows, s->h, s->hq}, m = {&b->p->step->n_rows, s->m, s->mq};
    push_norm(b, kset_out_attn_norm(l, b->p->numerics), &h, NULL, s->x, &l->attn_norm, b->p->model->config.n_embd);
    if (l->kind == Q_LAYER_ATTN) {
        push_qkv(b, l, &h);
        push_attention(b, l, nth);
        push_residual(b, &l->wo, &m, kset_out_attn(l, &b->p->model->config, b->p->numerics));
    } else {
        push_products(b, (const struct q_tensor *[]){&l->qkv, &l->z, &l->alpha, &l->beta}, (float *[]){s->wide, s->z, s->alpha, s->beta}, 4, &h);
        push_delta(b, l, nth);
        push_residual(b, &l->ssm_out, &m, kset_out_gated_norm(l, &b->p->model->config, b->p->numerics));
    }
    push_ffn(b, l, &h, &m);
}

static void push_layers(struct q_forward *f, struct build *b)
{
    int nth[2] = {0, 0};
    for (int i = f->a; i < f->b; i++) {
        const struct q_layer *l = &b->p->model->layers[i];
        push_layer(b, l, nth[l->kind]++);
        f->end[b->form][i - f->a] = b->list->n;
    }
}

static void push_embed(struct build *b)
{
    const struct q_parts *p = b->p;
    const struct q_weight *w = weights_find(p->weights, &p->model->embd);
    struct embed_args embed = {.step = p->step, .w = w->data, .x = p->scratch->x};
    shape_embed(b->shape, sizeof b->shape, &p->model->embd, w->layout->name);
    push(b, "embed", &embed, sizeof embed);
    if (!q_count_layers(&p->model->config, Q_LAYER_ATTN)) return;
    struct rope_table_args rope = {.step = p->step, .freq = p->scratch->freq, .scale = rope_attention(&p->model->config), .cs = p->scratch->cs};
    shape_rope_table(b->shape, sizeof b->shape, &p->model->config);
    push(b, "rope_table", &rope, sizeof rope);
}

/* The output norm reads the wanted rows of the residual stream; their post-norm rows stay in scratch.hn. */
static void push_head(struct build *b)
{
    const struct q_parts *p = b->p;
    struct rows h = {&p->step->n_out, p->scratch->hn, p->scratch->hnq};
    push_norm(b, kset_out_head(p->model, p->numerics), &h, p->out, p->scratch->x, &p->model->out_norm, p->model->config.n_embd);
    push_product(b, &p->model->head, &h, p->scratch->logits, 0);
}

static void push_top(struct build *b)
{
    const struct q_scratch *s = b->p->scratch;
    struct topk_args args = {.n_rows = &b->p->step->n_out, .logits = s->logits, .id = s->top_id, .value = s->top_value, .lse = s->lse,
                             .work = s->work};
    shape_topk(b->shape, sizeof b->shape, b->p->model->config.n_vocab);
    push(b, "topk", &args, sizeof args);
}

static void push_sample(struct build *b)
{
    const struct q_scratch *s = b->p->scratch;
    struct sample_args args = {.step = b->p->step, .logits = s->logits, .id = s->id, .logprob = s->logprob, .work = s->work};
    shape_sample(b->shape, sizeof b->shape, b->p->model->config.n_vocab);
    push(b, "sample", &args, sizeof args);
}

static int build(const struct q_parts *p, struct q_list *list, enum q_form form, void (*fill)(struct build *), struct q_err *e)
{
    struct build b = {.p = p, .list = list, .form = form, .e = e};
    fill(&b);
    return b.rc;
}

static int build_layers(struct q_forward *f, const struct q_parts *p, enum q_form form, struct q_err *e)
{
    f->end[form] = calloc((size_t)(f->b - f->a) + 1, sizeof(int));
    if (!f->end[form]) return q_fail(e, Q_EMEM, "no memory for a table of %d layers", f->b - f->a);
    struct build b = {.p = p, .list = &f->layers[form], .form = form, .e = e};
    push_layers(f, &b);
    return b.rc;
}

static void each_list(struct q_forward *f, void (*visit)(struct q_device *d, struct q_list *l))
{
    struct q_list *ends[] = {&f->embed, &f->top, &f->sample};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) visit(f->device, ends[i]);
    for (int form = 0; form < Q_FORMS; form++) {
        visit(f->device, &f->layers[form]);
        visit(f->device, &f->head[form]);
        visit(f->device, &f->decode[form]);
    }
}

static void keep_list(struct q_device *d, struct q_list *l)
{
    (void)d;
    l->stable = 1;
}

static void drop_list(struct q_device *d, struct q_list *l)
{
    d->ops->forget(d, l);
    list_free(l);
}

static int build_decode(struct q_forward *f, enum q_form layers, enum q_form head, struct q_err *e)
{
    const struct q_list *parts[] = {&f->embed, &f->layers[layers], &f->head[head], &f->sample};
    int rc = Q_OK;
    for (int i = 0; i < 4 && !rc; i++) rc = list_append(&f->decode[layers], parts[i], e);
    return rc;
}

int forward_open(struct q_forward *f, const struct q_parts *p, int a, int b, struct q_err *e)
{
    memset(f, 0, sizeof *f);
    f->a = a;
    f->b = b;
    f->device = p->scratch->device;
    int rc = build(p, &f->embed, Q_MANY, push_embed, e);
    for (int form = 0; form < Q_FORMS && !rc; form++) rc = build_layers(f, p, form, e);
    for (int form = Q_FEW; form <= Q_MANY && !rc; form++) rc = build(p, &f->head[form], form, push_head, e);
    if (!rc) rc = build(p, &f->top, Q_MANY, push_top, e);
    if (!rc) rc = build(p, &f->sample, Q_MANY, push_sample, e);
    if (!rc) rc = build_decode(f, Q_FEW, Q_FEW, e);
    if (!rc) rc = build_decode(f, Q_WIDE, Q_MANY, e);
    if (rc) forward_close(f);
    else each_list(f, keep_list);
    return rc;
}

void forward_close(struct q_forward *f)
{
    if (f->device) each_list(f, drop_list);
    for (int form = 0; form < Q_FORMS; form++) free(f->end[form]);
    memset(f, 0, sizeof *f);
}
