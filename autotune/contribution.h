/* A contribution: one text with an owner's measured records of one card, to be sent, read by people, and put into tuned/.
 *
 *   # quarry contribution 1
 *   # card, program, driver, compiler, ceilings; a table of what was measured: op, shape, time, share of the roof, params
 *   {"baseline":..}                          a record each line, sorted, without objects
 *   sha256 HEX                               over the lines of records, each with its newline
 *
 * Lines with '#' are for people, and are made of the records alone: a reader who trusts the lines below need not trust the table. No name of a
 * host, a user or a path, no serial number and no date is in it. The hash tells of a text that was cut or changed on its way, not of who
 * wrote it. Whether a record is one that this program makes is judge.h's question. */
#ifndef Q_CONTRIBUTION_H
#define Q_CONTRIBUTION_H

#include "card_lines.h"
#include "runtime/roof.h"

enum { CONTRIBUTION_FORMAT = 1, CONTRIBUTION_BYTES = 16 << 20, CONTRIBUTION_CODES = 8 };

struct contribution {
    char card[192];
    struct card_lines lines;
    struct q_roofs roofs;                                /* measured ceilings, 0: not */
    char compiler[CONTRIBUTION_CODES][128];              /* of the records' objects, each once */
    int n_compilers;
};

void contribution_free(struct contribution *c);
/* Adds a record, with what its objects tell. */
int contribution_add(struct contribution *c, const struct record *r, struct q_err *e);
/* Owned by the caller; NULL when memory is short. */
char *contribution_print(struct contribution *c);
/* Reads such a text: card and lines. `where` (a path) begins the error's line. On an error there is nothing to free. */
int contribution_parse(struct contribution *c, const char *text, size_t n, const char *where, struct q_err *e);

#endif
