/* Which pages of other origins may use this server from a browser (--cors). None by default: then no CORS header is ever sent.
 *
 * An origin is "*" or what browsers send: scheme://host[:port], in lower case, no path. Preflights need no key: they cannot carry one.
 */
#ifndef S_CORS_H
#define S_CORS_H

#include <stddef.h>

enum { CORS_MOST = 64 };
struct cors {
    const char *origin[CORS_MOST];   /* borrowed */
    size_t length[CORS_MOST];
    int n, any;                      /* any: "*" is among them */
};

/* Adds a comma-separated list, which must live on. NULL, or what is wrong with it: "expected ..." */
const char *cors_read(struct cors *c, const char *list);
int cors_allows(const struct cors *c, const char *origin);

struct MHD_Connection;
struct MHD_Response;
/* The headers of an answer; those of a preflight where it is one. allow: the path's methods. */
void cors_add(struct MHD_Connection *connection, struct MHD_Response *r, const struct cors *c, const char *allow);

#endif
