/* GET /slots: what the engine is at: an entry for each answer that may be generated at once. */
#include "api.h"
#include <stdlib.h>

static void put_slot(const struct sched_view *v, int id, int n_ctx, struct text *t)
{
    text_printf(t, "%s{\"id\":%d,\"n_ctx\":%d,\"is_processing\":%s,\"tokens_held\":%d", id ? "," : "", id, n_ctx,
                v->busy ? "true" : "false", v->n_held);
    if (v->busy)
        text_printf(t, ",\"prompt_tokens\":%d,\"completion_tokens\":%d,\"max_tokens\":%d,\"seconds\":%.3f", v->n_prompt, v->n_generated,
                    v->max_tokens, v->seconds);
    text_put(t, "}");
}

void api_slots(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    int n = worker_counts(sv->worker).slots, ctx = q_engine_ctx(worker_engine(sv->worker));
    struct sched_view *v = calloc((size_t)n, sizeof *v);
    struct text t = {0};
    if (v) worker_view(sv->worker, v, n);
    else t.bad = 1;
    text_put(&t, "[");
    for (int i = 0; v && i < n; i++) put_slot(&v[i], i, ctx, &t);
    text_put(&t, "]");
    free(v);
    http_reply_json(rq, 200, &t);
}
