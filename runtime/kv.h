/* KV memory and recurrent state of one stage's layers on a device.
 *
 * KV is pages of KV_PAGE tokens; one page id stands for the page of every attention layer. Pages are reference counted; a holder that
 * wants to write a page it shares asks kv_own first. Recurrent state (delta net and conv) is slots, copied whole.
 * Both keep their books on the host; the memory is the device's and is all taken at open.
 */
#ifndef Q_KV_H
#define Q_KV_H

#include "config.h"
#include "device.h"
#include "kernel.h"

struct q_kv {
    struct q_device *device;
    int n_layers;                 /* attention layers */
    void **k, **v;                /* owned: [n_layers] device memory, [n_pages] pages each */
    size_t k_bytes, v_bytes;      /* of one page of one layer */
    int n_pages, n_free;
    int *refs;                    /* owned: [n_pages] */
    int *free_page;               /* owned: [n_pages] stack */
};
/* fk, fv: names of kv_formats (kv_format.h) that take heads of this size. */
int kv_open(struct q_kv *kv, struct q_device *d, const struct q_config *c, int n_pages, const char *fk, const char *fv, struct q_err *e);
void kv_close(struct q_kv *kv);
/* A page with one reference, -1 when none is left. */
int kv_take(struct q_kv *kv);
void kv_share(struct q_kv *kv, int page);
void kv_drop(struct q_kv *kv, int page);
/* Makes *page the caller's alone: itself if it is, else a copy. Q_ELIMIT when no page is left. */
int kv_own(struct q_kv *kv, int *page, struct q_err *e);
/* Bytes of K, or of V, in one page of one layer. */
size_t kv_layer_page_bytes(const struct q_config *c, const char *format);
/* Bytes of one page over all attention layers. */
size_t kv_page_bytes(const struct q_config *c, const char *fk, const char *fv);

struct q_states {
    struct q_device *device;
    int n_layers;                 /* delta-net layers */
    float **s;                    /* owned: [n_layers], [n_slots][v_heads][dim][dim] */
    float **conv;                 /* owned: [n_layers], [n_slots][taps-1][channels] */
    size_t s_bytes, conv_bytes;   /* of one slot of one layer */
    int n_slots, n_free;
    int *free_slot;               /* owned: stack */
};
int states_open(struct q_states *st, struct q_device *d, const struct q_config *c, int n_slots, struct q_err *e);
void states_close(struct q_states *st);
int states_take(struct q_states *st);         /* -1 when none is left */
void states_give(struct q_states *st, int slot);
int states_copy(struct q_states *st, int to, int from, struct q_err *e);
/* Bytes of one slot over all delta-net layers. */
size_t states_slot_bytes(const struct q_config *c);

#endif
