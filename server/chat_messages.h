/* The messages of a chat as the template is to see them: only text, the thinking switch cut out of the last user's, a last
 * message of the assistant's taken off to be continued. What stays is passed on as the caller wrote it, digit for digit.
 */
#ifndef S_CHAT_MESSAGES_H
#define S_CHAT_MESSAGES_H

#include "errors.h"
#include "runtime/chat.h"
#include "runtime/span.h"
#include <cjson/cJSON.h>

struct chat_messages {
    struct text json;                    /* owned: the list for the template */
    int switched;                        /* what /think (1) or /no_think (0) at the end of the last user's text says; -1: neither is there */
    int continued;                       /* `begun` holds what the answer begins with */
    struct q_chat_begun begun;           /* owned texts */
};

/* messages: the parsed list, which may be changed; list: its text. ctx: tokens of a context; more messages and parts than that are refused before
 * a template takes its time over them. may_continue: a last message of the assistant's is an answer's
 * beginning. 0 or -1 with *x. */
int chat_messages_read(struct chat_messages *m, cJSON *messages, struct span list, int ctx, int may_continue, struct api_error *x);
void chat_messages_free(struct chat_messages *m);

#endif
