/* A strict look at JSON text before anything is built from it.
 *
 * Promises: a text that passes is one JSON value (RFC 8259) and nothing after it, in valid UTF-8, with no NUL and no half
 * of a surrogate pair (written out or escaped), no key twice in an object, no number beyond a double's range, and no
 * nesting deeper than asked. What follows may then parse it on trust.
 * Time is linear but for sorting an object's keys; memory is a copy of the keys of the objects that are open.
 * It does not: build values, or keep anything.
 */
#ifndef Q_JSON_CHECK_H
#define Q_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

struct q_err;

/* Deep enough for any tool schema; a recursive reader of this many levels needs little stack. */
#define JSON_MAX_DEPTH 128

/* Checks text[0..n). `where` begins the error line ("request body", "messages"). Q_EINPUT with the byte offset and
 * what was expected and found; Q_EMEM. */
int json_check(const char *text, size_t n, int max_depth, const char *where, struct q_err *e);

/* True if s[0..n) is well-formed UTF-8 (no overlong form, no surrogate, nothing above U+10FFFF). */
bool utf8_valid(const char *s, size_t n);


/* Writes the character of the escape at *p (just behind the backslash) to out and moves *p behind it; returns the bytes
 * written, 1 to 4. The text has passed json_check. */
int json_unescape(const char **p, char *out);

#endif
