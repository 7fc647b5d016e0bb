/* A growable text, and JSON written into it.
 *
 * Zero-initialise. A failed allocation is remembered in `bad`, later calls do nothing, and the owner asks once at the end:
 * text_ok. `at` is always zero-terminated once something was added.
 */
#ifndef S_JSON_TEXT_H
#define S_JSON_TEXT_H

#include <stddef.h>

struct text {
    char *at; /* owned */
    size_t n, cap;
    int bad;
};

void text_free(struct text *t);
int text_ok(const struct text *t);
/* Its bytes, "" when there are none. */
const char *text_of(const struct text *t);
void text_add(struct text *t, const char *s, size_t n);
void text_put(struct text *t, const char *s);
void text_printf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes. Bytes above 0x7F of a string that is not UTF-8 become '?'. */
void text_json(struct text *t, const char *s, size_t n);
/* A JSON string, or null for NULL. */
void text_json_z(struct text *t, const char *s);

#endif
