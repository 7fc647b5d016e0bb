/* One argument of a tool call, from the raw text that the model wrote to JSON, as it streams.
 *
 * A string goes through at once, escaped. What may become another kind waits whole, at most Q_TOOL_HELD bytes, and then passes exactly
 * as it was written if it is JSON of a kind allowed; else it is a string. White space around JSON is dropped, in strings it stays.
 */
#ifndef Q_TOOL_VALUE_H
#define Q_TOOL_VALUE_H

#include "tokenizer.h"

struct q_tool_value {
    unsigned kinds;       /* bits of q_kind (tool_list.h) that are allowed */
    int is_string;        /* decided: the opening quote is written */
    struct tok_text held; /* owned; emptied, not freed, by start */
};

void q_tool_value_start(struct q_tool_value *v, unsigned kinds);
/* Append JSON text to *out. Errors: Q_EMEM. */
int q_tool_value_push(struct q_tool_value *v, const char *s, size_t n, struct tok_text *out, struct q_err *e);
int q_tool_value_end(struct q_tool_value *v, struct tok_text *out, struct q_err *e);
void q_tool_value_free(struct q_tool_value *v);

/* Appends s[0..n) as a JSON string, without the quotes. */
int q_json_escape(struct tok_text *out, const char *s, size_t n, struct q_err *e);

#endif
