#include "kv.h"
#include "kv_format.h"
#include <stdlib.h>
#include <string.h>

size_t kv_layer_page_bytes(const struct q_config *c, const char *format)
{
    return (size_t)c->n_head_kv * kv_format_piece_bytes(format, c->head_dim);
}

size_t kv_page_bytes(const struct q_config *c, const char *fk, const char *fv)
{
    return (size_t)q_count_layers(c, Q_LAYER_ATTN) * (kv_layer_page_bytes(c, fk) + kv_layer_page_bytes(c, fv));
}

size_t states_slot_bytes(const struct q_config *c)
{
    size_t s = (size_t)q_v_dim(c) * (size_t)c->state_dim, conv = (size_t)(c->conv_taps - 1) * (size_t)q_conv_dim(c);
    return (size_t)q_count_layers(c, Q_LAYER_GDN) * (s + conv) * sizeof(float);
}

/* [n] device blocks of `bytes`; NULL and everything released on an error. */
static void **take_blocks(struct q_device *d, int n, size_t bytes, struct q_err *e)
{
    void **p = calloc((size_t)n + 1, sizeof *p);
    if (!p) {
        q_fail(e, Q_EMEM, "no memory for a table of %d layers", n);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        if ((p[i] = d->ops->alloc(d, bytes, e))) continue;
        while (i--) d->ops->release(d, p[i]);
        free(p);
        return NULL;
    }
    return p;
}

static void give_blocks(struct q_device *d, void **p, int n)
{
    for (int i = 0; p && i < n; i++) d->ops->release(d, p[i]);
    free(p);
}

/* A stack of 0..n-1 with 0 on top. */
static int *fresh_stack(int n)
{
    int *s = malloc(((size_t)n + 1) * sizeof *s);
    for (int i = 0; s && i < n; i++) s[i] = n - 1 - i;
    return s;
}

int kv_open(struct q_kv *kv, struct q_device *d, const struct q_config *c, int n_pages, const char *fk, const char *fv, struct q_err *e)
{
    memset(kv, 0, sizeof *kv);
    kv->device = d;
    kv->n_layers = q_count_layers(c, Q_LAYER_ATTN);
    kv->n_pages = kv->n_free = n_pages;
    kv->k_bytes = kv_layer_page_bytes(c, fk);
    kv->v_bytes = kv_layer_page_bytes(c, fv);
    kv->refs = calloc((size_t)n_pages + 1, sizeof *kv->refs);
    kv->free_page = fresh_stack(n_pages);
    if (!kv->refs || !kv->free_page) q_fail(e, Q_EMEM, "no memory for a table of %d KV pages", n_pages);
    else if ((kv->k = take_blocks(d, kv->n_layers, (size_t)n_pages * kv->k_bytes, e))
             && (kv->v = take_blocks(d, kv->n_layers, (size_t)n_pages * kv->v_bytes, e)))
        return Q_OK;
    kv_close(kv);
    return Q_EMEM;
}

void kv_close(struct q_kv *kv)
{
    if (!kv->device) return;
    give_blocks(kv->device, kv->k, kv->n_layers);
    give_blocks(kv->device, kv->v, kv->n_layers);
    free(kv->refs);
    free(kv->free_page);
    memset(kv, 0, sizeof *kv);
}

int kv_take(struct q_kv *kv)
{
    if (!kv->n_free) return -1;
    int page = kv->free_page[--kv->n_free];
    kv->refs[page] = 1;
    return page;
}

void kv_share(struct q_kv *kv, int page) { kv->refs[page]++; }

void kv_drop(struct q_kv *kv, int page)
{
    if (--kv->refs[page] == 0) kv->free_page[kv->n_free++] = page;
}

static int copy_page(struct q_kv *kv, void *const *layers, size_t bytes, int to, int from, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < kv->n_layers && !rc; i++) {
        char *p = layers[i];
        rc = kv->device->ops->copy(kv->device, p + (size_t)to * bytes, p + (size_t)from * bytes, bytes, e);
    }
    return rc;
}

int kv_own(struct q_kv *kv, int *page, struct q_err *e)
{
    if (kv->refs[*page] == 1) return Q_OK;
    int to = kv_take(kv);
    if (to < 0) return q_fail(e, Q_ELIMIT, "no KV page left: all %d are in use", kv->n_pages);
    int rc = copy_page(kv, kv->k, kv->k_bytes, to, *page, e);
    if (!rc) rc = copy_page(kv, kv->v, kv->v_bytes, to, *page, e);
    if (rc) {
        kv_drop(kv, to);
        return rc;
    }
    kv_drop(kv, *page);
    *page = to;
    return Q_OK;
}

int states_open(struct q_states *st, struct q_device *d, const struct q_config *c, int n_slots, struct q_err *e)
{
    memset(st, 0, sizeof *st);
    st->device = d;
    st->n_layers = q_count_layers(c, Q_LAYER_GDN);
    st->n_slots = st->n_free = n_slots;
    st->s_bytes = (size_t)q_v_dim(c) * (size_t)c->state_dim * sizeof(float);
    st->conv_bytes = (size_t)(c->conv_taps - 1) * (size_t)q_conv_dim(c) * sizeof(float);
    if (!(st->free_slot = fresh_stack(n_slots))) q_fail(e, Q_EMEM, "no memory for a table of %d state slots", n_slots);
    else if ((st->s = (float **)take_blocks(d, st->n_layers, (size_t)n_slots * st->s_bytes, e))
             && (st->conv = (float **)take_blocks(d, st->n_layers, (size_t)n_slots * st->conv_bytes, e)))
        return Q_OK;
    states_close(st);
    return Q_EMEM;
}

void states_close(struct q_states *st)
{
    if (!st->device) return;
    give_blocks(st->device, (void **)st->s, st->n_layers);
    give_blocks(st->device, (void **)st->conv, st->n_layers);
    free(st->free_slot);
    memset(st, 0, sizeof *st);
}

int states_take(struct q_states *st) { return st->n_free ? st->free_slot[--st->n_free] : -1; }
void states_give(struct q_states *st, int slot) { st->free_slot[st->n_free++] = slot; }

int states_copy(struct q_states *st, int to, int from, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < st->n_layers && !rc; i++) {
        char *s = (char *)st->s[i], *conv = (char *)st->conv[i];
        rc = st->device->ops->copy(st->device, s + (size_t)to * st->s_bytes, s + (size_t)from * st->s_bytes, st->s_bytes, e);
        if (!rc)
            rc = st->device->ops->copy(st->device, conv + (size_t)to * st->conv_bytes, conv + (size_t)from * st->conv_bytes,
                                       st->conv_bytes, e);
    }
    return rc;
}
