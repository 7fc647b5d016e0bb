/* Fields of a completion request that do not touch its prompt: sampling, limits, stop strings, tokens to be told. Shared by every endpoint
 * that completes something. Faults are in f's error.
 */
#ifndef S_CHAT_FIELDS_H
#define S_CHAT_FIELDS_H

#include "ask.h"

/* What this version refuses to ignore. */
extern const struct unsupported completion_unsupported[];
extern const size_t n_completion_unsupported;

/* *a becomes what a request is that says nothing, then what it says in the fields that all endpoints have. */
void read_common(struct fields *f, struct ask *a, struct server *sv);
/* Of max_completion_tokens, max_tokens and n_predict the first that is there, or `absent`; -1: no limit. */
void read_max_tokens(struct fields *f, int *max_tokens, int absent);
/* n and best_of, for n_prompts. */
void read_choices(struct fields *f, struct ask *a, struct server *sv, int n_prompts);
/* logprobs: a switch, top_logprobs: a number. */
void read_chat_logprobs(struct fields *f, struct job_ask *ask);
/* logprobs: a number. */
void read_legacy_logprobs(struct fields *f, struct job_ask *ask);

#endif
