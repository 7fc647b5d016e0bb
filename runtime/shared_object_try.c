/* A library is opened in a child, so that it can crash, hang or exit there: shared_object.h. */
#define _GNU_SOURCE
#include "shared_object.h"
#include "clock.h"
#include "interrupts.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- the child ---------------------------------------------------------------------------------------------------------- */

static void write_all(int fd, const void *data, size_t n)
{
    for (const char *p = data; n;) {
        ssize_t k = write(fd, p, n);
        if (k <= 0) return;
        p += k;
        n -= (size_t)k;
    }
}

/* Ends with its parent, leaves no core file and takes a signal as a fresh program does; what a library prints is not ours to pass on. */
static void become_child(pid_t parent)
{
    sigset_t none;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigemptyset(&none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
    if (getppid() != parent) _exit(1);
    const int fresh[] = {SIGINT, SIGTERM, SIGHUP, SIGBUS, SIGSEGV, SIGABRT};
    for (size_t i = 0; i < sizeof fresh / sizeof *fresh; i++) signal(fresh[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int fd = 0; fd <= 2 && nothing >= 0; fd++) dup2(nothing, fd);
}

/* Its report: the error, then the answer. */
static void child(const char *name, shared_object_ask ask, void *answer, size_t n, int to_parent)
{
    struct q_err e = {0};
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!library) q_fail(&e, Q_EMISS, "%.600s", dlerror());
    else if (ask) e.code = ask(library, answer, &e);
    write_all(to_parent, &e, sizeof e);
    write_all(to_parent, answer, n);
    _exit(0);
}

/* --- the parent --------------------------------------------------------------------------------------------------------- */

static long now_ms(void) { return (long)(1e3 * clock_s()); }

enum end { WHOLE, SHORT, LATE, INTERRUPTED };

static enum end read_report(int fd, int signals, long end, char *to, size_t n)
{
    struct pollfd p[2] = {{fd, POLLIN, 0}, {signals, POLLIN, 0}};
    for (size_t at = 0; at < n;) {
        long left = end - now_ms();
        if (left <= 0) return LATE;
        if (poll(p, 2, (int)left) < 0) continue;
        if (p[1].revents & POLLIN) return INTERRUPTED;
        if (!p[0].revents) continue;
        ssize_t got = read(fd, to + at, n - at);
        if (!got || (got < 0 && errno != EINTR)) return SHORT;
        at += got > 0 ? (size_t)got : 0;
    }
    return WHOLE;
}

/* A process that waits for a dead disk may not even die: it is left to the end of this one then. */
static int reap(pid_t pid, int kill_it, int *status)
{
    if (kill_it) kill(pid, SIGKILL);
    for (int i = 0; i < 200; i++) {
        pid_t r = waitpid(pid, status, WNOHANG);
        if (r == pid) return 0;
        if (r < 0 && errno != EINTR) return -1;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return -1;
}

static int tell_death(const char *name, pid_t pid, struct q_err *e)
{
    int status = 0;
    if (reap(pid, 0, &status) || !WIFSIGNALED(status))
        return q_fail(e, Q_EIO, "%s: the library does not open: it is damaged, opening it ends the program", name);
    return q_fail(e, Q_EIO, "%s: the library does not open: it is damaged, opening it ends in %s", name, strsignal(WTERMSIG(status)));
}

static int listen_to(const char *name, pid_t pid, int fd, int seconds, void *answer, size_t n, struct q_err *e)
{
    struct q_err why;
    char *report = malloc(sizeof why + n);
    int status, signals = interrupts_open();
    enum end end = report ? read_report(fd, signals, now_ms() + 1000L * seconds, report, sizeof why + n) : LATE;
    if (signals >= 0) close(signals);
    if (end != SHORT) reap(pid, end != WHOLE, &status);
    if (end == WHOLE) {
        memcpy(&why, report, sizeof why);
        if (n) memcpy(answer, report + sizeof why, n);
    }
    int no_memory = !report;
    free(report);
    if (no_memory) return q_fail(e, Q_EMEM, "%s: no memory to ask it", name);
    if (end == SHORT) return tell_death(name, pid, e);
    if (end == INTERRUPTED) return q_fail(e, Q_EIO, "interrupted while %s was opened", name);
    if (end == LATE) return q_fail(e, Q_EIO, "%s: the library did not open within %d seconds (a disk that does not answer?)", name, seconds);
    return why.code ? q_fail(e, why.code, "%s", why.text) : Q_OK;
}

int shared_object_try(const char *name, int seconds, shared_object_ask ask, void *answer, size_t n, struct q_err *e)
{
    int fd[2], rc = !*name || strchr(name, '/') ? shared_object_check(name, e) : Q_OK;
    if (rc) return rc;
    if (pipe2(fd, O_CLOEXEC)) return q_fail(e, Q_EIO, "%s: no pipe: %s", name, strerror(errno));
    pid_t parent = getpid(), pid = fork();
    if (!pid) {
        become_child(parent);
        child(name, ask, answer, n, fd[1]);
    }
    close(fd[1]);
    rc = pid < 0 ? q_fail(e, Q_EIO, "%s: cannot start a process to open it: %s", name, strerror(errno))
                 : listen_to(name, pid, fd[0], seconds, answer, n, e);
    close(fd[0]);
    return rc;
}
