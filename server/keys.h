/* API keys: from the command line and from a file, one a line; empty lines and lines that begin with # are skipped. Hashes are kept, no keys. */
#ifndef S_KEYS_H
#define S_KEYS_H

#include "runtime/err.h"

struct keys;
int keys_open(struct keys **k, struct q_err *e);
void keys_close(struct keys *k);
int keys_add(struct keys *k, const char *key, struct q_err *e);
/* Q_EINPUT: no key in it, or one with control characters or above 4096 bytes. */
int keys_add_file(struct keys *k, const char *path, struct q_err *e);
/* Which one it is, from 1 in the order they were added; 0: none of them. Takes the same time whichever key or byte differs. */
int keys_match(const struct keys *k, const char *given);

#endif
