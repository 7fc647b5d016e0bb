/* GET /health: 200 when requests are answered, 503 while the model loads or the server ends. */
#include "api.h"

void api_health(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    enum worker_state s = worker_state(sv->worker);
    struct queue_counts c = queue_counts(sv->queue);
    const char *status = s == WORKER_LOADING ? "loading" : s != WORKER_READY ? "ending" : "ok";
    struct text t = {0};
    text_printf(&t, "{\"status\":\"%s\",\"running\":%d,\"waiting\":%d,\"answered_total\":%llu,\"failed_total\":%llu,\"cancelled_total\":%llu}", status,
                c.running, c.waiting, c.answered, c.failed, c.cancelled);
    http_reply_json(rq, s == WORKER_READY ? 200 : 503, &t);
}
