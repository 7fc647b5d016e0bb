#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "listen.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int bind_one(const struct addrinfo *a)
{
    int on = 1, fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, 511)) return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static int is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
}

static void describe(struct listener *l)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    char host[64] = "?", port[16] = "?";
    getsockname(l->fd, (struct sockaddr *)&a, &n);
    getnameinfo((struct sockaddr *)&a, n, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(l->where, sizeof l->where, a.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    l->loopback = is_loopback((struct sockaddr *)&a);
}

int listen_open(struct listener *l, const char *host, int port, struct q_err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int bad = getaddrinfo(host, service, &hints, &list);
    if (bad) return q_fail(e, Q_EIO, "%s: no address: %s", host, gai_strerror(bad));
    l->fd = -1;
    for (const struct addrinfo *a = list; a && l->fd < 0; a = a->ai_next) l->fd = bind_one(a);
    int why = errno;
    freeaddrinfo(list);
    if (l->fd < 0)
        return q_fail(e, Q_EIO, "cannot listen on %s port %d: %s%s", host, port, strerror(why), why == EADDRINUSE ? " (--port N takes another)" : "");
    describe(l);
    return Q_OK;
}
