/* A chat completion request, read and held against the model: from JSON to a job's question. */
#ifndef S_CHAT_ASK_H
#define S_CHAT_ASK_H

#include "errors.h"
#include "job.h"
#include "server.h"

struct chat_ask {
    struct job_ask job;
    int stream, usage;           /* usage: a last chunk with the token counts */
};

/* 0 or -1 with *x. body[0..n) ends with a zero byte. */
int chat_ask_read(struct chat_ask *a, struct server *sv, const char *body, size_t n, struct api_error *x);

#endif
