/* One question for the engine and its answer as it grows: what a connection's thread and the engine's thread share.
 *
 * The maker fills the question and queues the job; the engine's thread adds pieces of text and at last an outcome; the
 * connection's thread takes pieces out and writes them in the form of its endpoint. The engine knows no form, and a slow client costs it
 * nothing. A job lives while anybody holds it (job_hold, job_drop).
 */
#ifndef S_JOB_H
#define S_JOB_H

#include "client.h"
#include "runtime/answer.h"
#include "json_text.h"

enum job_event {
    JOB_TEXT,    /* a piece: text of one part */
    JOB_DONE,    /* the outcome is there and all text was taken */
    JOB_QUIET,   /* the time is over and nothing came */
    JOB_GONE     /* the client left, so nobody reads what comes */
};

enum job_end {
    JOB_ANSWERED,    /* `answer` holds */
    JOB_FAILED,      /* `err` holds */
    JOB_CANCELLED,   /* nobody wants it any more */
    JOB_SHUTDOWN     /* the server ends before the answer did */
};

struct job_outcome {
    enum job_end end;
    struct q_answer answer;
    struct q_err err;
};

/* The question. Not touched after the job was queued. */
struct job_ask {
    struct tok_ids prompt;               /* owned */
    struct q_sampling_params sampling;
    int max_tokens;                      /* < 0: until the model ends or the context is full */
    char *stop[16];                      /* owned */
    int n_stop;
    int thinking;                        /* the prompt ends inside a think block */
    int think_budget;                    /* tokens after which an open think block is closed; -1: none */
    int raw;                             /* no parts: all is content */
    int echo;                            /* the prompt's text comes first */
    int logprobs;                        /* tokens are told, with so many most likely ids (0 .. Q_MOST_TOP); -1: none */
    int32_t *bias_id;                    /* owned: [n_bias], at most 1000 */
    float *bias;                         /* owned */
    int n_bias;
    struct q_constraint *constraint;     /* owned, at its beginning (runtime/constrain.h); the engine's thread moves it; NULL: none */
    int ignore_eos;
    unsigned client;                     /* who asks: clients share the engine fairly, whatever the number of their jobs */
};
/* What says nothing: no limits, no logprobs. */
struct job_ask job_ask_default(void);

struct job;
/* Takes the contents of *ask, on failure too. fd: the client's socket, -1: none to watch; probe: client.h. */
int job_open(struct job **j, struct job_ask *ask, int fd, int probe, struct q_err *e);
void job_ask_free(struct job_ask *ask);
void job_hold(struct job *j);
void job_drop(struct job *j);
const struct job_ask *job_asked(const struct job *j);

/* The engine's side. */
int job_put(struct job *j, enum q_part part, const char *s, size_t n);   /* non-zero: no memory */
/* With logprobs >= 0: each token before its text. Non-zero: no memory. */
int job_token(struct job *j, const struct q_token *t);
void job_end(struct job *j, const struct job_outcome *o);                /* the first end counts */
/* Non-zero: the answer need not go on: its client is gone, or the server ends. */
int job_unwanted(struct job *j);

/* The connection's side. Waits up to `seconds`; a piece is appended to *out. Looks at the client while it waits and returns JOB_GONE
 * when it left. */
enum job_event job_take(struct job *j, double seconds, enum q_part *part, struct text *out);
/* The tokens of the piece that was taken last, valid until the next take; their number. A token comes with the piece that its text ends in or
 * a later one; tokens of tags have q_token.part Q_PART_THINKING. Those of a text that was never let out (an end token, a stop string) never come. */
int job_tokens(struct job *j, const struct q_token **t);
/* Waits for the outcome alone, without being woken for text: JOB_DONE (the text is still there to be taken) or JOB_GONE. */
enum job_event job_wait(struct job *j);
void job_outcome(struct job *j, struct job_outcome *o);                  /* after JOB_DONE */
/* From now on nobody wants it, and the socket is not looked at any more. Any thread. */
void job_cancel(struct job *j);
/* The same because the server ends. */
void job_shut(struct job *j);

#endif
