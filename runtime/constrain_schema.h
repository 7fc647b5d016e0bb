/* A JSON schema as expressions; for runtime/constrain_schema*.c and constrain_tools.c. What is supported: constrain.h.
 *
 * A value is built either as JSON or, for a parameter of a tool, as the text between two tags (`tag` is set): strings stand as they are, up to the
 * closing tag, which is part of the expression. */
#ifndef Q_CONSTRAIN_SCHEMA_H
#define Q_CONSTRAIN_SCHEMA_H

#include "constrain_impl.h"
#include <cjson/cJSON.h>

struct schema_ref {
    const cJSON *at;
    const char *tag;
    int rule;
};

/* Of a string in JSON with more rules than its type. */
struct schema_string {
    const char *pattern, *format; /* borrowed; NULL */
    int min, max, rule;
};

struct schema {
    struct grammar *g;
    const cJSON *root;      /* that "#" refers to */
    const char *what;       /* begins an error's line */
    const char *tag;        /* closing tag of a parameter's value; NULL: JSON */
    char path[200];         /* of the part being built, "#/properties/a" */
    struct schema_ref *ref; /* owned: rules of parts that were referred to */
    int n_ref, cap_ref;
    struct schema_string *strings; /* owned: those built so far, so that equal ones are one rule */
    int n_strings, cap_strings;
    cJSON **made;           /* owned: schemas put together from several */
    int n_made, cap_made, made_parts;
    int depth;
    int white, string, value, object, array, wide, text; /* rules, -1: not there yet */
};

void schema_start(struct schema *b, struct grammar *g, const cJSON *root, const char *what);
/* Goes on with another document. Rules that do not depend on it are used again. */
void schema_restart(struct schema *b, const cJSON *root, const char *what);
void schema_end(struct schema *b);
/* Refuses what would take too long: objects of more than 2000 keys, lists of more than 5000 values. 0: refused. */
int schema_size_good(struct grammar *g, const cJSON *json);
void schema_fail(struct schema *b, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The path grows by /NAME while a part is built; give what it returned to schema_leave. */
size_t schema_enter(struct schema *b, const char *part, const char *name);
void schema_leave(struct schema *b, size_t before);

/* The expression of a value by schema `s` (any JSON: not yet known to be a schema). */
int schema_build(struct schema *b, const cJSON *s);
/* With the closing tag, if one is due. */
int schema_close(struct schema *b, int x);

/* constrain_schema_parts.c */
int schema_text(struct schema *b, const char *s);
int schema_white(struct schema *b);       /* what may stand between JSON's tokens */
int schema_any(struct schema *b);         /* any JSON value */
int schema_any_object(struct schema *b);
int schema_any_array(struct schema *b);
int schema_any_string(struct schema *b);
int schema_any_text(struct schema *b);    /* in a parameter: any text up to the closing tag, and that */
int schema_quoted(struct schema *b, const char *s); /* this text as a JSON string */
int schema_string(struct schema *b, const cJSON *s);
int schema_number(struct schema *b, const cJSON *s, int integer);
int schema_literal(struct schema *b, const cJSON *v); /* this JSON value */
/* A count; `otherwise` where it is not there. */
int schema_count(struct schema *b, const cJSON *s, const char *key, int otherwise);

/* constrain_schema_object.c */
int schema_object(struct schema *b, const cJSON *s);
int schema_array(struct schema *b, const cJSON *s);
int schema_is_required(const cJSON *s, const char *name);

/* constrain_schema_merge.c: what is valid by both, kept with b; NULL: recorded. */
const cJSON *schema_merge(struct schema *b, const cJSON *x, const cJSON *y);
/* A note: it says nothing about what is valid. */
int schema_is_note(const cJSON *key);

#endif
