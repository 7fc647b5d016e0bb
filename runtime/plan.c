/* Memory arithmetic. Formulas are written out once here; docs and the engine read them from this file. */
#include "plan.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static size_t to_bytes(double v) { return v < 0x1p63 ? (size_t)v : SIZE_MAX; }

struct q_plan_options plan_defaults(size_t weight_bytes, int64_t ctx)
{
    return (struct q_plan_options){ .weight_bytes = weight_bytes, .ctx = ctx, .n_seqs = 1, .n_slots = 2,
                                    .max_rows = 512, .max_out = 1, .k_bytes = 2, .v_bytes = 2 };
}

/* One page: 64 tokens x KV heads x head_dim, K and V, in every attention layer. */
static double page_bytes(const struct q_config *c, const struct q_plan_options *o)
{
    return (double)q_count_layers(c, Q_LAYER_ATTN) * Q_PAGE_TOKENS * c->n_head_kv * c->head_dim * (o->k_bytes + o->v_bytes);
}

/* One slot: S fp32 [n_v_heads][state_dim][state_dim] and the last conv_taps - 1 inputs fp32 [conv_dim], a delta-net layer. */
static double slot_bytes(const struct q_config *c)
{
    double s = (double)c->n_v_heads * c->state_dim * c->state_dim, conv = (double)(c->conv_taps - 1) * q_conv_dim(c);
    return (double)q_count_layers(c, Q_LAYER_GDN) * 4 * (s + conv);
}

/* Bytes of one row's int8 activations of n elements: fp32 scale and int32 sum to 32 of them. */
static double q8_row(double n) { return ceil(n / 32) * (32 + 8); }

/* The most that one row keeps alive: residual and normed row, and the widest of the three parts of a layer. */
static double row_bytes(const struct q_config *c)
{
    double attn = (double)c->n_head * c->head_dim, kv = (double)c->n_head_kv * c->head_dim, v = q_v_dim(c);
    double full = 4 * (2 * attn + 2 * kv + attn) + q8_row(attn);
    double delta = 4 * (2.0 * q_conv_dim(c) + 2 * v + 2.0 * c->n_v_heads) + q8_row(v);
    double ff = 4 * (2.0 * c->n_ff) + q8_row(c->n_ff);
    if (!q_count_layers(c, Q_LAYER_ATTN)) full = 0;
    if (!q_count_layers(c, Q_LAYER_GDN)) delta = 0;
    return 4 * 2.0 * c->n_embd + q8_row(c->n_embd) + fmax(ff, fmax(full, delta));
}

static void set(struct q_plan *p, enum q_plan_item i, const char *what, double bytes)
{
    p->lines[i].what = what;
    p->lines[i].bytes = to_bytes(bytes);
}

void plan_make(struct q_plan *p, const struct q_config *c, const struct q_plan_options *o)
{
    memset(p, 0, sizeof *p);
    double page = page_bytes(c, o), slot = slot_bytes(c), total = 0;
    p->n_pages = o->n_seqs * ((o->ctx + Q_PAGE_TOKENS - 1) / Q_PAGE_TOKENS);
    p->page_bytes = to_bytes(page);
    p->slot_bytes = to_bytes(slot);
    set(p, Q_PLAN_WEIGHTS, "weights", (double)o->weight_bytes);
    set(p, Q_PLAN_KV, "KV pages", page * (double)p->n_pages);
    set(p, Q_PLAN_STATES, "states", slot * o->n_slots);
    set(p, Q_PLAN_SCRATCH, "scratch", row_bytes(c) * o->max_rows);
    set(p, Q_PLAN_LOGITS, "logits", 4.0 * c->n_vocab * o->max_out);
    for (int i = 0; i < Q_PLAN_ITEMS; i++) total += (double)p->lines[i].bytes;
    p->total = to_bytes(total);

    size_t n = sizeof p->lines[0].how;
    snprintf(p->lines[Q_PLAN_WEIGHTS].how, n, "%s", o->repacked ? "repacked" : "mapped from the file");
    snprintf(p->lines[Q_PLAN_KV].how, n, "%lld pages of %d tokens, %d layers", (long long)p->n_pages, Q_PAGE_TOKENS,
             q_count_layers(c, Q_LAYER_ATTN));
    snprintf(p->lines[Q_PLAN_STATES].how, n, "%d slots, %d layers", o->n_slots, q_count_layers(c, Q_LAYER_GDN));
    snprintf(p->lines[Q_PLAN_SCRATCH].how, n, "steps of up to %d rows", o->max_rows);
    snprintf(p->lines[Q_PLAN_LOGITS].how, n, "%d rows", o->max_out);
}
