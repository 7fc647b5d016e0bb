/* Legacy completions as OpenAI writes them, whole and streamed.
 *
 * "logprobs": tokens, token_logprobs, top_logprobs (one object a token, the token itself always in it) and text_offset: where each
 * token begins, in characters of the choice's "text". A token that is no whole text is written "bytes:\xNN...". */
#ifndef S_COMPLETIONS_FORM_H
#define S_COMPLETIONS_FORM_H

#include "exchange.h"

extern const struct form completions_form;
/* Its state; NULL: no memory. */
void *completions_form_open(struct server *sv, const struct ask *ask);

#endif
