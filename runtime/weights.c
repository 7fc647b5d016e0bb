#include "weights.h"
#include "joint.h"
#include "kernel.h"
#include "kset_shapes.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct pack_args {
    const struct q_layout *layout;
    const struct q_tensor *t;
    void *dst;
};

/* A kernel in form, so that the device's whole team packs. */
static void pack_kernel(const void *args, struct team *team)
{
    const struct pack_args *a = args;
    i64 row0, row1;
    team_share(team, a->t->n, 16, &row0, &row1);
    if (row0 < row1) a->layout->pack(a->t->format, a->dst, a->t->data, a->t->n, a->t->k, row0, row1);
}

static const struct q_kernel packing = {.fn = pack_kernel};

static int pack(struct q_weights *ws, const struct q_weight *w, struct q_err *e)
{
    struct q_list list = {0};
    struct pack_args args = {w->layout, w->tensor, (void *)(uintptr_t)w->data};
    int rc = list_push(&list, &packing, "pack", &args, sizeof args, e);
    if (!rc) rc = ws->device->ops->submit(ws->device, &list, &(struct q_extent){0}, NULL, e);
    if (!rc) rc = ws->device->ops->wait(ws->device, e);
    list_free(&list);
    return rc;
}

/* Made-up weights that are not made yet have a name and no data. */
static int same_data(const struct q_tensor *a, const struct q_tensor *b) { return a->data ? a->data == b->data : !strcmp(a->name, b->name); }

const struct q_weight *weights_twin(const struct q_weights *ws, const struct q_weight *w)
{
    for (int i = 0; i < w - ws->w; i++)
        if (same_data(ws->w[i].tensor, w->tensor)) return &ws->w[i];
    return NULL;
}

static int is_mapped(const struct q_weights *ws, const struct q_weight *w) { return !w->layout->pack && ws->device->host_memory; }

static size_t bytes_of(const struct q_weight *w)
{
    return ((size_t)w->layout->bytes(w->tensor->format, w->tensor->n, w->tensor->k) + 63) / 64 * 64;
}

/* Gives every weight its place: where the file is mapped, or in one block behind one another. Small matrices side by side get huge pages. */
static int lay_out(struct q_weights *ws, struct q_err *e)
{
    size_t at = 0;
    for (int i = 0; i < ws->n; i++) {
        if (ws->w[i].whole >= 0 || weights_twin(ws, &ws->w[i])) continue;
        if (is_mapped(ws, &ws->w[i])) ws->mapped_bytes += ws->w[i].tensor->bytes;
        else ws->packed_bytes += bytes_of(&ws->w[i]);
    }
    if (ws->packed_bytes && !(ws->block = ws->device->ops->alloc(ws->device, ws->packed_bytes, e))) return e ? e->code : Q_EMEM;
    for (int i = 0; i < ws->n; i++) {
        struct q_weight *w = &ws->w[i];
        const struct q_weight *twin = weights_twin(ws, w);
        if (w->whole >= 0) w->data = ws->w[w->whole].data;
        else if (twin) w->data = twin->data;
        else if (is_mapped(ws, w)) w->data = w->tensor->data;
        else {
            w->data = ws->block + at;
            at += bytes_of(w);
        }
    }
    return Q_OK;
}

static int is_there(const struct q_weights *ws, const struct q_tensor *t) { return weights_find(ws, t) != NULL; }

static int add(struct q_weights *ws, const struct q_weights_opts *o, const struct q_tensor *t, struct q_err *e)
{
    if (!t->format || is_there(ws, t)) return Q_OK;     /* a part that this layer lacks, or of a joint */
    if (ws->n == ws->cap) {
        int cap = ws->cap ? ws->cap * 2 : 64;
        struct q_weight *w = realloc(ws->w, (size_t)cap * sizeof *w);
        if (!w) return q_fail(e, Q_EMEM, "no memory for a table of %d weights", cap);
        ws->w = w;
        ws->cap = cap;
    }
    /* Vectors ([1][n] fp32) are read as they lie. */
    int matrix = t->n > 1 && t->format->type != Q_TYPE_F32;
    const char *name = matrix && o->numerics != Q_REFERENCE ? kset_layout(o->kernels, t->format->name, (long)t->n, (long)t->k) : "rows";
    struct q_weight *w = &ws->w[ws->n];
    *w = (struct q_weight){.tensor = t, .layout = q_layout_find(name), .act = kset_act(t, o->numerics), .whole = -1};
    if (!w->layout) return q_fail(e, Q_EINTERNAL, "%s: the kernel set asks for a weight layout '%s' unknown to this version", t->name, name);
    ws->n++;
    return Q_OK;
}

/* The joint first, then its parts with their places in it. */
static int add_joint(struct q_weights *ws, const struct q_weights_opts *o, const struct q_layer *l, int kind, struct q_tensor *whole, struct q_err *e)
{
    struct q_joint j;
    joint_make(&j, l, kind, &ws->device->card, o->numerics);
    if (!j.joined) return Q_OK;
    *whole = j.whole;
    int at = ws->n, rc = add(ws, o, whole, e);
    int64_t row = 0;
    for (int i = 0; i < j.n && !rc; i++) {
        rc = add(ws, o, j.part[i], e);
        if (rc) break;
        struct q_weight *w = &ws->w[ws->n - 1];
        w->whole = at;
        w->row0 = row;
        w->layout = ws->w[at].layout;
        row += j.part[i]->n;
    }
    if (!rc) ws->w[at].parts = j.n;
    return rc;
}

static int add_layer(struct q_weights *ws, const struct q_weights_opts *o, const struct q_layer *l, struct q_err *e)
{
    const struct q_tensor *all[] = {&l->attn_norm, &l->ffn_norm, &l->ffn_gate, &l->ffn_up, &l->ffn_down, &l->wq,     &l->wk,
                                    &l->wv,        &l->wo,       &l->q_norm,   &l->k_norm, &l->qkv,      &l->z,      &l->alpha,
                                    &l->beta,      &l->conv,     &l->dt,       &l->a,      &l->ssm_norm, &l->ssm_out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int rc = add(ws, o, all[i], e);
        if (rc) return rc;
    }
    return Q_OK;
}

static int add_all(struct q_weights *ws, const struct q_weights_opts *o, struct q_err *e)
{
    const struct q_model *m = o->model;
    const struct q_tensor *ends[] = {&m->embd, &m->head, &m->out_norm};
    int rc = Q_OK, layers = m->config.n_layers;
    ws->joints = calloc((size_t)(layers * Q_JOINTS) + 1, sizeof *ws->joints);
    if (!ws->joints) return q_fail(e, Q_EMEM, "no memory for a table of %d layers", layers);
    for (int i = 0; i < 3 && !rc; i++) rc = add(ws, o, ends[i], e);
    for (int i = 0; i < layers && !rc; i++) {
        for (int kind = 0; kind < Q_JOINTS && !rc; kind++) rc = add_joint(ws, o, &m->layers[i], kind, &ws->joints[i * Q_JOINTS + kind], e);
        if (!rc) rc = add_layer(ws, o, &m->layers[i], e);
    }
    return rc;
}

/* A tensor of a file is looked over for values that are no numbers before it is used. */
static int place_on_host(struct q_weights *ws, const struct q_weights_opts *o, const struct q_weight *w, struct q_err *e)
{
    int rc = o->model->file ? model_check_tensor(o->model, w->tensor, e) : Q_OK;
    if (rc || is_mapped(ws, w)) return rc;
    rc = pack(ws, w, e);
    if (!rc) model_release(o->model, w->tensor);
    return rc;
}

static int place_all(struct q_weights *ws, const struct q_weights_opts *o, struct q_err *e)
{
    int rc = Q_OK;
    if (!ws->device->host_memory) return weights_upload(ws, o, e);
    for (int i = 0; i < ws->n && !rc; i++) {
        if (!weights_twin(ws, &ws->w[i])) rc = place_on_host(ws, o, &ws->w[i], e);
        if (o->progress) o->progress(o->progress_arg, (double)(i + 1) / ws->n);
    }
    return rc;
}

int weights_open(struct q_weights *ws, struct q_device *d, const struct q_weights_opts *o, struct q_err *e)
{
    memset(ws, 0, sizeof *ws);
    ws->device = d;
    int rc = add_all(ws, o, e);
    if (!rc) rc = lay_out(ws, e);
    if (!rc) rc = place_all(ws, o, e);
    if (rc) weights_close(ws);
    return rc;
}

void weights_close(struct q_weights *ws)
{
    if (ws->block) ws->device->ops->release(ws->device, ws->block);
    free(ws->w);
    free(ws->joints);
    memset(ws, 0, sizeof *ws);
}

const struct q_weight *weights_find(const struct q_weights *ws, const struct q_tensor *t)
{
    for (int i = 0; i < ws->n; i++)
        if (ws->w[i].tensor == t) return &ws->w[i];
    return NULL;
}

const struct q_weight *weights_joint(const struct q_weights *ws, const struct q_tensor *t)
{
    const struct q_weight *w = weights_find(ws, t);
    return w && w->whole >= 0 ? &ws->w[w->whole] : NULL;
}
