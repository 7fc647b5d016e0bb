/* A card's measured ceilings, as its records of op "ceiling" hold them, and which of them an instruction path is judged by. */
#ifndef Q_CEILINGS_H
#define Q_CEILINGS_H

#include "roof.h"
#include "store.h"

/* Of the card, 0 for what was not measured. Returns how many were. Read once a store. */
int ceilings_read(struct store *s, const char *card, struct q_roofs *r);
/* Whether a ceiling's record says itself that it may be too low: its samples differ as those of a card that nobody else uses do not, or heat or a
 * brake held it back. */
int ceiling_is_doubtful(const struct record *record);
/* Enters one record; 0 when it holds no ceiling. */
int ceilings_enter(struct q_roofs *r, const struct record *record);
/* Sets int8 and fp32, what products are judged by, from the rates of instructions: bytes are multiplied by dp4a and mma_i8, without these as
 * halves or floats. */
void ceilings_sum(struct q_roofs *r);
/* The ceiling's name for a param `path` ("mma_i8" for itself, "mma_f16" for others of the tensor cores, else "ffma"), and its rate. */
const char *ceiling_of_path(const char *path);
double ceiling_rate(const struct q_roofs *r, const char *path);

#endif
