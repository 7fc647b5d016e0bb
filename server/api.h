/* The endpoints: one function a route, one file a kind. */
#ifndef S_API_H
#define S_API_H

#include "http.h"

void api_chat(struct http_request *rq);          /* POST /v1/chat/completions */
void api_completions(struct http_request *rq);   /* POST /v1/completions */
void api_messages(struct http_request *rq);      /* POST /v1/messages */
void api_count_tokens(struct http_request *rq);  /* POST /v1/messages/count_tokens: the same body */
void api_responses(struct http_request *rq);     /* POST /v1/responses */
void api_models(struct http_request *rq);        /* GET /v1/models */
void api_model(struct http_request *rq);         /* GET /v1/models/ID */
void api_health(struct http_request *rq);        /* GET /health */
void api_metrics(struct http_request *rq);       /* GET /metrics */
void api_props(struct http_request *rq);         /* GET /props */
void api_slots(struct http_request *rq);         /* GET /slots */
void api_slot_action(struct http_request *rq);   /* POST /slots/ID?action=save|restore|erase */
void api_openapi(struct http_request *rq);       /* GET /openapi.json */
void api_template(struct http_request *rq);      /* POST /apply-template: a chat completion's body */
void api_input_tokens(struct http_request *rq);  /* POST /v1/chat/completions/input_tokens: the same */
void api_tokenize(struct http_request *rq);      /* POST /tokenize {content, add_special?, parse_special?, with_pieces?} */
void api_page(struct http_request *rq);          /* GET / */
void api_detokenize(struct http_request *rq);    /* POST /detokenize {tokens} */

#endif
