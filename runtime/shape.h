/* Shapes and params as text: "type=q8_0,n=3584,k=1024", ordered name=value pairs. The text is the identity of a kernel in
 * names, keys and records; this is its parser. Names are [a-z0-9_]+, values [A-Za-z0-9_.]+; at most 24 pairs. */
#ifndef Q_SHAPE_H
#define Q_SHAPE_H

#include "err.h"

enum { Q_SHAPE_MAX = 24 };

struct q_shape {
    int n;
    struct { char name[24], value[40]; } pair[Q_SHAPE_MAX];
};

int shape_parse(struct q_shape *s, const char *text, struct q_err *e);
/* The value of `name`, NULL if absent. */
const char *shape_find(const struct q_shape *s, const char *name);
/* The value as an integer; `missing` when absent or not a number. */
long shape_int(const struct q_shape *s, const char *name, long missing);
/* 1 when the pair is there and its value is `value`. */
int shape_is(const struct q_shape *s, const char *name, const char *value);

#endif
