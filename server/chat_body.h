/* A chat completion's body, written for chat_ask.c by the readers of other APIs, so that what they ask for means the same.
 *
 * Messages are given in order; what belongs to one turn of the assistant (thinking, text, calls) is gathered into one message. Values
 * of the caller's own (arguments, schemas, numbers) are passed on as he wrote them. Memory that lacks shows in chat_body_end.
 */
#ifndef S_CHAT_BODY_H
#define S_CHAT_BODY_H

#include "json_text.h"
#include "runtime/span.h"

struct chat_body {
    struct text out;                           /* the body so far */
    int n_messages;
    int answering;                             /* a turn of the assistant's is being gathered: */
    struct text content, thinking, calls;
    struct text tools;
};

void chat_body_begin(struct chat_body *b);
/* A message of one text. */
void chat_body_message(struct chat_body *b, const char *role, const char *text, size_t n);
void chat_body_result(struct chat_body *b, const char *call_id, const char *text, size_t n);
void chat_body_said(struct chat_body *b, const char *text, size_t n);
void chat_body_thought(struct chat_body *b, const char *text, size_t n);
/* arguments: a JSON value, an object or a string that holds one. */
void chat_body_call(struct chat_body *b, const char *call_id, const char *name, struct span arguments);
/* A function. description, schema may be NULL. */
void chat_body_tool(struct chat_body *b, const char *name, const char *description, struct span schema);
/* Behind the messages: "name": value, unless there is no value. */
void chat_body_fields(struct chat_body *b);
void chat_body_raw(struct chat_body *b, const char *name, struct span value);
void chat_body_text(struct chat_body *b, const char *name, const char *value);
/* Closes the body. Non-zero: it is whole, in out. */
int chat_body_end(struct chat_body *b);
void chat_body_free(struct chat_body *b);

#endif
