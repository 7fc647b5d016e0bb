/* GET /health: 200 when requests are answered, 503 while the model loads (with how far it is) or the server ends.
 *
 * Whoever polls needs only the status; whoever shows it to people has a stage and a fraction, and an error object as every 503 has one. */
#include "api.h"

static void put_load(struct server *sv, struct text *t)
{
    text_printf(t, ",\"stage\":\"%s\",\"progress\":%.2f", load_stage(&sv->load), load_percent(&sv->load) / 100.0);
    text_put(t, ",\"error\":{\"message\":\"the model is being loaded\",\"type\":\"unavailable_error\",\"param\":null,\"code\":\"loading\"}");
}

void api_health(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    enum worker_state s = worker_state(sv->worker);
    int ok = s == WORKER_READY && !atomic_load(&sv->ending);
    struct queue_counts c = queue_counts(sv->queue);
    const char *status = s == WORKER_LOADING ? "loading" : ok ? "ok" : "ending";
    struct text t = {0};
    text_printf(&t, "{\"status\":\"%s\",\"running\":%d,\"waiting\":%d,\"answered_total\":%llu,\"failed_total\":%llu,\"cancelled_total\":%llu", status,
                c.running, c.waiting, c.answered, c.failed, c.cancelled);
    if (s == WORKER_LOADING) put_load(sv, &t);
    text_put(&t, "}");
    http_reply_json(rq, ok ? 200 : 503, &t);
}
