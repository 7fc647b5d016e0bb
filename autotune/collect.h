/* From a store to a bundle: records that this build would make the same, the text of their kernels, and on demand their objects. */
#ifndef Q_COLLECT_H
#define Q_COLLECT_H

#include "bundle.h"
#include "gen/gen.h"
#include "runtime/card.h"
#include "runtime/store.h"

struct collect {
    struct bundle *b;
    struct gen *g;
    struct store *s;
    const struct q_card *card;
    int binaries;
    int n;                       /* records that are in */
    int stale;                   /* left out: of other templates than this build's */
    int bare;                    /* in, but their object is not in the store */
    char first_stale[200];       /* why */
};

/* Adds a record of the card, unless one for its problem is in. An error is of memory, of reading, or of the bundle's bounds. */
int collect_record(struct collect *c, const struct record *r, struct q_err *e);
/* Packs, signs when `sign` names a secret key, and writes `path` whole. signer: "" or the public key's line. */
struct minisign_public;
int collect_write(const struct collect *c, const char *sign, const char *path, char signer[MINISIGN_LINE], struct q_err *e);

#endif
