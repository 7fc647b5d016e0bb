/* A chat completion request, read and held against the model: from JSON to questions. */
#ifndef S_CHAT_ASK_H
#define S_CHAT_ASK_H

#include "ask.h"

/* 0 or -1 with *x. body[0..n) ends with a zero byte. An endpoint of another form may write a body of this one and have it read here. */
int chat_ask_read(struct ask *a, struct server *sv, const char *body, size_t n, struct api_error *x);

#endif
