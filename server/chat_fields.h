/* Fields of a completion request that do not touch its prompt: sampling, limits, stop strings. Shared by every endpoint that
 * completes something. */
#ifndef S_CHAT_FIELDS_H
#define S_CHAT_FIELDS_H

#include "job.h"
#include "request.h"

/* What this version refuses to ignore. */
extern const struct unsupported completion_unsupported[];
extern const size_t n_completion_unsupported;

/* sampling holds the defaults. Faults are in f's error. */
void read_sampling(struct fields *f, struct q_sampling_params *sampling);
void read_max_tokens(struct fields *f, int *max_tokens);
void read_stop(struct fields *f, struct job_ask *ask);
/* "model", when given, must be the one that is served (404 else); "n" must be 1. */
void read_model(struct fields *f, const char *alias);

#endif
