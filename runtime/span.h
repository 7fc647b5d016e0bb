/* Where a value lies in JSON text, so that it can be passed on as the caller wrote it, digit for digit.
 *
 * The text has passed json_check, and ends with a zero byte or is an object or array. Keys are compared unescaped.
 */
#ifndef Q_SPAN_H
#define Q_SPAN_H

#include <stddef.h>

struct span {
    const char *at;      /* borrowed; NULL: not there */
    size_t n;
};

/* The value of `name` in an object. What is not there, or no object, has none. */
struct span span_member(struct span object, const char *name);
/* The element behind `element`, which is of the array; the first one behind {NULL}. */
struct span span_next(struct span array, struct span element);

#endif
