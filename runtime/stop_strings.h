/* Stop strings in a text that comes in pieces: nothing of a stop string is ever let through, and nothing else is lost.
 *
 * The text ends where, read byte by byte, the first stop string is complete; of several that are complete at the same byte the longest
 * counts. So the result does not depend on how the text was cut. What may be the beginning of a stop string waits.
 */
#ifndef Q_STOP_STRINGS_H
#define Q_STOP_STRINGS_H

#include "tokenizer.h"

struct q_stops {
    const char *const *stop; /* borrowed */
    int n;
    struct tok_text held;    /* owned: the text's last bytes, the longest beginning of a stop string that they end with */
    int met;
    int which;               /* once met: its index */
};

/* Stops must be non-empty UTF-8 (else Q_EINPUT) and stay valid until q_stops_close. */
int q_stops_open(struct q_stops *s, const char *const *stop, int n, struct q_err *e);
void q_stops_close(struct q_stops *s);
/* Appends to *out what is certain. Once s->met is set the text is over: more is ignored. Errors: Q_EMEM. */
int q_stops_push(struct q_stops *s, const char *text, size_t n, struct tok_text *out, struct q_err *e);
/* The text is over, or goes on elsewhere: what waits was no stop string. */
int q_stops_flush(struct q_stops *s, struct tok_text *out, struct q_err *e);

#endif
