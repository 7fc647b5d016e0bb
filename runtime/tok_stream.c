/* Ids back to bytes, and bytes to whole characters as they arrive. */
#include "tok_impl.h"
#include <stdlib.h>
#include <string.h>

static const char REPLACEMENT[3] = {(char)0xEF, (char)0xBF, (char)0xBD}; /* U+FFFD */

int tok_text_reserve(struct tok_text *out, size_t more, struct q_err *e)
{
    if (out->cap - out->n >= more) return Q_OK;
    size_t cap = out->n + more + out->cap / 2 + 16;
    char *p = realloc(out->at, cap);
    if (!p) return q_fail(e, Q_EMEM, "out of memory for %zu bytes of decoded text", cap);
    out->at = p;
    out->cap = cap;
    return Q_OK;
}

static int check_id(const struct tokenizer *t, int32_t id, struct q_err *e)
{
    if (id >= 0 && id < t->n) return Q_OK;
    return q_fail(e, Q_EINPUT, "token id %d is not in the vocabulary of %d", (int)id, (int)t->n);
}

static void append(struct tok_text *out, const void *s, size_t n)
{
    if (n) memcpy(out->at + out->n, s, n);
    out->n += n;
}

int tok_decode(const struct tokenizer *t, const int32_t *ids, size_t n, struct tok_text *out, struct q_err *e)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        int rc = check_id(t, ids[i], e);
        if (rc) return rc;
        total += t->piece[ids[i]].n;
    }
    int rc = tok_text_reserve(out, total, e);
    if (rc) return rc;
    for (size_t i = 0; i < n; i++) append(out, t->piece[ids[i]].at, t->piece[ids[i]].n);
    return Q_OK;
}

/* Takes one byte in and hands out what became certain. At most four bytes wait, so each byte is looked at four times. */
static void feed(struct tok_stream *s, unsigned char byte, struct tok_text *out)
{
    s->hold[s->n++] = byte;
    while (s->n) {
        struct utf8_step step = utf8_next(s->hold, s->n);
        if (step.n == 0) return;
        if (step.good) append(out, s->hold, step.n);
        else append(out, REPLACEMENT, sizeof REPLACEMENT);
        s->n -= step.n;
        memmove(s->hold, s->hold + step.n, s->n);
    }
}

int tok_stream_push(struct tok_stream *s, const struct tokenizer *t, int32_t id, struct tok_text *out, struct q_err *e)
{
    int rc = check_id(t, id, e);
    if (rc) return rc;
    struct tok_str p = t->piece[id];
    rc = tok_text_reserve(out, (p.n + sizeof s->hold) * sizeof REPLACEMENT, e);
    if (rc) return rc;
    for (size_t i = 0; i < p.n; i++) feed(s, (unsigned char)p.at[i], out);
    return Q_OK;
}

/* What waits is always the start of one character, so that it is one broken start. */
int tok_stream_flush(struct tok_stream *s, struct tok_text *out, struct q_err *e)
{
    if (!s->n) return Q_OK;
    int rc = tok_text_reserve(out, sizeof REPLACEMENT, e);
    if (rc) return rc;
    append(out, REPLACEMENT, sizeof REPLACEMENT);
    s->n = 0;
    return Q_OK;
}
