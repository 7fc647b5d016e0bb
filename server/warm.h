/* The first request's costs, paid before the server says that it is ready: weights are read from the disk, pages of memory touched, a card's
 * launch lists recorded. */
#ifndef S_WARM_H
#define S_WARM_H

#include "runtime/engine.h"

/* Reads a short made-up prompt and draws a few tokens after it. No sequence may be open. */
int warm_up(struct q_engine *en, struct q_err *e);

#endif
