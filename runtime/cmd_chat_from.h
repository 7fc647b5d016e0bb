/* Where `chat` gets its answers: a model that this process runs (cmd_chat_local.c) or a server (cmd_chat_url.c). Both read the whole
 * conversation each turn and re-use what they have of it. One thread at a time.
 */
#ifndef Q_CMD_CHAT_FROM_H
#define Q_CMD_CHAT_FROM_H

#include "answer.h"
#include "cli_sampling.h"
#include "prompt_cut.h"

struct chat_ask {
    const char *messages;        /* a JSON list that ends with the user's */
    enum q_cut cut;              /* what becomes of a conversation too long for the context */
    int think;                   /* < 0: as the template has it */
    long most;                   /* tokens of the answer; < 0: no limit but the context */
    const struct cli_sampling *sampling;
    int (*cancelled)(void *arg);
    int (*text)(void *arg, enum q_part part, const char *s, size_t n);   /* whole characters; non-zero: stop */
    void *arg;
};

struct chat_from {
    int (*answer)(struct chat_from *f, const struct chat_ask *ask, struct q_answer *out, struct q_err *e);
    void (*close)(struct chat_from *f);
    /* Writes the session of chat_from_engine: what was read and answered last, and these messages. NULL: there is none. */
    int (*save)(struct chat_from *f, const char *messages, size_t *written, struct q_err *e);
    int ctx;                     /* tokens; 0: only the server knows */
    int left_out;                /* tokens of the last conversation, by its cut */
};

/* engine: what the options say; its caps for a chat are set here. session: borrowed, opened; one without a path is none. */
struct session_work;
int chat_from_engine(struct chat_from **f, struct q_engine_opts *engine, struct session_work *session, struct q_err *e);

/* model NULL: the first that the server lists; key NULL: none. In answers tokens and times are as the client sees them: n_prompt is 0 where the
 * server does not count, and prefill_s runs to the first piece of text. */
struct chat_server {
    const char *url, *key, *model;
    int (*cancelled)(void *arg);
    void *arg;
};
int chat_from_url(struct chat_from **f, const struct chat_server *s, const struct q_cli *cli, struct q_err *e);

#endif
