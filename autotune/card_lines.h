/* The measured records of one card as tuned/ holds them: a line each, sorted by what they answer, without the objects, which are built where
 * they are used. The same records give the same bytes. */
#ifndef Q_CARD_LINES_H
#define Q_CARD_LINES_H

#include "runtime/record.h"
#include <stdio.h>

struct card_lines {
    struct card_line *v;        /* owned */
    int n, cap;
};

struct card_line {
    char *key, *text;           /* owned: what it answers (op, shape, buckets, profile, generator); the record's line */
    struct record record;       /* without objects */
};

void card_lines_free(struct card_lines *l);
/* The line that answers the same; NULL: none. */
struct card_line *card_lines_find(const struct card_lines *l, const struct record *r);
/* Takes out lines of the same problem that other templates were measured for. Returns how many. */
int card_lines_drop_stale(struct card_lines *l, const struct record *r);
/* A copy of r in the place of the line that answers the same, or a new one. Q_EMEM. */
int card_lines_put(struct card_lines *l, const struct record *r, struct q_err *e);
void card_lines_print(FILE *f, struct card_lines *l);
/* Reads a file of tuned/. A line that is no record of this card is an error: such a file is reviewed, nothing in it is damaged. Q_EMISS: no file. */
int card_lines_read(struct card_lines *l, const char *path, const char *card, struct q_err *e);
/* Writes it whole: temp file, fsync, rename. */
int card_lines_write(struct card_lines *l, const char *path, struct q_err *e);

#endif
