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

/* How it will be written. */
struct collect_out {
    const char *path;
    int is_signed;
    struct minisign_secret secret;
    char signer[MINISIGN_LINE];  /* the public key, "" if it is not signed */
};
/* Before any work: sign NULL or the secret key's file, path NULL: set.tar.zst. Finds a key that is none and a folder that cannot be written. */
int collect_out_open(struct collect_out *out, const char *sign, const char *path, struct q_err *e);
/* Forgets the key. */
void collect_out_close(struct collect_out *out);
/* Packs, signs, writes the file whole. */
int collect_write(const struct collect *c, const struct collect_out *out, struct q_err *e);

#endif
