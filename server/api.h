/* The endpoints: one function a route, one file a kind. */
#ifndef S_API_H
#define S_API_H

#include "http.h"

void api_chat(struct http_request *rq);          /* POST /v1/chat/completions */
void api_completions(struct http_request *rq);   /* POST /v1/completions */
void api_models(struct http_request *rq);        /* GET /v1/models */
void api_model(struct http_request *rq);         /* GET /v1/models/ID */
void api_health(struct http_request *rq);        /* GET /health */
void api_tokenize(struct http_request *rq);      /* POST /tokenize {content, add_special?, parse_special?} */
void api_detokenize(struct http_request *rq);    /* POST /detokenize {tokens} */

#endif
