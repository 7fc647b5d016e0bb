/* API keys: one a line in a file; empty lines and lines that begin with # are skipped. */
#ifndef S_KEYS_H
#define S_KEYS_H

#include "runtime/err.h"

struct keys;
/* Q_EINPUT: no key in it. */
int keys_open(struct keys **k, const char *path, struct q_err *e);
void keys_close(struct keys *k);
/* Takes the same time whichever key or byte differs. */
int keys_match(const struct keys *k, const char *given);

#endif
