/* Shared objects that are not quarry's own: the driver, NVRTC. Either is named by the user or found on the machine, so it may be anything.
 *
 * dlopen is no judge of that. A file that is cut off ends the process by SIGBUS, a FIFO or a dead network mount keeps it waiting for ever,
 * and a library's own start may do what it likes. So a path is looked at first without opening it as a library (shared_object_check), and
 * then the library is tried in a child that may die or be late (shared_object_try): what it answers there is all that quarry-tune needs of
 * an NVRTC, and what was tried may be opened here. Kernels' objects need none of this: the hash of their content is checked. */
#ifndef Q_SHARED_OBJECT_H
#define Q_SHARED_OBJECT_H

#include "files.h"
#include <stddef.h>

/* The file that a user means by `given`: dlopen would look for a name without '/' elsewhere than here. Returns `path`, or given itself where
 * there is no such file here. */
const char *shared_object_named(const char *given, char path[Q_PATH]);

/* Whether `path` is a whole ELF shared object for this machine: a regular file (or a link to one) whose segments end before it does.
 * Q_EMISS: there is no such file; Q_EINPUT: what it is instead. Never waits for a FIFO. */
int shared_object_check(const char *path, struct q_err *e);

/* Runs in the child, with dlopen's handle. Returns a code, and fills in the answer's n bytes, which hold no pointers. */
typedef int (*shared_object_ask)(void *library, void *answer, struct q_err *e);

enum { SHARED_OBJECT_SECONDS = 10 };   /* for a large library on a slow disk */

/* Opens `name` (a path, which is checked, or a name without '/', which is looked up as dlopen does) in a child and asks it there; ask NULL:
 * opening is all. Q_EMISS and dlerror's line if it does not open; Q_EIO if the child dies, takes longer, or a signal that the caller has
 * blocked (SIGINT, SIGTERM, SIGHUP) arrives meanwhile, which stays pending. */
int shared_object_try(const char *name, int seconds, shared_object_ask ask, void *answer, size_t n, struct q_err *e);

#endif
