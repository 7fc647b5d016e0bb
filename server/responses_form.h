/* Answers as OpenAI's Responses API writes them: a response of items (reasoning, message, function_call), or a stream of numbered events
 * that ends with response.completed, .incomplete or .failed, whatever happens. */
#ifndef S_RESPONSES_FORM_H
#define S_RESPONSES_FORM_H

#include "exchange.h"
#include "responses_ask.h"

extern const struct form responses_form;
/* Its state, which takes the echo's contents; NULL: no memory. */
void *responses_form_open(struct server *sv, struct responses_echo *echo);

#endif
