/* The keys whose kernel sets may bring objects: $XDG_DATA_HOME/quarry/trusted, one a line: the public key, its id, a comment.
 *
 * An object is machine code: a cubin reads all of the card's memory, a shared object does what the user can do. So the file is the
 * user's alone (0600; one that others may write is refused) and only `quarry tune trust` changes it, whole or not at all. */
#ifndef Q_TRUSTED_H
#define Q_TRUSTED_H

#include "minisign.h"

enum { TRUSTED_MOST = 256 };

struct trusted {
    struct minisign_public key;
    char comment[128];
};

struct trusted_list {
    struct trusted v[TRUSTED_MOST];
    int n;
};

/* An absent file is an empty list. */
int trusted_read(struct trusted_list *l, struct q_err *e);
int trusted_write(const struct trusted_list *l, struct q_err *e);
/* NULL if it is not there. */
const struct trusted *trusted_find(const struct trusted_list *l, const unsigned char id[8]);
/* Q_ELIMIT when the list is full, Q_EINPUT when another key has its id. *known: it was there. */
int trusted_add(struct trusted_list *l, const struct minisign_public *k, const char *comment, int *known, struct q_err *e);
/* which: a key's line or its id. Q_EMISS. */
int trusted_remove(struct trusted_list *l, const char *which, struct q_err *e);

#endif
