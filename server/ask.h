/* A request that asks for text, read and held against the model: one question for each prompt and choice.
 *
 * Choices of a prompt differ in their seeds only (seed, seed + 1, ...), so an answer can be had again alone.
 */
#ifndef S_ASK_H
#define S_ASK_H

#include "job.h"
#include "runtime/prompt_cut.h"
#include "request.h"
#include "server.h"

enum { ASK_MOST = 128 };             /* choices of a request, over all its prompts */

struct ask {
    struct job_ask job;              /* the first prompt's first choice */
    struct tok_ids *more;            /* owned: [n_prompts - 1] the further prompts */
    int n_prompts, n;                /* prompts (at least 1), choices of each */
    struct q_tools *tools;           /* owned: what the answer may call; NULL: its text is not read for calls */
    int no_calls;                    /* the text ends before the tag of a call */
    int stream;
    int usage;                       /* a stream's last chunk has the token counts */
    enum q_cut cut;                  /* what becomes of a prompt that does not fit */
    int n_cut;                       /* tokens left out of the prompts */
};

void ask_free(struct ask *a);
/* Choices: n of the first prompt, n of the second, ... */
int ask_choices(const struct ask *a);
/* The question of one choice, its own copy. Errors: Q_EMEM; then *out is empty. */
int ask_job(const struct ask *a, int choice, struct job_ask *out, struct q_err *e);
/* Takes ids as the next prompt; one that is empty, or does not fit the context and is not to be cut (a->cut; a->job.max_tokens says for how long
 * an answer), is refused in the name of `param`. 0 or -1 with *x. */
int ask_add_prompt(struct ask *a, struct server *sv, struct tok_ids *ids, const char *param, struct api_error *x);

#endif
