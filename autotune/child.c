#define _GNU_SOURCE
#include "child.h"
#include "runtime/clock.h"
#include "runtime/files.h"
#include "runtime/interrupts.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { VARIABLE = 7 };   /* of "TMPDIR=" */

/* Ours, but for TMPDIR. The array and its first text are the caller's; NULL: no memory. */
static char **environment_in(const char *dir)
{
    int n = 0, k = 0;
    while (environ[n]) n++;
    char **env = calloc((size_t)n + 2, sizeof *env), *own = malloc(VARIABLE + strlen(dir) + 1);
    if (!env || !own) {
        free(env);
        free(own);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        if (strncmp(environ[i], "TMPDIR=", VARIABLE)) env[++k] = environ[i];
    env[0] = strcat(strcpy(own, "TMPDIR="), dir);
    return env;
}

/* in: read end for its stdin, -1: /dev/null. With one, stderr stays ours. */
static int spawn(pid_t *pid, char *const *argv, const char *dir, int in, int out)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none;
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&fa)) return ENOMEM;
    if (posix_spawnattr_init(&at)) {
        posix_spawn_file_actions_destroy(&fa);
        return ENOMEM;
    }
    if (in < 0) posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    else posix_spawn_file_actions_adddup2(&fa, in, 0);
    posix_spawn_file_actions_adddup2(&fa, out, 1);
    if (in < 0) posix_spawn_file_actions_adddup2(&fa, out, 2);
    if (dir) posix_spawn_file_actions_addchdir_np(&fa, dir);
    /* A group of its own: a compiler is a driver and its children, and all of them must end together. */
    posix_spawnattr_setpgroup(&at, 0);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    char **env = dir ? environment_in(dir) : environ;
    int failed = env ? posix_spawnp(pid, argv[0], &fa, &at, argv, env) : ENOMEM;
    if (dir && env) {
        free(env[0]);
        free(env);
    }
    posix_spawnattr_destroy(&at);
    posix_spawn_file_actions_destroy(&fa);
    return failed;
}

int child_start(struct child *c, char *const *argv, const char *dir, struct q_err *e)
{
    int fd[2];
    if (pipe2(fd, O_CLOEXEC)) return q_fail(e, Q_EIO, "%s: no pipe: %s", argv[0], strerror(errno));
    int failed = spawn(&c->pid, argv, dir, -1, fd[1]);
    close(fd[1]);
    c->fd = fd[0];
    if (!failed) return Q_OK;
    close(fd[0]);
    return q_fail(e, failed == ENOENT ? Q_EMISS : Q_EIO, "%s: cannot start it: %s", argv[0], strerror(failed));
}

int child_start_talk(struct child *c, char *const *argv, int *to_child, struct q_err *e)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC)) return q_fail(e, Q_EIO, "%s: no pipe: %s", argv[0], strerror(errno));
    if (pipe2(out, O_CLOEXEC)) {
        close(in[0]);
        close(in[1]);
        return q_fail(e, Q_EIO, "%s: no pipe: %s", argv[0], strerror(errno));
    }
    int failed = spawn(&c->pid, argv, NULL, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    c->fd = out[0];
    *to_child = in[1];
    if (!failed) return Q_OK;
    close(in[1]);
    close(out[0]);
    return q_fail(e, Q_EIO, "%s: cannot start it: %s", argv[0], strerror(failed));
}

int child_tell(int to_child, const char *line) { return file_put_all(to_child, line, strlen(line)) || file_put_all(to_child, "\n", 1); }

enum child_news child_hear(const struct child *c, int signal_fd, double deadline, char *to, size_t room, size_t *n)
{
    for (;;) {
        struct pollfd fds[2] = { { c->fd, POLLIN, 0 }, { signal_fd, POLLIN, 0 } };
        double left = deadline - clock_s();
        if (left <= 0) return CHILD_LATE;
        int k = poll(fds, 2, left > 1 ? 1000 : (int)(left * 1000) + 1);
        if (k > 0 && fds[1].revents & POLLIN) return CHILD_INTERRUPTED;
        if (k <= 0 || !fds[0].revents) continue;
        ssize_t got = read(c->fd, to, room);
        if (got < 0 && errno == EINTR) continue;
        *n = got > 0 ? (size_t)got : 0;
        return *n ? CHILD_CAME : CHILD_ENDED;
    }
}

void child_kill(const struct child *c) { kill(-c->pid, SIGKILL); }

int child_end(struct child *c, int *status, struct q_err *e)
{
    int s, r;
    close(c->fd);
    while ((r = waitpid(c->pid, &s, 0)) < 0 && errno == EINTR) {}
    if (r < 0) return q_fail(e, Q_EIO, "cannot wait for a child: %s", strerror(errno));
    *status = WIFEXITED(s) ? WEXITSTATUS(s) : 128 + WTERMSIG(s);
    return Q_OK;
}

/* All that it prints until its end; what does not fit is dropped. */
static int listen_to(const struct child *c, const char *name, int signals, char *line, size_t cap, struct q_err *e)
{
    struct pollfd p[2] = { { c->fd, POLLIN, 0 }, { signals, POLLIN, 0 } };
    char buf[1024];
    size_t n = 0;
    double end = clock_s() + CHILD_ANSWER_S;
    for (;;) {
        if (clock_s() > end) return q_fail(e, Q_EIO, "%s did not answer within %d s", name, CHILD_ANSWER_S);
        if (poll(p, 2, 200) <= 0) continue;
        if (p[1].revents & POLLIN) return q_fail(e, Q_EIO, "interrupted while %s was asked", name);
        ssize_t k = read(c->fd, buf, sizeof buf);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) break;
        for (ssize_t i = 0; i < k && n + 1 < cap; i++) line[n++] = buf[i];
    }
    line[n] = 0;
    line[strcspn(line, "\n")] = 0;
    return Q_OK;
}

int child_first_line(char *const *argv, char *line, size_t cap, int *status, struct q_err *e)
{
    struct child c;
    int r = child_start(&c, argv, NULL, e);
    if (r) return r;
    int signals = interrupts_open(), bad = listen_to(&c, argv[0], signals, line, cap, e);
    if (signals >= 0) close(signals);
    if (bad) child_kill(&c);
    r = child_end(&c, status, bad ? NULL : e);
    return bad ? bad : r;
}
