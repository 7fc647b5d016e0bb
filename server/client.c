#define _GNU_SOURCE /* POLLRDHUP */
#include "client.h"
#include "runtime/clock.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

/* A machine that vanished sends no end of its stream: the system asks after it. */
static void ask_after(int fd)
{
    int on = 1, idle_s = 15, every_s = 5, times = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

void client_init(struct client *c, int fd, int probe)
{
    *c = (struct client){.fd = fd, .probe = probe, .end = clock_s()};
    if (fd >= 0) ask_after(fd);
}

static void note_half(struct client *c)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (!c->half && c->probe) send(c->fd, interim, sizeof interim - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    c->half = 1;
}

int client_gone(struct client *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    if (poll(&p, 1, 0) < 0) return 0;
    if (p.revents & (POLLERR | POLLHUP | POLLNVAL)) return 1;
    if (p.revents & POLLRDHUP) {
        if (c->settled) return 1;
        note_half(c);
    } else if (clock_s() - c->end >= CLIENT_GRACE_S) {
        c->settled = !c->half;
    }
    return 0;
}
