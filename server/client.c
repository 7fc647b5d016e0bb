#define _GNU_SOURCE /* POLLRDHUP */
#include "client.h"
#include "runtime/cli.h"
#include <poll.h>

void client_init(struct client *c, int fd) { *c = (struct client){.fd = fd, .end = cli_seconds()}; }

int client_gone(struct client *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    if (poll(&p, 1, 0) < 0) return 0;
    if (p.revents & (POLLERR | POLLHUP | POLLNVAL)) return 1;
    if (p.revents & POLLRDHUP) {
        if (c->settled) return 1;
        c->half = 1;
    } else if (cli_seconds() - c->end >= CLIENT_GRACE_S) {
        c->settled = !c->half;
    }
    return 0;
}
