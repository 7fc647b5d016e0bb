/* What OpenAI's chat and legacy completions have in common: the head of an object, counts, finish reasons, tokens. */
#ifndef S_OPENAI_H
#define S_OPENAI_H

#include "exchange.h"

/* The same in all chunks of an answer. */
struct openai_head {
    char id[48];
    time_t created;
    const char *model, *fingerprint;   /* borrowed */
    const struct tokenizer *tokenizer; /* borrowed */
    int usage;                         /* chunks carry "usage": null, and a last one the counts */
};

/* prefix: of the id ("chatcmpl-"). */
void openai_head_init(struct openai_head *h, const char *prefix, struct server *sv, const struct ask *ask);
/* PREFIX and 24 letters and digits, drawn. */
void openai_id(const char *prefix, char *out, size_t size);
/* {"id": ..., "object": OBJECT, ..., "system_fingerprint": ... without the closing brace. */
void openai_put_head(const struct openai_head *h, const char *object, struct text *out);
/* data: HEAD,"choices":[ */
void openai_begin_chunk(const struct openai_head *h, const char *object, struct text *out);
/* ] and what follows the choices, to the end of the event. */
void openai_end_chunk(const struct openai_head *h, struct text *out);
/* The stream's end: counts and timings in a chunk of their own with no choice, and [DONE]. */
void openai_put_done(const struct openai_head *h, const char *object, const struct usage *u, struct text *out);
/* "usage":{...},"timings":{...} */
void openai_put_counts(const struct usage *u, struct text *out);
/* A finish reason's JSON string. */
void openai_put_finish(enum finish finish, struct text *out);
/* An error as an event, after which the stream ends. */
void openai_fault(void *f, const struct api_error *x, struct text *out);

/* A probability's logarithm: JSON has no infinity, so -9999 stands for it, as with OpenAI. */
void openai_put_logprob(float logprob, struct text *out);
/* A token's exact bytes appended to *to, which its owner frees; for an id that is none, nothing. */
void openai_token(const struct openai_head *h, int id, struct tok_text *to);
/* {"content":[one entry a token],"refusal":null}, or null when there are none. */
void openai_put_chat_logprobs(const struct openai_head *h, const struct q_token *t, int n, struct text *out);

#endif
