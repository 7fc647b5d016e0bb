/* Answers as Anthropic's Messages API writes them: a message of blocks (thinking, text, tool_use), or a stream of its named events. */
#ifndef S_MESSAGES_FORM_H
#define S_MESSAGES_FORM_H

#include "exchange.h"

extern const struct form messages_form;
/* Its state; NULL: no memory. */
void *messages_form_open(struct server *sv, const struct ask *ask);
/* {"type": "error", "error": {"type": ..., "message": ...}} */
void messages_error_json(const struct api_error *x, struct text *out);

#endif
