/* Events kept, for answers that are written whole. */
#ifndef S_TRANSCRIPT_H
#define S_TRANSCRIPT_H

#include "exchange.h"

/* choices[0..n) zeroed at first. Memory that lacks shows in a text's `bad`. */
void transcript_add(struct choice *choices, const struct event *ev);
/* Non-zero: nothing is missing. */
int transcript_ok(const struct choice *choices, int n);
void transcript_free(struct choice *choices, int n);

#endif
