/* Objects of recorded winners, and of the default params that they are held against, built ahead and together: one by one they would
 * wait for one compiler each. */
#ifndef Q_REBUILD_H
#define Q_REBUILD_H

#include "build.h"
#include "target.h"

/* For r[0..n): what is not in the store yet is built. A kernel that cannot be emitted or built is passed over: whoever looks at it
 * tells why. Errors end the work: an interrupt, a full disk. */
int rebuild_all(const struct build_opts *b, const struct target *t, struct gen *g, const struct record *const *r, int n, struct q_err *e);

#endif
