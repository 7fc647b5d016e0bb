/* Server-sent events (WHATWG HTML, 9.2) out of bytes that come in any pieces: the data of each event, comments and other fields left out. */
#ifndef Q_SSE_READER_H
#define Q_SSE_READER_H

#include "tokenizer.h"

/* data[0..n), zero-terminated. Non-zero: stop. */
typedef int (*sse_event)(void *arg, const char *data, size_t n);

struct sse_reader {
    struct tok_text line, data;   /* owned */
    int has_data, after_cr;
};

/* Zero-initialise. Hands over whole events; 0, what `event` returned, or -1: no memory or an event of more than 16 MiB. */
int sse_push(struct sse_reader *r, const char *s, size_t n, sse_event event, void *arg);
void sse_free(struct sse_reader *r);

#endif
