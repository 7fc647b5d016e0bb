/* The messages of one conversation, as the JSON that chat templates take. Texts must be UTF-8 (the template's check says where not). */
#ifndef Q_CHAT_HISTORY_H
#define Q_CHAT_HISTORY_H

#include "err.h"

struct chat_history;
int chat_history_open(struct chat_history **h, struct q_err *e);
void chat_history_close(struct chat_history *h);
/* The system message is `text` from now on; NULL: none. */
int chat_history_system(struct chat_history *h, const char *text, struct q_err *e);
int chat_history_user(struct chat_history *h, const char *text, struct q_err *e);
/* thinking may be empty; the template decides what becomes of it. */
int chat_history_assistant(struct chat_history *h, const char *content, const char *thinking, struct q_err *e);
/* Replaces all messages by those of a JSON list as chat_history_json writes it. `where` begins the error line. */
int chat_history_load(struct chat_history *h, const char *json, const char *where, struct q_err *e);
int chat_history_count(const struct chat_history *h);
/* Takes the last message back. */
void chat_history_drop_last(struct chat_history *h);
/* Leaves only the system message. */
void chat_history_clear(struct chat_history *h);
/* *text is malloc'd: a list of messages. */
int chat_history_json(const struct chat_history *h, char **text, struct q_err *e);
/* The same for people: a heading a message, without thinking. */
int chat_history_markdown(const struct chat_history *h, char **text, struct q_err *e);

#endif
