/* OpenAI's Responses, read as a chat completion: stateless, text and functions. */
#ifndef S_RESPONSES_ASK_H
#define S_RESPONSES_ASK_H

#include "ask.h"

/* What the response object repeats of its request: members as JSON, each with a comma behind it. */
struct responses_echo {
    struct text members;         /* owned */
};

/* 0 or -1 with *x. *echo is freed by the caller in either case. */
int responses_ask_read(struct ask *a, struct server *sv, const char *body, size_t n, struct responses_echo *echo, struct api_error *x);

#endif
