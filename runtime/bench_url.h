/* quarry bench --url: what a client of an OpenAI-compatible server sees, for one prompt: when the first piece of text came and how
 * fast the rest. Only /v1/chat/completions with streaming is used, so any such server can be measured, and two be compared.
 *
 * Time to first token runs from before the request is sent to the first piece of text (thinking counts as text). The decode rate is tokens after
 * the first over the time from the first piece to the last. Tokens are counted by the server's `usage`; where it gives none, pieces are
 * counted and `counted` says so.
 */
#ifndef Q_BENCH_URL_H
#define Q_BENCH_URL_H

#include "http_client.h"

struct bench_url_ask {
    const char *model;           /* the server's name for it */
    const char *text;            /* the user's message */
    int generate;                /* tokens asked for */
    int plain;                   /* without the fields that only some servers know */
};

struct bench_url_got {
    double first_s, whole_s;     /* from the request: to the first piece, to the last */
    double begin;                /* clock_s() at the request */
    int prompt, cached, generated;   /* tokens; cached -1: the server does not say */
    int counted;                 /* `generated` is the number of pieces, prompt is 0 */
};

/* Q_EINPUT: the server refused (http_client.h), or what it sent is no stream of chat completion chunks. */
int bench_url_run(struct http_client *c, const struct bench_url_ask *ask, struct bench_url_got *got, struct q_err *e);

/* The server's first model into name[0..n). */
int bench_url_model(struct http_client *c, char *name, size_t n, struct q_err *e);

/* How many tokens the server's prompts have: tokens = fixed + words * each. */
struct bench_url_scale {
    double fixed, each;
};
/* Two short requests. Without usage in answers: 1.3 tokens a word. */
int bench_url_scale(struct http_client *c, const struct bench_url_ask *like, struct bench_url_scale *s, struct q_err *e);
/* A text whose prompt has about `tokens` tokens: common words drawn by `salt`, which is its beginning too, so that two salts share no
 * prefix beyond the chat's own. NULL: no memory. The caller frees it. */
char *bench_url_text(const struct bench_url_scale *s, int tokens, unsigned long long salt);

#endif
