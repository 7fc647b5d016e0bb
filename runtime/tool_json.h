/* A tool call written as JSON: {"name": NAME, "arguments": {...}}; "parameters" is another word for the latter, which may also be
 * missing, null, or the text of a JSON object.
 */
#ifndef Q_TOOL_JSON_H
#define Q_TOOL_JSON_H

#include "tokenizer.h"
#include "tool_list.h"

/* 1: it is a call of *tool, whose arguments, as they were written, are put into *arguments (emptied first). 0: it is none. -1: Q_EMEM. */
int q_tool_json_read(const char *s, size_t n, const struct q_tools *tools, int *tool, struct tok_text *arguments, struct q_err *e);

/* Where the object that begins at s ends: looks at more of it with every call. Zero-initialise. */
struct q_tool_braces {
    size_t at; /* bytes looked at */
    int depth, in_string, escaped;
};
/* 1: it ends at b->at. 0: not within n bytes. -1: a tag outside strings, so it is no JSON; b->at stands there. */
int q_tool_braces(struct q_tool_braces *b, const char *s, size_t n);

#endif
