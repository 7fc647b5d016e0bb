/* GET /v1/models and /v1/models/ID: the one model that is served. */
#include "api.h"
#include "runtime/model.h"
#include <string.h>

static void put_model(struct server *sv, struct text *t)
{
    const struct q_engine *en = worker_engine(sv->worker);
    const struct q_config *c = &q_engine_model(en)->config;
    text_put(t, "{\"id\":");
    text_json_z(t, sv->alias);
    text_printf(t, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"quarry\",\"max_model_len\":%d,\"meta\":{\"name\":", (long long)sv->created,
                q_engine_ctx(en));
    text_json_z(t, c->name);
    text_printf(t, ",\"n_vocab\":%d,\"n_ctx_train\":%d,\"n_embd\":%d,\"n_layers\":%d,\"size\":%zu}}", c->n_vocab, c->n_ctx_train, c->n_embd,
                c->n_layers, q_engine_model(en)->weight_bytes);
}

void api_models(struct http_request *rq)
{
    struct text t = {0};
    text_put(&t, "{\"object\":\"list\",\"data\":[");
    put_model(http_server(rq), &t);
    text_put(&t, "]}");
    http_reply_json(rq, 200, &t);
}

void api_model(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    struct api_error x = {0};
    struct text t = {0};
    if (strcmp(http_rest(rq), sv->alias)) {
        api_fail(&x, 404, "model_not_found", "model", "the model '%.200s' is not served here, only '%s'", http_rest(rq), sv->alias);
        http_reply_error(rq, &x);
        return;
    }
    put_model(sv, &t);
    http_reply_json(rq, 200, &t);
}
