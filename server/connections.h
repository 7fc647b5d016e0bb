/* The connections there are, what each is doing and since when, and a thread that shuts those whose client takes too long.
 *
 * libmicrohttpd counts silence alone: a client that sends a byte now and then would hold its connection, and a thread, for ever. Here each
 * phase that waits for the client has a time of its own. A request cut off while it was read is answered 408. While we work nobody is shut.
 * Above `many` connections those without a request are shut after two seconds, so that they give way; libmicrohttpd itself would leave
 * whoever comes next waiting without a word, so its limit lies higher and requests above ours are told 429.
 */
#ifndef S_CONNECTIONS_H
#define S_CONNECTIONS_H

#include "runtime/err.h"

enum connection_phase {
    CONNECTION_NEW,      /* nothing came yet, or less than a request line */
    CONNECTION_IDLE,     /* an answer went out, no request followed yet */
    CONNECTION_HEADER,   /* the request line is there */
    CONNECTION_BODY,     /* the headers are there */
    CONNECTION_ANSWER    /* the request is whole */
};

struct connection_limits {
    int header_s, body_s, idle_s;    /* NEW and HEADER, BODY, IDLE */
    int many;
};

struct connections;
struct connection;

int connections_open(struct connections **cs, const struct connection_limits *limits, struct q_err *e);
/* All have been removed. */
void connections_close(struct connections *cs);
int connections_count(struct connections *cs);
int connections_crowded(struct connections *cs);

/* NULL: no memory. fd stays the caller's, open until connection_remove. */
struct connection *connection_add(struct connections *cs, int fd);
void connection_remove(struct connection *c);
/* Its client now has this phase's time. NULL is let pass. */
void connection_phase(struct connection *c, enum connection_phase p);
/* It was shut because its client took too long over a request. */
int connection_late(struct connection *c);

#endif
