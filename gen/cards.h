/* Card files: gen/cards/NAME.lua, or a file of that form anywhere. Each gives a card's key and says what is known about it:
 *
 *   return {
 *     key = "cuda:sm_75,sms=40,...",     what `runtime/card.h` calls a key: all that generator and tuner go by
 *     title = "NVIDIA T4",
 *     measured  = { "..." },             by this program, on such a card
 *     published = { { "what", "where" } },   by others, with the source
 *     unknown   = { "..." },             what nobody has measured: the tuner finds it out
 *   }
 *
 * Only the key is needed; a field that is none of these is refused, and so is a list of anything else.
 *
 * Names are looked up in the program's own copies, or in gen/cards of a source tree. */
#ifndef GEN_CARDS_H
#define GEN_CARDS_H

#include "runtime/err.h"
#include <stdio.h>

enum { CARD_KEY = 192 };

/* The key that `text` stands for: text itself if it is one ("cuda:sm_75,..."), else that of the card of this name ("t4") or of the file at
 * this path ("./mine.lua"). The key is not read here: that is card_parse's and gen/card.lua's. dir: a source tree, NULL: the copies. */
int gen_card_key(const char *dir, const char *text, char key[CARD_KEY], struct q_err *e);
/* A line each card file: name, title, key, sorted by name. */
int gen_cards_list(FILE *f, const char *dir, struct q_err *e);
/* All that a card file says, for people. */
int gen_card_show(FILE *f, const char *dir, const char *text, struct q_err *e);

#endif
