#include "weights.h"
#include "kernel.h"
#include "kset_shapes.h"
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

static int pack(struct q_weights *ws, const struct q_layout *layout, const struct q_tensor *t, void *dst, struct q_err *e)
{
    struct q_list list = {0};
    struct pack_args args = {layout, t, dst};
    int rc = list_push(&list, &packing, "pack", &args, sizeof args, e);
    if (!rc) rc = ws->device->ops->submit(ws->device, &list, &(struct q_extent){0}, NULL, e);
    if (!rc) rc = ws->device->ops->wait(ws->device, e);
    list_free(&list);
    return rc;
}

enum { CHUNK = 64 << 20 };

/* Room for a matrix. Many are of a few MiB; together in large blocks they get huge pages. */
static void *take(struct q_weights *ws, size_t bytes, struct q_err *e)
{
    bytes = (bytes + 63) / 64 * 64;
    if (bytes > ws->n_free) {
        size_t chunk = bytes > CHUNK ? bytes : CHUNK;
        void **chunks = realloc(ws->chunks, ((size_t)ws->n_chunks + 1) * sizeof *chunks);
        if (!chunks) {
            q_fail(e, Q_EMEM, "no memory for a table of %d blocks of weights", ws->n_chunks + 1);
            return NULL;
        }
        ws->chunks = chunks;
        void *p = ws->device->ops->alloc(ws->device, chunk, e);
        if (!p) return NULL;
        ws->chunks[ws->n_chunks++] = ws->free = p;
        ws->n_free = chunk;
    }
    void *p = ws->free;
    ws->free += bytes;
    ws->n_free -= bytes;
    return p;
}

/* The data of a tensor that is there already under another name (a tied head). */
static const struct q_weight *same_data(const struct q_weights *ws, const struct q_tensor *t)
{
    for (int i = 0; i < ws->n; i++)
        if (ws->w[i].tensor->data == t->data) return &ws->w[i];
    return NULL;
}

static int place(struct q_weights *ws, struct q_weight *w, struct q_model *m, struct q_err *e)
{
    const struct q_tensor *t = w->tensor;
    const struct q_weight *twin = same_data(ws, t);
    if (twin) {
        w->data = twin->data;
        return Q_OK;
    }
    int bad = m->file ? model_check_tensor(m, t, e) : Q_OK;
    if (bad) return bad;
    if (!w->layout->pack && ws->device->host_memory) {
        w->data = t->data;
        ws->mapped_bytes += t->bytes;
        return Q_OK;
    }
    size_t bytes = (size_t)w->layout->bytes(t->format, t->n, t->k);
    void *dst = take(ws, bytes, e);
    if (!dst) return e ? e->code : Q_EMEM;
    w->data = dst;
    ws->packed_bytes += bytes;
    int rc = w->layout->pack ? pack(ws, w->layout, t, dst, e) : ws->device->ops->write(ws->device, dst, t->data, bytes, e);
    if (!rc) model_release(m, t);
    return rc;
}

static int add(struct q_weights *ws, struct q_model *m, const struct q_tensor *t, const struct kset *k, enum q_numerics numerics,
               struct q_err *e)
{
    if (!t->data) return Q_OK;
    if (ws->n == ws->cap) {
        int cap = ws->cap ? ws->cap * 2 : 64;
        struct q_weight *w = realloc(ws->w, (size_t)cap * sizeof *w);
        if (!w) return q_fail(e, Q_EMEM, "no memory for a table of %d weights", cap);
        ws->w = w;
        ws->cap = cap;
    }
    /* Vectors ([1][n] fp32) are read as they lie. */
    int matrix = t->n > 1 && t->format->type != Q_TYPE_F32;
    const char *name = matrix && numerics != Q_REFERENCE ? kset_layout(k, t->format->name, (long)t->n, (long)t->k) : "rows";
    struct q_weight *w = &ws->w[ws->n];
    *w = (struct q_weight){.tensor = t, .layout = q_layout_find(name), .act = kset_act(t, numerics)};
    if (!w->layout) return q_fail(e, Q_EINTERNAL, "%s: the kernel set asks for a weight layout '%s' unknown to this version", t->name, name);
    int rc = place(ws, w, m, e);
    if (!rc) ws->n++;
    return rc;
}

static int add_layer(struct q_weights *ws, struct q_model *m, const struct q_layer *l, const struct kset *k, enum q_numerics numerics,
                     struct q_err *e)
{
    const struct q_tensor *all[] = {&l->attn_norm, &l->ffn_norm, &l->ffn_gate, &l->ffn_up, &l->ffn_down, &l->wq,     &l->wk,
                                    &l->wv,        &l->wo,       &l->q_norm,   &l->k_norm, &l->qkv,      &l->z,      &l->alpha,
                                    &l->beta,      &l->conv,     &l->dt,       &l->a,      &l->ssm_norm, &l->ssm_out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int rc = add(ws, m, all[i], k, numerics, e);
        if (rc) return rc;
    }
    return Q_OK;
}

int weights_open(struct q_weights *ws, struct q_device *d, struct q_model *m, const struct kset *k, enum q_numerics numerics,
                 struct q_err *e)
{
    memset(ws, 0, sizeof *ws);
    ws->device = d;
    const struct q_tensor *ends[] = {&m->embd, &m->head, &m->out_norm};
    int rc = Q_OK;
    for (int i = 0; i < 3 && !rc; i++) rc = add(ws, m, ends[i], k, numerics, e);
    for (int i = 0; i < m->config.n_layers && !rc; i++) rc = add_layer(ws, m, &m->layers[i], k, numerics, e);
    if (rc) weights_close(ws);
    return rc;
}

void weights_close(struct q_weights *ws)
{
    for (int i = 0; i < ws->n_chunks; i++) ws->device->ops->release(ws->device, ws->chunks[i]);
    free(ws->chunks);
    free(ws->w);
    memset(ws, 0, sizeof *ws);
}

const struct q_weight *weights_find(const struct q_weights *ws, const struct q_tensor *t)
{
    for (int i = 0; i < ws->n; i++)
        if (ws->w[i].tensor == t) return &ws->w[i];
    return NULL;
}
