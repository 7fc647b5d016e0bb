/* One answer: prompt ids in, text out as it comes, until the model ends, a stop string is met, a limit is reached or the caller has
 * had enough. `run`, `chat` and the server all answer through this, so they say the same.
 *
 * A q_talk is a scheduler with one slot: a sequence that remembers its tokens, and a tree of kept places (prefix_tree.h), so that a prompt
 * that continues an earlier one, or returns to a point of it, reads only what is new. Re-use gives what a fresh reading gives (bit for bit
 * in strict). One thread at a time.
 */
#ifndef Q_ANSWER_H
#define Q_ANSWER_H

#include "constrain.h"
#include "engine.h"

enum q_part { Q_PART_THINKING, Q_PART_CONTENT };
enum q_finish { Q_FINISH_STOP, Q_FINISH_LENGTH, Q_FINISH_CANCELLED };

enum { Q_MOST_TOP = 20 };

/* One token of an answer. Logprobs are log softmax of the raw logits. */
struct q_token {
    int id;
    enum q_part part;                  /* tags and newlines around a think block count as thinking */
    float logprob;
    int n_top;                         /* as many as were asked for, most likely first */
    int top_id[Q_MOST_TOP];
    float top_logprob[Q_MOST_TOP];
};

struct q_answer_opts {
    struct q_sampling_params sampling;
    int max_tokens;                    /* < 0: until the model ends or the context is full */
    const char *const *stop;           /* stop strings, none empty; the text ends before the first match */
    int n_stop;
    int thinking;                      /* the prompt ends inside a think block, so the text begins as thinking */
    int raw;                           /* no parts: all is content, <think> tags included */
    int ignore_eos;                    /* no end token is drawn */
    int think_budget;                  /* with `thinking_limited`: tokens after which an open think block is closed */
    int thinking_limited;
    int n_top;                         /* most likely ids that `token` tells of each token, 0 .. Q_MOST_TOP */
    const int32_t *bias_id;            /* [n_bias] added to the logits, at most 1000 */
    const float *bias;
    int n_bias;
    struct q_constraint *constraint;   /* at its beginning, moves with the answer (constrain.h); NULL: none */
    /* All may be NULL. Called between steps on the caller's thread. */
    int (*cancelled)(void *arg);       /* non-zero: stop now */
    int (*text)(void *arg, enum q_part part, const char *s, size_t n);   /* whole characters; non-zero: stop now */
    int (*token)(void *arg, const struct q_token *t);                    /* every generated token before its text, the end included */
    void *arg;
};

/* Where the beginning of a prompt came from, or why all of it was read (scheduler_keep.c). A recurrent state
 * cannot be rewound, so a kept sequence that goes another way is of use only up to the last place where its state was kept. */
enum q_reuse {
    Q_REUSE_UNTOLD,
    Q_REUSE_SLOT,        /* from a finished answer's sequence */
    Q_REUSE_DEVICE,      /* from a checkpoint on the device, */
    Q_REUSE_HOST,        /* ... in host memory, */
    Q_REUSE_DISK,        /* ... on disk */
    Q_REUSE_EMPTY,       /* nothing was kept */
    Q_REUSE_DIFFERENT,   /* what is kept begins with other tokens */
    Q_REUSE_EVICTED,     /* a checkpoint of it was kept, and given up for others */
    Q_REUSE_NO_PLACE,    /* something kept begins alike, but its state was not kept there */
    Q_REUSE_BUSY,        /* the same, and an answer is being written from it now */
    Q_REUSE_KINDS
};
/* "slot", "no_place", ... */
const char *q_reuse_name(enum q_reuse r);

struct q_answer {
    int n_prompt, n_cached, n_generated;   /* tokens: of the prompt, of those re-used, of the answer with its end token */
    enum q_reuse reuse;
    int n_shared;                          /* tokens that the prompt has in common with what is kept, at least n_cached */
    int32_t other;                         /* the token that is kept where the prompt's token n_shared is another; -1: it was never gone on there */
    int message;                           /* that token is in: from 1; 0: unknown, or no other */
    char role[24];                         /* that message's: "system"; "": unknown */
    int n_thinking;                        /* of the answer's: in its think block, tags included */
    int stopped_by;                        /* index of the stop string met, -1 */
    enum q_finish finish;
    double wait_s, prefill_s, decode_s;    /* waited for a slot; from then to the end of the prompt; from then on */
};

/* Q_EINPUT: it is empty; Q_ELIMIT names both numbers when it does not fit. */
int q_check_prompt(int ctx, size_t n, struct q_err *e);

struct q_talk;
int q_talk_open(struct q_talk **t, struct q_engine *en, struct q_err *e);
void q_talk_close(struct q_talk *t);
struct q_sched;
struct q_sched *q_talk_sched(struct q_talk *t);   /* the talk's */
/* Q_ELIMIT names both numbers when the prompt does not fit. After an error or a cancellation the talk is usable. */
int q_talk_answer(struct q_talk *t, const int32_t *ids, size_t n, const struct q_answer_opts *o, struct q_answer *out, struct q_err *e);

/* "20 tokens, the last 19 in 1.000 s: 19.0 tok/s": how run and chat tell of an answer. */
enum { Q_ANSWER_TEXT = 120 };
void q_answer_text(char dst[Q_ANSWER_TEXT], const struct q_answer *a);

#endif
