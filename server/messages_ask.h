/* Anthropic's Messages (https://docs.anthropic.com/en/api/messages), read as a chat completion: stateless, text and tools. */
#ifndef S_MESSAGES_ASK_H
#define S_MESSAGES_ASK_H

#include "ask.h"

/* 0 or -1 with *x. counting: only the prompt matters, so max_tokens may lack. */
int messages_ask_read(struct ask *a, struct server *sv, const char *body, size_t n, int counting, struct api_error *x);

#endif
