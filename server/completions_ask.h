/* A legacy completion request, read and held against the model.
 *
 * prompt: a text, a list of texts, a list of token ids, or a list of such lists. Control tokens written in a text are control tokens: who
 * asks here writes the template's part. Without max_tokens 16 are given, as OpenAI says. */
#ifndef S_COMPLETIONS_ASK_H
#define S_COMPLETIONS_ASK_H

#include "ask.h"

/* 0 or -1 with *x. body[0..n) ends with a zero byte. */
int completions_ask_read(struct ask *a, struct server *sv, const char *body, size_t n, struct api_error *x);

#endif
