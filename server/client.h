/* Whether the client of a running request is still there.
 *
 * A closed connection shows as an end of its stream (FIN). Some clients end only their sending half once the request is
 * out and wait for the answer; theirs comes within 50 ms of the request's last byte. So an end first seen after a look that
 * found none, 50 ms or more behind the request, means gone; an earlier one does not, and then only a reset does. To bring that
 * reset about, a client that waits for a whole answer is sent "100 Continue", which every HTTP/1.1 client has to skip; a
 * stream's client is sent its first chunk anyway.
 * Whoever waits for an answer looks at 50 ms; the engine's thread looks between steps.
 */
#ifndef S_CLIENT_H
#define S_CLIENT_H

struct client {
    int fd;           /* borrowed: the connection's socket */
    double end;       /* seconds (monotonic) when the request's last byte was read */
    int settled;      /* looked after the grace, and it was whole */
    int half;         /* its sending half ended within the grace */
    int probe;        /* an interim answer may be sent: HTTP/1.1, and nothing was sent yet */
};
#define CLIENT_GRACE_S 0.05

void client_init(struct client *c, int fd, int probe);
int client_gone(struct client *c);

#endif
