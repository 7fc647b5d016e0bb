/* kset_problems: the list of (op, shape) problems that forward.c will ask for. Shapes are printed by kset_shapes.c. */
#include "joint.h"
#include "kset_shapes.h"
#include "model_parts.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list under construction. After an error everything is skipped and `rc` keeps the first. */
struct build {
    const struct q_model *m;
    const struct q_card *card;
    enum q_numerics numerics;
    const char *kv_k, *kv_v;
    int sparse;
    q_layout_of layout_of;
    void *arg;
    struct q_problem_list *out;
    int cap;
    struct { char shape[Q_SHAPE_TEXT], layout[24]; } *chosen;   /* owned: layouts asked for so far */
    int n_chosen;
    char shape[Q_SHAPE_TEXT];
    int rc;
    struct q_err *e;
};

int q_problem_is(const struct q_problem *a, const struct q_problem *b)
{
    return !strcmp(a->op, b->op) && !strcmp(a->shape, b->shape) && a->rows == b->rows && a->ctx == b->ctx;
}

static int is_there(const struct q_problem_list *l, const struct q_problem *p)
{
    for (int i = 0; i < l->n; i++)
        if (q_problem_is(&l->p[i], p)) return 1;
    return 0;
}

/* Adds (op, b->shape, buckets) unless it is there. Lists are short (a few hundred), so a scan will do. */
static void add_sized(struct build *b, const char *op, int rows, int ctx)
{
    struct q_problem_list *l = b->out;
    struct q_problem new = { .rows = rows, .ctx = ctx };
    strcpy(new.op, op);
    strcpy(new.shape, b->shape);
    if (b->rc || is_there(l, &new)) return;
    if (l->n == b->cap) {
        int cap = b->cap ? 2 * b->cap : 64;
        struct q_problem *more = realloc(l->p, (size_t)cap * sizeof *more);
        if (!more) {
            b->rc = q_fail(b->e, Q_EMEM, "no memory for a list of %d kernels", cap);
            return;
        }
        l->p = more;
        b->cap = cap;
    }
    l->p[l->n++] = new;
}

static void add(struct build *b, const char *op) { add_sized(b, op, 0, 0); }

/* Products of many rows and attention over a long past want other kernels than small ones. Numerics strict gives the same bits whichever
 * is taken; reference has plain kernels for all. */
static void add_sizes(struct build *b, const char *op, int rows, const int *bucket)
{
    if (b->numerics == Q_REFERENCE) {
        add(b, op);
        return;
    }
    for (; *bucket; bucket++) add_sized(b, op, rows ? *bucket : 0, rows ? 0 : *bucket);
}

/* --- layouts ----------------------------------------------------------------------------------------------------------- */

/* Numerics `reference` reads the file's own rows; else the layout was chosen by add_layout. */
static const char *layout_of(struct build *b, const struct q_tensor *w)
{
    char shape[Q_SHAPE_TEXT];
    shape_layout(shape, sizeof shape, w->format->name, (long)w->n, (long)w->k);
    for (int i = 0; i < b->n_chosen; i++)
        if (!strcmp(b->chosen[i].shape, shape)) return b->chosen[i].layout;
    return "rows";
}

static int is_chosen(const struct build *b, const char *shape)
{
    for (int i = 0; i < b->n_chosen; i++)
        if (!strcmp(b->chosen[i].shape, shape)) return 1;
    return 0;
}

/* Asks for the layout of a weight's (type, n, k), once. */
static void add_layout(struct build *b, const struct q_tensor *w)
{
    shape_layout(b->shape, sizeof b->shape, w->format->name, (long)w->n, (long)w->k);
    if (b->rc || b->numerics == Q_REFERENCE || is_chosen(b, b->shape)) return;
    const char *layout = b->layout_of(b->arg, w->format->name, (long)w->n, (long)w->k);
    void *more = realloc(b->chosen, (size_t)(b->n_chosen + 1) * sizeof *b->chosen);
    if (more) b->chosen = more;
    if (!more) b->rc = q_fail(b->e, Q_EMEM, "no memory for a list of %d layouts", b->n_chosen);
    else if (!layout || strlen(layout) >= sizeof b->chosen[0].layout) b->rc = q_fail(b->e, Q_EMISS, "no layout is chosen for weights %s", b->shape);
    if (b->rc) return;
    strcpy(b->chosen[b->n_chosen].shape, b->shape);
    strcpy(b->chosen[b->n_chosen++].layout, layout);
    add(b, "layout");
}

typedef void matrix_fn(struct build *b, const struct q_tensor *w, enum q_epi epi);

static void each_of_joint(struct build *b, const struct q_layer *l, enum q_joint_kind kind, matrix_fn *f)
{
    struct q_joint j;
    joint_make(&j, l, kind, b->card, b->numerics);
    if (j.joined) f(b, &j.whole, Q_EPI_PARTS);
    for (int i = 0; i < j.n && !j.joined; i++) f(b, j.part[i], Q_EPI_NONE);
}

/* Calls `f` for every matrix that is multiplied with: a joint counts as one. */
static void each_matrix(struct build *b, matrix_fn *f)
{
    for (int i = 0; i < b->m->config.n_layers; i++) {
        const struct q_layer *l = &b->m->layers[i];
        each_of_joint(b, l, Q_JOINT_INPUT, f);
        f(b, l->kind == Q_LAYER_ATTN ? &l->wo : &l->ssm_out, Q_EPI_ADD);
        each_of_joint(b, l, Q_JOINT_FFN, f);
        f(b, &l->ffn_down, Q_EPI_ADD);
    }
    f(b, &b->m->head, Q_EPI_NONE);
}

static void layout_matrix(struct build *b, const struct q_tensor *w, enum q_epi epi)
{
    (void)epi;
    add_layout(b, w);
}

/* --- ops --------------------------------------------------------------------------------------------------------------- */

static void add_product(struct build *b, const struct q_tensor *w, enum q_epi epi)
{
    shape_matmul(b->shape, sizeof b->shape, w, kset_act(w, b->numerics), layout_of(b, w), epi);
    add_sizes(b, "matvec", 1, (const int[]){ 1, 8, 0 });
    if (w == &b->m->head) add_sizes(b, "matmul", 1, (const int[]){ 64, 0 });   /* it meets wanted rows alone, which are few */
    else if (b->card->kind == Q_CARD_CUDA) add_sizes(b, "matmul", 1, (const int[]){ 64, 512, 2048, 0 });
    else add_sizes(b, "matmul", 1, (const int[]){ 64, 512, 0 });
}

static void add_norm(struct build *b, unsigned out)
{
    shape_rmsnorm(b->shape, sizeof b->shape, b->m->config.n_embd, out);
    add(b, "rmsnorm");
}

/* A last matrix that meets int8 has its fp32 input quantised. */
static void add_quantize(struct build *b, const struct q_tensor *w)
{
    if (kset_act(w, b->numerics) != Q_ACT_Q8) return;
    shape_quantize(b->shape, sizeof b->shape, (long)w->k);
    add(b, "quantize");
}

/* Attention writes what wo takes, if it can. */
static void add_attn(struct build *b, const struct q_layer *l)
{
    unsigned out = kset_out_attn(l, &b->m->config, b->numerics);
    shape_attn(b->shape, sizeof b->shape, &b->m->config, b->kv_k, b->kv_v, out);
    add_sizes(b, "attn_decode", 0, (const int[]){ 4096, 16384, 65536, 262144, 0 });
    if (b->card->kind == Q_CARD_CUDA) add_sizes(b, "attn_prefill", 1, (const int[]){ 512, 2048, 0 });
    else add(b, "attn_prefill");
    if (!(out & Q_OUT_Q8)) add_quantize(b, &l->wo);
}

/* A delta net's norm writes what ssm_out takes, if it can. */
static void add_gated_norm(struct build *b, const struct q_layer *l)
{
    unsigned out = kset_out_gated_norm(l, &b->m->config, b->numerics);
    shape_gated_norm(b->shape, sizeof b->shape, &b->m->config, out);
    add(b, "gated_norm");
    if (b->card->kind == Q_CARD_CUDA) {
        shape_gdn_step_norm(b->shape, sizeof b->shape, &b->m->config, out);
        add(b, "gdn_step_norm");
    }
    if (!(out & Q_OUT_Q8)) add_quantize(b, &l->ssm_out);
}

static void add_layers(struct build *b)
{
    for (int i = 0; i < b->m->config.n_layers; i++) {
        const struct q_layer *l = &b->m->layers[i];
        add_norm(b, kset_out_attn_norm(l, b->numerics));
        add_norm(b, kset_out_ffn_norm(l, b->numerics));
        if (l->kind == Q_LAYER_ATTN) add_attn(b, l);
        else add_gated_norm(b, l);
        shape_swiglu(b->shape, sizeof b->shape, b->m->config.n_ff, kset_out_swiglu(l, b->numerics));
        add(b, "swiglu");
    }
    add_norm(b, kset_out_head(b->m, b->numerics));
}

static void add_attention(struct build *b)
{
    const struct q_config *c = &b->m->config;
    if (!q_count_layers(c, Q_LAYER_ATTN)) return;
    shape_rope_table(b->shape, sizeof b->shape, c);
    add(b, "rope_table");
    shape_qk_rope(b->shape, sizeof b->shape, c);
    add(b, "qk_rope");
    shape_kv_append(b->shape, sizeof b->shape, c, b->kv_k, b->kv_v);
    add(b, "kv_append");
    if (!b->sparse) return;
    shape_attn_pick(b->shape, sizeof b->shape, c, b->kv_k);
    add(b, "attn_pick");
}

static void add_delta_net(struct build *b)
{
    const struct q_config *c = &b->m->config;
    if (!q_count_layers(c, Q_LAYER_GDN)) return;
    shape_conv_silu(b->shape, sizeof b->shape, c);
    add(b, "conv_silu");
    shape_gdn_prep(b->shape, sizeof b->shape, c);
    add(b, "gdn_prep");
    if (b->card->kind == Q_CARD_CUDA) {
        shape_gdn_conv_prep(b->shape, sizeof b->shape, c);
        add(b, "gdn_conv_prep");
    }
    shape_gdn(b->shape, sizeof b->shape, c);
    add(b, "gdn_step");
    /* The chunked form is another numerics class: strict and reference run the recurrence for any number of rows. */
    if (b->numerics != Q_STRICT && b->numerics != Q_REFERENCE) add(b, "gdn_chunk");
}

/* A card has its weights brought: repacked from a file, or made there for a preset. `whole`: where the tensor lies, itself or a joint. */
static void add_bring(struct build *b, const struct q_tensor *w, const struct q_tensor *whole)
{
    const char *layout = whole->n > 1 && w->format->type != Q_TYPE_F32 ? layout_of(b, whole) : "rows";
    int repacked = strcmp(layout, "rows") != 0;
    if (repacked && (b->m->file || b->m->stands_for_file)) {
        shape_repack(b->shape, sizeof b->shape, whole, layout);
        add(b, "repack");
    }
    if (b->m->file) return;
    shape_synth(b->shape, sizeof b->shape, repacked ? whole : w, layout);
    add(b, "synth");
}

static int bring_part(void *user, const struct q_part *p, int layer, struct q_tensor *t)
{
    struct build *b = user;
    const struct q_tensor *whole = t;
    struct q_joint j[Q_JOINTS];
    for (int kind = 0; layer >= 0 && kind < Q_JOINTS; kind++) {
        joint_make(&j[kind], &b->m->layers[layer], kind, b->card, b->numerics);
        for (int i = 0; i < j[kind].n && j[kind].joined; i++)
            if (j[kind].part[i] == t) whole = &j[kind].whole;
    }
    if (t->format) add_bring(b, t, whole);
    return 0;
}

/* Not of the model: what its speed is judged by. */
static void add_ceilings(struct build *b)
{
    const struct q_card *c = b->card;
    int half = c->cc == 60 || c->cc == 62 || c->cc >= 70, tensor = (c->cc == 70 || c->cc == 72 || c->cc >= 75) && !c->without_mma;
    struct { const char *what; int has; } all[] = { { "read", 1 }, { "ffma", 1 }, { "dp4a", c->cc >= 61 && !c->without_dp4a }, { "hfma2", half },
                                                    { "mma_f16", tensor }, { "mma_i8", tensor && c->cc >= 75 } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].has) continue;
        snprintf(b->shape, sizeof b->shape, "what=%s", all[i].what);
        add(b, "ceiling");
    }
}

static void add_ends(struct build *b)
{
    shape_embed(b->shape, sizeof b->shape, &b->m->embd, layout_of(b, &b->m->embd));
    add(b, "embed");
    shape_topk(b->shape, sizeof b->shape, b->m->config.n_vocab);
    add(b, "topk");
    shape_sample(b->shape, sizeof b->shape, b->m->config.n_vocab);
    add(b, "sample");
}

int kset_problems(const struct q_model *m, const struct q_card *card, enum q_numerics numerics, const char *kv_k, const char *kv_v, int sparse,
                  q_layout_of layout, void *arg, struct q_problem_list *out, struct q_err *e)
{
    if (numerics == Q_REFERENCE) kv_k = kv_v = "f32";
    struct build b = { .m = m, .card = card, .numerics = numerics, .kv_k = kv_k, .kv_v = kv_v, .sparse = sparse, .layout_of = layout, .arg = arg,
                       .out = out, .e = e };
    memset(out, 0, sizeof *out);
    add_layout(&b, &m->embd);
    each_matrix(&b, layout_matrix);
    add_ends(&b);
    add_layers(&b);
    each_matrix(&b, add_product);
    add_attention(&b);
    add_delta_net(&b);
    if (card->kind == Q_CARD_CUDA) {
        q_each_part((struct q_model *)(uintptr_t)m, bring_part, &b);
        add_ceilings(&b);
    }
    free(b.chosen);
    if (b.rc) {
        free(out->p);
        memset(out, 0, sizeof *out);
    }
    return b.rc;
}

/* --- numerics ---------------------------------------------------------------------------------------------------------- */

static const char *const numerics_names[] = { [Q_STRICT] = "strict", [Q_PINNED] = "pinned", [Q_FREE] = "free", [Q_REFERENCE] = "reference" };

int q_numerics_parse(const char *name)
{
    for (int i = 0; i <= Q_REFERENCE; i++)
        if (!strcmp(numerics_names[i], name)) return i;
    return -1;
}

const char *q_numerics_name(enum q_numerics n) { return numerics_names[n]; }
