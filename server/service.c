#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "service.h"
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void service_tell(const char *address, const char *state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = address ? strlen(address) : 0;
    if (!n || n >= sizeof a.sun_path || (*address != '/' && *address != '@')) return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    memcpy(a.sun_path, address, n);
    if (*address == '@') a.sun_path[0] = 0; /* the abstract namespace */
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    close(fd);
}
