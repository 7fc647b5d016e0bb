/* The tools that a request lists, read once: their names, and which kinds of JSON value each parameter may be.
 *
 * Kinds come from the JSON schema of a tool's parameters: type (a word or a list), enum, const, nullable, anyOf, oneOf, allOf, $ref
 * within the tool. A schema that says nothing allows all. It does not check values against schemas: the caller's program does that.
 * Never changed after it was opened, so threads may share it.
 */
#ifndef Q_TOOL_LIST_H
#define Q_TOOL_LIST_H

#include "err.h"
#include <stddef.h>

struct cJSON;

enum q_kind {
    Q_KIND_STRING = 1,
    Q_KIND_NUMBER = 2, /* integers too */
    Q_KIND_BOOLEAN = 4,
    Q_KIND_NULL = 8,
    Q_KIND_ARRAY = 16,
    Q_KIND_OBJECT = 32,
    Q_KIND_ALL = 63
};

/* A name of a tool or a parameter is at most this many bytes, none of them '<', '>' or below 0x20. */
#define Q_TOOL_NAME_MAX 256

struct q_tools;
/* list: [{"type":"function","function":{"name","parameters",...}}, ...] or the same without the inner object; copied. NULL or empty:
 * no tools. Q_EINPUT names the place ("tools[1].function.name: expected ..., found ..."); Q_EMEM. */
int q_tools_open(struct q_tools **t, const struct cJSON *list, struct q_err *e);
void q_tools_close(struct q_tools *t);

int q_tools_n(const struct q_tools *t);
const char *q_tools_name(const struct q_tools *t, int tool);
/* The tool of that exact name, or -1. */
int q_tools_find(const struct q_tools *t, const char *name, size_t n);
/* Whether the tool's schema declares that parameter. */
int q_tools_declares(const struct q_tools *t, int tool, const char *key);
/* Bits of q_kind that the parameter may be: of one that is not declared, what additionalProperties says, else a string. */
unsigned q_tools_kinds(const struct q_tools *t, int tool, const char *key);
/* The i-th parameter that must be given, or NULL behind the last. */
const char *q_tools_required(const struct q_tools *t, int tool, int i);

#endif
