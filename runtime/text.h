/* Appending bytes to a growable text (struct tok_text). */
#ifndef Q_TEXT_H
#define Q_TEXT_H

#include "tokenizer.h"
#include <stdlib.h>
#include <string.h>

/* On Q_EMEM the text is as before. */
static inline int q_text_add(struct tok_text *to, const char *s, size_t n, struct q_err *e)
{
    if (to->cap - to->n < n) {
        size_t cap = to->n + n + to->cap / 2 + 64;
        char *at = realloc(to->at, cap);
        if (!at) return q_fail(e, Q_EMEM, "no memory for %zu bytes of text", cap);
        to->at = at;
        to->cap = cap;
    }
    if (n) memcpy(to->at + to->n, s, n);
    to->n += n;
    return Q_OK;
}

#endif
