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

/* On a card, what its driver takes for a set's modules and graphs (read off an H200: about 60 MiB), and the stage that weights go through. */
enum { GPU_KERNELS = 64 << 20 };

static size_t step_bytes(const struct q_config *c, const struct q_plan_options *o)
{
    struct q_scratch_size scratch = { o->max_rows, o->max_out, o->ctx, o->parts, Q_TOP, o->gpu };
    struct q_step_size table = { o->max_rows, o->max_out, o->n_seqs, o->n_snaps, o->ctx, c->n_embd, c->n_vocab };
    return scratch_bytes(c, &scratch) + step_table_bytes(&table);
}

static void set(struct q_plan *p, enum q_plan_item i, const char *what, double bytes)
{
    p->lines[i].what = what;
    p->lines[i].bytes = to_bytes(bytes);
}

/* Pages and slots are counted as the engine does when it opens: a snapshot costs a state and at most two pages of its own. */
void plan_make(struct q_plan *p, const struct q_config *c, const struct q_plan_options *o)
{
    memset(p, 0, sizeof *p);
    double total = 0;
    int64_t whole = ((int64_t)o->ctx + KV_PAGE - 1) / KV_PAGE, pool = (o->kv_tokens + KV_PAGE - 1) / KV_PAGE;
    p->n_pages = (o->kv_tokens ? (pool > whole ? pool : whole) : o->n_seqs * whole) + 2 * (int64_t)o->n_snaps;
    p->n_slots = (int64_t)o->n_seqs + o->n_snaps;
    p->page_bytes = kv_page_bytes(c, o->kv_k, o->kv_v);
    p->slot_bytes = states_slot_bytes(c);
    set(p, Q_PLAN_WEIGHTS, "weights", (double)o->weight_bytes);
    set(p, Q_PLAN_KV, "KV pages", (double)p->page_bytes * (double)p->n_pages);
    set(p, Q_PLAN_STATES, "states", (double)p->slot_bytes * (double)p->n_slots);
    set(p, Q_PLAN_SCRATCH, "scratch", (double)step_bytes(c, o));
    set(p, Q_PLAN_KERNELS, "kernels and graphs", o->gpu ? (double)GPU_KERNELS + WEIGHTS_STAGE : 0);
    for (int i = 0; i < Q_PLAN_ITEMS; i++) total += (double)p->lines[i].bytes;
    p->total = to_bytes(total);
}
