/* One request and its answer: what every endpoint that completes something has in common.
 *
 *   body ── read ──► struct ask ── exchange() ──► N jobs ──► events ── form ──► bytes
 *
 * A reader (chat_ask.c, completions_ask.c) makes an `ask` of a body: a question for each prompt and choice. exchange() queues them as jobs,
 * waits, looks after the client, and turns what the jobs say into events of a few kinds; tool calls are found there. A form
 * (chat_form.c, completions_form.c) writes the events as its endpoint does, as they come or whole. A form knows no
 * job and no engine, the core no JSON; so another API is another reader and another form.
 *
 * Promises: the events of a choice come in the order of the answer, and its last one is EVENT_END; joined, they do not depend on
 * how the text came. A request is answered whole, or its error is told; when its client leaves, all its jobs are cancelled.
 * Streams send a comment at least every --keep-alive seconds.
 */
#ifndef S_EXCHANGE_H
#define S_EXCHANGE_H

#include "ask.h"
#include "http.h"

enum finish { FINISH_STOP, FINISH_LENGTH, FINISH_CALLS };   /* length wins: a call may be incomplete then */

enum event_kind {
    EVENT_THINKING,      /* text */
    EVENT_TEXT,          /* text */
    EVENT_CALL,          /* a tool call begins; text: the function's name */
    EVENT_ARGUMENTS,     /* text: the next bytes of its arguments, JSON when joined */
    EVENT_CALL_END,      /* complete: it may be acted on */
    EVENT_END            /* of the choice; finish, stopped_by */
};

/* All borrowed for the call. */
struct event {
    enum event_kind kind;
    int choice;                      /* from 0 */
    const char *text;                /* [n] whole characters; NULL with the kinds that have none */
    size_t n;
    int call;                        /* index in its choice */
    const char *call_id;
    int complete;
    const struct q_token *token;     /* [n_tokens] with logprobs: what was drawn since the choice's event before */
    int n_tokens;
    enum finish finish;
    int stopped_by;                  /* index of the stop string met, or -1 */
};

/* What all choices together took. Tokens, seconds. Choices of one prompt count it once. */
struct usage {
    int n_prompt, n_cached, n_generated, n_thinking;
    int n_cut;                       /* tokens of the prompts that were left out: they did not fit */
    int n_timed;                     /* generated tokens that decode_s measures: all but each choice's first */
    double prefill_s, decode_s;
};

/* A whole answer. */
struct call {                        /* complete */
    char *id;                        /* owned */
    struct text name, arguments;
};
struct choice {
    struct text content, thinking;
    struct call *call;               /* owned: [n_calls] */
    int n_calls;
    struct q_token *token;           /* owned: [n_tokens] */
    int n_tokens;
    enum finish finish;
    int stopped_by;
};

/* How an endpoint writes. Each appends to *out; `f` is the form's own state. A stream is begin, events, end; or at any place
 * fault, which is its last. */
struct form {
    void (*begin)(void *f, struct text *out);
    void (*event)(void *f, const struct event *ev, struct text *out);
    void (*end)(void *f, const struct usage *u, struct text *out);
    void (*fault)(void *f, const struct api_error *x, struct text *out);
    void (*whole)(void *f, const struct choice *c, int n, const struct usage *u, struct text *out);
    void (*free)(void *f);
};

/* Answers rq. Takes the contents of *ask and the form's state (NULL: there was no memory for it). */
void exchange(struct http_request *rq, struct ask *ask, const struct form *form, void *f);
/* The same from the request's body: reads it, and answers or tells what is wrong. Under load it is refused before it is read. open: the form's
 * state. */
void exchange_body(struct http_request *rq, int (*read)(struct ask *a, struct server *sv, const char *body, size_t n, struct api_error *x),
                   const struct form *form, void *(*open)(struct server *sv, const struct ask *ask));
/* Non-zero: so much waits that nothing more is taken, and rq was told so. Asked before a body is read, since under load a refusal must be cheap;
 * what fills the queue meanwhile is seen when the jobs are queued. */
int exchange_full(struct http_request *rq);

#endif
