/* POST /apply-template gives {prompt}, the text that a chat completion of the same body would have the model read, and
 * POST /v1/chat/completions/input_tokens its length in tokens. Nothing is generated; what a completion refuses is refused here too.
 *
 * The text is made of the prompt's ids, so it is what the model reads: normalised, without the marks that keep the text of messages from
 * becoming control tokens. Where a message spells one out, the prompt's text alone does not tell; its tokens do. */
#include "api.h"
#include "chat_ask.h"
#include <stdlib.h>

/* 0 or -1 after a reply. */
static int read_ask(struct http_request *rq, struct ask *ask)
{
    size_t n;
    const char *body = http_body(rq, &n);
    struct api_error x = {0};
    if (!chat_ask_read(ask, http_server(rq), body, n, &x)) return 0;
    http_reply_error(rq, &x);
    return -1;
}

void api_template(struct http_request *rq)
{
    struct ask ask;
    struct tok_text prompt = {0};
    struct text t = {0};
    struct api_error x = {0};
    struct q_err e;
    if (read_ask(rq, &ask)) return;
    const struct tokenizer *tk = q_engine_tokenizer(worker_engine(http_server(rq)->worker));
    if (tok_decode(tk, ask.job.prompt.at, ask.job.prompt.n, &prompt, &e)) {
        api_fail_err(&x, "messages", &e);
        http_reply_error(rq, &x);
    } else {
        text_put(&t, "{\"prompt\":");
        text_json(&t, prompt.at ? prompt.at : "", prompt.n);
        text_printf(&t, ",\"n_tokens\":%zu}", ask.job.prompt.n);
        http_reply_json(rq, 200, &t);
    }
    free(prompt.at);
    ask_free(&ask);
}

void api_input_tokens(struct http_request *rq)
{
    struct ask ask;
    struct text t = {0};
    if (read_ask(rq, &ask)) return;
    text_printf(&t, "{\"object\":\"response.input_tokens\",\"input_tokens\":%zu}", ask.job.prompt.n);
    http_reply_json(rq, 200, &t);
    ask_free(&ask);
}
