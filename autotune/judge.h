/* Whether a record from elsewhere is one that this build makes: nothing that it says of a kernel is believed.
 *
 * Its op, shape and params go through the generator, as those of a command line would: names and values must be the declared space's, the
 * candidate legal on the record's card. The kernel's name, layout, class of numerics, launch and the hash of its text must then be what the
 * generator says, and its costs are the generator's. What was measured is taken over as it was read: numbers that can make a choice slow,
 * not wrong. Nothing is compiled, written or run here. */
#ifndef Q_JUDGE_H
#define Q_JUDGE_H

#include "gen/gen.h"
#include "runtime/card.h"
#include "runtime/record.h"

/* card: of the bundle. *own: the record as this build says it, without objects; *k: its kernel, owned by the caller, without a unit where
 * the op is a choice. Q_EUNSUP: the record is of other templates than this build's, or of an op that it does not have. Q_EINPUT: it is none. */
int judge_record(struct gen *g, const struct q_card *card, const struct record *r, struct record *own, struct gen_kernel *k, struct q_err *e);
/* Of these the part that also holds for a record of this machine: its params are legal, and all that it says of their kernel is what they give.
 * *own has no evidence. */
int judge_own(struct gen *g, const struct q_card *card, const struct record *r, struct record *own, struct gen_kernel *k, struct q_err *e);
/* The same kernel on another card: its params must be legal there and give the same text. The launch is the other card's. Q_EUNSUP: not so. */
int judge_move(struct gen *g, const struct q_card *card, struct record *own, struct gen_kernel *k, struct q_err *e);
/* Which object of the record is what the kernel's text compiles to (kind, flags and name are right); NULL: none. */
const struct record_object *judge_object(const struct record *r, const struct gen_kernel *k);

#endif
