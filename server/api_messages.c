/* POST /v1/messages and /v1/messages/count_tokens: Anthropic's API on the same core as the chat. */
#include "api.h"
#include "messages_ask.h"
#include "messages_form.h"

static int read_whole(struct ask *a, struct server *sv, const char *body, size_t n, struct api_error *x)
{
    return messages_ask_read(a, sv, body, n, 0, x);
}

void api_messages(struct http_request *rq) { exchange_body(rq, read_whole, &messages_form, messages_form_open); }

void api_count_tokens(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    struct api_error x = {0};
    struct text out = {0};
    struct ask ask;
    size_t n;
    const char *body = http_body(rq, &n);
    if (messages_ask_read(&ask, sv, body, n, 1, &x)) {
        http_reply_error(rq, &x);
        return;
    }
    text_printf(&out, "{\"input_tokens\":%zu}", ask.job.prompt.n);
    ask_free(&ask);
    http_reply_json(rq, 200, &out);
}
