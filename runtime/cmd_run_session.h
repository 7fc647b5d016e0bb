/* `quarry run --session FILE`: what was said in earlier runs, for the prompt of this one, and what is kept of this one.
 *
 * With --raw the session is a text: its tokens, the prompt's and the answer's are one sequence. Without, it is a conversation, whose messages
 * lie in the file beside the tokens: the template writes all of it anew, and what it writes as before is not read again. A file is the one or
 * the other. What is given out as the answer is also what is kept; an answer that fails leaves the file as it was.
 */
#ifndef Q_CMD_RUN_SESSION_H
#define Q_CMD_RUN_SESSION_H

#include "chat_history.h"
#include "cli.h"
#include "session_work.h"

struct run_session {
    struct session_work work;
    int raw;
    struct chat_history *history;    /* owned; NULL: raw, or no session */
    struct tok_ids answer;           /* owned: tokens */
    struct tok_text text;            /* owned: the answer's */
};

/* path NULL: no session; the others are called with one alone, but for run_session_length and run_session_close. */
int run_session_open(struct run_session *s, const char *path, int raw, struct q_err *e);
void run_session_close(struct run_session *s);
/* Tokens of the file, 0. */
int run_session_length(const struct run_session *s);
/* raw: appends the session's tokens. */
int run_session_tokens(const struct run_session *s, struct tok_ids *ids, struct q_err *e);
/* Else: the conversation with the prompt as its last message, as JSON, malloc'd; system NULL: as it was. */
int run_session_messages(struct run_session *s, const char *system, const char *prompt, char **json, struct q_err *e);
/* Says where the prompt leaves a session of which nothing is of use. */
int run_session_resume(struct run_session *s, const struct q_cli *cli, struct q_engine *en, struct q_talk *t, const struct tok_ids *prompt,
                       struct q_err *e);
/* Parts of the answer. Non-zero: no memory. */
int run_session_token(struct run_session *s, int id);
int run_session_text(struct run_session *s, const char *text, size_t n);
/* thinking: the prompt ended inside a think block. Says where it was saved. */
int run_session_save(struct run_session *s, const struct q_cli *cli, struct q_talk *t, const struct tok_ids *prompt, int thinking,
                     struct q_err *e);

#endif
