/* Memory arithmetic: how many of each thing there are. What one of them takes is asked of whoever owns it. */
#include "plan.h"
#include "engine.h"
#include "kv.h"
#include "scratch.h"
#include "step_table.h"
#include "weights.h"
#include <string.h>

static size_t to_bytes(double v) { return v < 0x1p63 ? (size_t)v : SIZE_MAX; }

struct q_plan_options plan_defaults(size_t weight_bytes, int ctx, int parts)
{
    return (struct q_plan_options){ .weight_bytes = weight_bytes, .ctx = ctx, .n_seqs = 1, .max_rows = 512, .max_out = 1,
                                    .parts = parts, .kv_k = "f16", .kv_v = "f16" };
}

int plan_max_rows(int gpu, size_t available)
{
    const size_t large_card = (size_t)12 << 30;   /* from this much free memory, the scratch of wide steps is no burden */
    return gpu && available >= large_card ? 2048 : 512;
}

int plan_max_snaps(int n_seqs) { return n_seqs + 4; }

enum { SNAP_PAGES = 2 };   /* KV pages that a snapshot may have for itself */

size_t plan_snap_bytes(const struct q_config *c, const char *kv_k, const char *kv_v)
{
    return states_slot_bytes(c) + SNAP_PAGES * kv_page_bytes(c, kv_k, kv_v);
}

int plan_snaps_of_bytes(const struct q_config *c, const char *kv_k, const char *kv_v, size_t bytes)
{
    const size_t most = 256, each = plan_snap_bytes(c, kv_k, kv_v);
    return (int)(bytes / each < most ? bytes / each : most);
}

/* On a card, what its driver takes for a set's modules and graphs. Read off an H200, driver 580, 27B: 28 552 MiB were taken of 28 556 that
 * this plans. */
enum { GPU_KERNELS = 64 << 20 };

/* The stage that weights go through is given back before the rest is taken, so it counts only where the rest is smaller. */
static double stage_bytes(const struct q_plan *p)
{
    double rest = 0;
    for (int i = Q_PLAN_KV; i <= Q_PLAN_SCRATCH; i++) rest += (double)p->lines[i].bytes;
    return rest < WEIGHTS_STAGE ? WEIGHTS_STAGE - rest : 0;
}

/* What n blocks take: a card's driver gives memory in granules, and packs blocks that are smaller than half of one. */
static double blocks(const struct q_plan_options *o, int n, size_t bytes)
{
    enum { GRANULE = 2 << 20 };
    size_t each = o->gpu && bytes >= GRANULE / 2 ? (bytes + GRANULE - 1) / GRANULE * GRANULE : bytes;
    return (double)n * (double)each;
}

struct q_scratch_size plan_scratch(const struct q_plan_options *o)
{
    return (struct q_scratch_size){ o->max_rows, o->max_out, o->ctx, o->parts, Q_TOP, o->gpu, o->sparse ? o->n_seqs : 0 };
}

struct q_step_size plan_step(const struct q_config *c, const struct q_plan_options *o)
{
    return (struct q_step_size){ o->max_rows, o->max_out, o->n_seqs, o->n_snaps, o->ctx, c->n_embd, c->n_vocab };
}

static size_t step_bytes(const struct q_config *c, const struct q_plan_options *o)
{
    struct q_scratch_size scratch = plan_scratch(o);
    struct q_step_size table = plan_step(c, o);
    return scratch_bytes(c, &scratch) + step_table_bytes(&table);
}

static void set(struct q_plan *p, enum q_plan_item i, const char *what, double bytes)
{
    p->lines[i].what = what;
    p->lines[i].bytes = to_bytes(bytes);
}

/* All KV pages, as kv_open takes them: a block a layer for K, and one for V. */
static double kv_bytes(const struct q_config *c, const struct q_plan_options *o, int64_t n_pages)
{
    int layers = q_count_layers(c, Q_LAYER_ATTN);
    size_t pages = (size_t)n_pages;
    return blocks(o, layers, pages * kv_layer_page_bytes(c, o->kv_k)) + blocks(o, layers, pages * kv_layer_page_bytes(c, o->kv_v));
}

void plan_make(struct q_plan *p, const struct q_config *c, const struct q_plan_options *o)
{
    memset(p, 0, sizeof *p);
    double total = 0;
    int64_t whole = ((int64_t)o->ctx + KV_PAGE - 1) / KV_PAGE, pool = (o->kv_tokens + KV_PAGE - 1) / KV_PAGE;
    p->n_pages = (o->kv_tokens ? (pool > whole ? pool : whole) : o->n_seqs * whole) + SNAP_PAGES * (int64_t)o->n_snaps;
    p->n_slots = (int64_t)o->n_seqs + o->n_snaps;
    p->page_bytes = kv_page_bytes(c, o->kv_k, o->kv_v);
    p->slot_bytes = states_slot_bytes(c);
    double kept_pages = (double)SNAP_PAGES * o->n_snaps * (double)p->page_bytes, kept_states = (double)p->slot_bytes * o->n_snaps;
    set(p, Q_PLAN_WEIGHTS, "weights", blocks(o, 1, o->weight_bytes));
    set(p, Q_PLAN_KV, "KV pages", kv_bytes(c, o, p->n_pages) - kept_pages);
    set(p, Q_PLAN_STATES, "states", (double)p->slot_bytes * (double)o->n_seqs);
    set(p, Q_PLAN_CHECKPOINTS, "checkpoints", kept_pages + kept_states);
    set(p, Q_PLAN_SCRATCH, "scratch", (double)step_bytes(c, o));
    set(p, Q_PLAN_KERNELS, "kernels and graphs", o->gpu ? GPU_KERNELS + stage_bytes(p) : 0);
    for (int i = 0; i < Q_PLAN_ITEMS; i++) total += (double)p->lines[i].bytes;
    p->total = to_bytes(total);
}
