/* POST /v1/chat/completions and /v1/completions: each a reader, the exchange, a form. */
#include "api.h"
#include "chat_ask.h"
#include "chat_form.h"
#include "completions_ask.h"
#include "completions_form.h"

void api_chat(struct http_request *rq) { exchange_body(rq, chat_ask_read, &chat_form, chat_form_open); }
void api_completions(struct http_request *rq) { exchange_body(rq, completions_ask_read, &completions_form, completions_form_open); }
