/* GET /slots: what the engine is at: an entry for each answer that may be generated at once. */
#include "api.h"

void api_slots(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    struct queue_counts c = queue_counts(sv->queue);
    struct text t = {0};
    text_printf(&t, "[{\"id\":0,\"n_ctx\":%d,\"is_processing\":%s}]", q_engine_ctx(worker_engine(sv->worker)), c.running ? "true" : "false");
    http_reply_json(rq, 200, &t);
}
