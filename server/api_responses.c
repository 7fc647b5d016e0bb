/* POST /v1/responses: OpenAI's other API on the same core as the chat. */
#include "api.h"
#include "responses_ask.h"
#include "responses_form.h"

void api_responses(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    struct api_error x = {0};
    struct responses_echo echo;
    struct ask ask;
    size_t n;
    const char *body = http_body(rq, &n);
    if (exchange_full(rq)) return;
    if (responses_ask_read(&ask, sv, body, n, &echo, &x)) {
        text_free(&echo.members);
        http_reply_error(rq, &x);
        return;
    }
    exchange(rq, &ask, &responses_form, responses_form_open(sv, &echo));
}
