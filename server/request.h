/* Typed, checked reading of a JSON body's fields.
 *
 * Names are compared with their case; null is the same as absent. The first fault is kept in the error and later reads
 * return their default, so that a reader can read all its fields and ask once (`fields_bad`).
 * fields_finish holds what was not read against a table: known fields that would change the answer are refused by name,
 * all others are ignored and told once.
 */
#ifndef S_REQUEST_H
#define S_REQUEST_H

#include "errors.h"
#include <cjson/cJSON.h>

struct fields {
    const cJSON *root;
    struct api_error *x;
    const char *read[128];       /* names asked for */
    int n_read;
};

/* Checks text[0..n) strictly (json_check.h) and parses it; it must be an object. *root: cJSON_Delete. 0 or -1 with *x. */
int body_parse(const char *text, size_t n, cJSON **root, struct api_error *x);

void fields_begin(struct fields *f, const cJSON *root, struct api_error *x);
int fields_bad(const struct fields *f);
/* The value, or NULL when absent or null. */
const cJSON *field_get(struct fields *f, const char *name);
double field_number(struct fields *f, const char *name, double lo, double hi, double absent);
/* A whole number (1.0 is one). */
long long field_int(struct fields *f, const char *name, long long lo, long long hi, long long absent);
int field_bool(struct fields *f, const char *name, int absent);
const char *field_string(struct fields *f, const char *name);   /* borrowed; NULL: absent */

/* A known field that this version does not support. It is let pass where its value changes nothing: null, false, 0, "",
 * [], {} or `harmless` (a number or a word). */
struct unsupported {
    const char *name, *harmless;
};
struct once;
int fields_finish(struct fields *f, const struct unsupported *table, size_t n, struct once *told);

/* Names that were told already. Any thread. */
int once_open(struct once **o, void (*say)(void *arg, const char *line), void *arg, struct q_err *e);
void once_close(struct once *o);

#endif
