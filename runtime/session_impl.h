/* What the session_*.c files share: the head as bytes, and names of temporary files. */
#ifndef Q_SESSION_IMPL_H
#define Q_SESSION_IMPL_H

#include "session_file.h"

enum { SESSION_MAGIC = 16, SESSION_FORMAT = 2, SESSION_HEAD = 496, SESSION_HASH = 32 };
#define SESSION_TEMP ".quarry-session-"     /* then six characters */
#define SESSION_END ".session"

/* The head's bytes, hash included: [SESSION_HEAD + SESSION_HASH]. */
void session_pack(unsigned char *to, const struct session_head *h);
int session_has_magic(const unsigned char *from);      /* [SESSION_MAGIC] */
/* Checks them: magic, format, hash, and that what they claim is possible. */
int session_unpack(const char *path, const unsigned char *from, struct session_head *h, struct q_err *e);
/* Where a part's bytes begin. */
uint64_t session_part_at(const struct session_head *h, int part);

#endif
