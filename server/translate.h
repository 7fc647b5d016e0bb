/* A request of another API on its way to a chat completion's body: what the readers of such APIs share.
 *
 * translate_begin parses the request; the reader writes what it finds into `body`, messages first, then chat_body_fields and the rest;
 * translate_end has the body read by chat_ask.c. The caller's own tree lives until then.
 */
#ifndef S_TRANSLATE_H
#define S_TRANSLATE_H

#include "ask.h"
#include "chat_body.h"
#include <string.h>

struct translation {
    struct chat_body body;
    struct fields f;
    struct span whole;           /* the request as it was written */
    struct api_error *x;
    cJSON *root;                 /* owned */
};

/* 0 or -1 with *x; text[0..n) ends with a zero byte. */
int translate_begin(struct translation *t, const char *text, size_t n, struct api_error *x);
/* rc: of the reader; what is left is refused against the table, or told once. Frees t. 0 or -1 with *x. */
int translate_end(struct translation *t, int rc, const struct unsupported *table, size_t n, struct ask *a, struct server *sv);

/* Members of the body. */
void translate_number(struct translation *t, const char *name, long long value);
/* The same member under the same name, where the request has it. */
void translate_same(struct translation *t, const char *name);
/* That a function must be called, by its name. */
void translate_function_choice(struct translation *t, const char *name);
/* That the answer is of a schema. */
void translate_schema(struct translation *t, const char *name, int strict, struct span schema);

/* A member of an object, and of those that are strings their text; NULL: it has none. */
static inline const cJSON *member(const cJSON *o, const char *name) { return cJSON_GetObjectItemCaseSensitive(o, name); }
static inline const char *word(const cJSON *o, const char *name)
{
    const cJSON *v = member(o, name);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}
static inline int is(const char *s, const char *other) { return s && !strcmp(s, other); }

#endif
