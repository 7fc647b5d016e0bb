/* From messages to token ids: the model file's chat template, rendered around guarded text, then tokenised with control tokens.
 *
 * Text of messages never becomes a control token: every string is guarded before the template sees it (tok_guard), and only
 * what the template itself wrote is read as control. One chat serves one thread at a time.
 */
#ifndef Q_CHAT_H
#define Q_CHAT_H

#include "engine.h"

struct q_chat;
/* The template of the engine's model file, or `jinja` if it is not NULL. Q_EMISS when there is none. */
int q_chat_open(struct q_chat **c, const struct q_engine *en, const char *jinja, struct q_err *e);
void q_chat_close(struct q_chat *c);

/* What an answer begins with, to be continued: behind it the model goes on. Texts, "" for none. Without content the think block stays open;
 * where the template opens none, the thinking is left out. */
struct q_chat_begun {
    const char *thinking, *content;
};
/* messages, tools, options: JSON (tools and options may be NULL). The prompt's text *text [*n], malloc'd, generation prompt included, with a
 * beginning behind it (NULL: none); and its ids, appended. Rendering is one thread's at a time, reading as ids any thread's at any time. */
int q_chat_render(struct q_chat *c, const char *messages, const char *tools, const char *options, const struct q_chat_begun *begun,
                  char **text, size_t *n, struct q_err *e);
int q_chat_ids(const struct q_chat *c, const char *text, size_t n, struct tok_ids *ids, struct q_err *e);
/* Both, without a beginning. */
int q_chat_encode(struct q_chat *c, const char *messages, const char *tools, const char *options, struct tok_ids *ids, struct q_err *e);

/* A text that a message can hold: UTF-8 without NUL. `what` begins the error line ("the prompt"), which names the byte. */
int q_chat_check_text(const char *what, const char *text, size_t n, struct q_err *e);

/* [{"role": "system", ...}, {"role": "user", ...}] as JSON, malloc'd; system may be NULL. Texts must be UTF-8. */
char *q_chat_messages(const char *system, const char *user);

#endif
