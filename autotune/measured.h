/* The measured records of a card as they are shipped: each problem once (the first layer that has it), sorted, a line each, without the
 * objects, which are built where they are used. */
#ifndef Q_MEASURED_H
#define Q_MEASURED_H

#include "runtime/store.h"
#include <stdio.h>

int measured_print(FILE *f, struct store *s, const char *card, struct q_err *e);

#endif
