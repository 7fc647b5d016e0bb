/* Endpoints that clients know from other servers and that are not here: why, in a line, so that nobody looks for a mistake in the path. */
#ifndef S_ABSENT_H
#define S_ABSENT_H

/* NULL: a path that nobody knows. */
const char *absent_why(const char *path);

#endif
