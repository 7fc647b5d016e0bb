/* GET /slots: what the engine is at: an entry for each answer that may be generated at once. What is kept of prompts is the server's, not a slot's:
 * every entry has the same. */
#include "api.h"
#include <stdlib.h>

static void put_cache(const struct q_tree_counts *c, struct text *t)
{
    text_put(t, ",\"checkpoints\":{");
    for (int i = Q_TIER_DEVICE; i < Q_TIERS; i++) {
        const struct q_tree_tier_counts *r = &c->tier[i];
        text_printf(t, "%s\"%s\":{\"n\":%d,\"bytes\":%zu,\"budget\":", i > Q_TIER_DEVICE ? "," : "", q_tier_name((enum q_tier)i), r->n, r->bytes);
        if (r->budget == SIZE_MAX) text_put(t, "null");
        else text_printf(t, "%zu", r->budget);
        text_printf(t, ",\"used\":%llu}", r->got);
    }
    text_put(t, "}");
}

static void put_slot(const struct sched_view *v, int id, int n_ctx, const struct q_tree_counts *c, struct text *t)
{
    text_printf(t, "%s{\"id\":%d,\"n_ctx\":%d,\"is_processing\":%s,\"tokens_held\":%d", id ? "," : "", id, n_ctx,
                v->busy ? "true" : "false", v->n_held);
    if (v->busy)
        text_printf(t, ",\"prompt_tokens\":%d,\"completion_tokens\":%d,\"max_tokens\":%d,\"seconds\":%.3f", v->n_prompt, v->n_generated,
                    v->max_tokens, v->seconds);
    put_cache(c, t);
    text_put(t, "}");
}

void api_slots(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    struct sched_counts c = worker_counts(sv->worker);
    int n = c.slots, ctx = q_engine_ctx(worker_engine(sv->worker));
    struct sched_view *v = calloc((size_t)n, sizeof *v);
    struct text t = {0};
    if (v) worker_view(sv->worker, v, n);
    else t.bad = 1;
    text_put(&t, "[");
    for (int i = 0; v && i < n; i++) put_slot(&v[i], i, ctx, &c.tree, &t);
    text_put(&t, "]");
    free(v);
    http_reply_json(rq, 200, &t);
}
