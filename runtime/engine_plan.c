/* The engine's memory: the plan of its options, made to fit where the caller left that open, told and held against what is free. */
#include "engine_impl.h"
#include "model.h"
#include <stdio.h>

void engine_count_slots(struct q_engine *en)
{
    if (en->o.snap_bytes) en->o.max_snaps = plan_snaps_of_bytes(&en->model->config, en->o.kv_k, en->o.kv_v, *en->o.snap_bytes);
    else if (!en->snaps_given) en->o.max_snaps = plan_max_snaps(en->o.max_seqs);
    if (!en->out_given) en->o.max_out = en->o.max_seqs;
}

static double mib(size_t bytes) { return (double)bytes / 1048576; }

struct q_plan_options engine_plan_options(const struct q_engine *en)
{
    const struct q_engine_opts *o = &en->o;
    return (struct q_plan_options){.weight_bytes = en->model->weight_bytes, .ctx = o->ctx, .n_seqs = o->max_seqs, .kv_tokens = o->kv_tokens,
                                   .n_snaps = o->max_snaps, .max_rows = o->max_rows, .max_out = o->max_out, .parts = en->device->parts,
                                   .kv_k = o->kv_k, .kv_v = o->kv_v, .gpu = !en->device->host_memory, .sparse = o->sparse.mass > 0};
}

/* With this context. */
static struct q_plan plan_of(const struct q_engine *en, int ctx)
{
    struct q_plan_options po = engine_plan_options(en);
    struct q_plan p;
    po.ctx = ctx;
    plan_make(&p, &en->model->config, &po);
    return p;
}

/* The largest context, by halving, whose plan fits; 0 if none does. */
static int ctx_that_fits(const struct q_engine *en, size_t available)
{
    for (int ctx = en->o.ctx; ctx >= 64; ctx /= 2)
        if (plan_of(en, ctx).total <= available) return ctx;
    return 0;
}

/* Takes from what was not chosen, the dearest first: room for all sequences at full length, down to that for one; context, as far as it is
 * more than most need; sequences; context. 0: nothing is left to take. */
static int make_smaller(struct q_engine *en)
{
    struct q_engine_opts *o = &en->o;
    const int plenty = 32768, least = 4096;
    int64_t all = o->kv_tokens ? o->kv_tokens : (int64_t)o->max_seqs * o->ctx;
    int lowest = en->seqs_given || o->max_seqs == 1 ? least : plenty;
    if (all > o->ctx) {
        o->kv_tokens = (int)(all / 2 > o->ctx ? all / 2 : o->ctx);
    } else if (!en->ctx_given && o->ctx > lowest) {
        o->ctx = o->ctx / 2 > lowest ? o->ctx / 2 : lowest;
        o->kv_tokens = 0;
    } else if (!en->seqs_given && o->max_seqs > 1) {
        o->max_seqs /= 2;
        engine_count_slots(en);
    } else {
        return 0;
    }
    return 1;
}

static void make_fit(struct q_engine *en, size_t available)
{
    while (en->o.fit && plan_of(en, en->o.ctx).total > available && make_smaller(en)) continue;
}

/* "weights 8868.6 MiB, KV ..." with what the numbers stand for. */
static void tell_parts(const struct q_engine *en, const struct q_plan *p, char *text, size_t size)
{
    const struct q_engine_opts *o = &en->o;
    char kept[80] = "", kernels[64] = "", held[80];
    if (o->kv_tokens) snprintf(held, sizeof held, "%d tokens for %d sequences of at most %d", o->kv_tokens, o->max_seqs, o->ctx);
    else snprintf(held, sizeof held, "%d x %d tokens", o->max_seqs, o->ctx);
    if (o->max_snaps) snprintf(kept, sizeof kept, ", checkpoints %.1f MiB (%d)", mib(p->lines[Q_PLAN_CHECKPOINTS].bytes), o->max_snaps);
    if (p->lines[Q_PLAN_KERNELS].bytes) snprintf(kernels, sizeof kernels, ", kernels and graphs %.1f MiB", mib(p->lines[Q_PLAN_KERNELS].bytes));
    snprintf(text, size, "weights %.1f MiB, KV %.1f MiB (%s, %s/%s), states %.1f MiB%s, scratch %.1f MiB%s", mib(p->lines[Q_PLAN_WEIGHTS].bytes),
             mib(p->lines[Q_PLAN_KV].bytes), held, o->kv_k, o->kv_v, mib(p->lines[Q_PLAN_STATES].bytes), kept,
             mib(p->lines[Q_PLAN_SCRATCH].bytes), kernels);
}

int engine_check_plan(struct q_engine *en, struct q_err *e)
{
    size_t available = en->device->ops->available(en->device);
    make_fit(en, available);
    struct q_plan p = en->plan = plan_of(en, en->o.ctx);
    en->free_before = available;
    char text[400];
    tell_parts(en, &p, text, sizeof text);
    engine_say(en, "memory: %s", text);
    if (!en->device->host_memory) engine_say(en, "memory: %.1f MiB in all, %.1f MiB are free", mib(p.total), mib(available));
    if (p.total <= available) return Q_OK;
    int fits = ctx_that_fits(en, available);
    if (!fits)
        return q_fail(e, Q_ELIMIT, "%s does not fit: %.0f MiB are needed (%s) and %.0f MiB are free", en->model->path, mib(p.total), text,
                      mib(available));
    return q_fail(e, Q_ELIMIT, "a context of %d does not fit: %.0f MiB are needed (%s) and %.0f MiB are free; -c %d would fit", en->o.ctx,
                  mib(p.total), text, mib(available), fits);
}
