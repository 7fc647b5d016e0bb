/* Chat completions as OpenAI writes them: the whole object, and the chunks of a stream.
 *
 * "logprobs" has an entry for each token of the answer whose text was let out, the thinking's among them, in order; in a stream those
 * of a chunk are of its text or of text before it. */
#ifndef S_CHAT_FORM_H
#define S_CHAT_FORM_H

#include "exchange.h"

extern const struct form chat_form;
/* Its state; NULL: no memory. */
void *chat_form_open(struct server *sv, const struct ask *ask);

#endif
