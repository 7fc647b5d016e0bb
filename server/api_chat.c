/* POST /v1/chat/completions and /v1/completions: each a reader, the exchange, a form. */
#include "api.h"
#include "chat_ask.h"
#include "chat_form.h"
#include "completions_ask.h"
#include "completions_form.h"

void api_chat(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    struct api_error x = {0};
    struct ask ask;
    size_t n;
    const char *body = http_body(rq, &n);
    if (exchange_full(rq)) return;
    if (chat_ask_read(&ask, sv, body, n, &x)) http_reply_error(rq, &x);
    else exchange(rq, &ask, &chat_form, chat_form_open(sv, &ask));
}

void api_completions(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    struct api_error x = {0};
    struct ask ask;
    size_t n;
    const char *body = http_body(rq, &n);
    if (exchange_full(rq)) return;
    if (completions_ask_read(&ask, sv, body, n, &x)) http_reply_error(rq, &x);
    else exchange(rq, &ask, &completions_form, completions_form_open(sv, &ask));
}
