/* A listening TCP socket. */
#ifndef S_LISTEN_H
#define S_LISTEN_H

#include "runtime/err.h"

struct listener {
    int fd;              /* owned by who opened it */
    char where[128];     /* "127.0.0.1:8080", "[::1]:8080" */
    int loopback;
};
/* Port 0 takes a free one. Q_EIO with host and port. */
int listen_open(struct listener *l, const char *host, int port, struct q_err *e);

#endif
