/* One process at a time works with a session file. The lock lies on the file itself: whoever replaces the file holds the new one's lock before
 * it gets the name (session_write), so there is no moment without. */
#define _GNU_SOURCE /* AT_EACCESS */
#include "files.h"
#include "session_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The descriptor's file still has the name. */
static int has_name(int fd, const char *path)
{
    struct stat a, b;
    return !fstat(fd, &a) && !stat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int refuse_special(const char *path, struct q_err *e)
{
    struct stat st;
    if (stat(path, &st) || S_ISREG(st.st_mode)) return Q_OK;
    return q_fail(e, Q_EINPUT, "%s: expected a session file or none, found %s", path, S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
}

int session_target(char target[Q_PATH], const char *path, struct q_err *e)
{
    char to[Q_PATH];
    ssize_t n;
    if ((size_t)snprintf(target, Q_PATH, "%s", path) >= Q_PATH) return q_fail(e, Q_ELIMIT, "%.200s...: path too long", path);
    for (int links = 0; (n = readlink(target, to, sizeof to - 1)) >= 0; links++) {
        to[n] = 0;
        if (links == 40) return q_fail(e, Q_EIO, "%s: cannot open the session: %s", path, strerror(ELOOP));
        /* What a link says is seen from its own folder. */
        char *slash = *to == '/' ? NULL : strrchr(target, '/');
        size_t dir = slash ? (size_t)(slash - target) + 1 : 0;
        if (dir + (size_t)n >= Q_PATH) return q_fail(e, Q_ELIMIT, "%.200s...: path too long", path);
        memcpy(target + dir, to, (size_t)n + 1);
    }
    return Q_OK;
}

int session_can_write(const char *path, struct q_err *e)
{
    char dir[Q_PATH];
    int rc = path_dir(dir, path, e);
    if (rc || !faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS)) return rc;
    return q_fail(e, Q_EIO, "%s: the session cannot be replaced: its folder cannot be written: %s", path, strerror(errno));
}

int session_lock(const char *path, struct q_err *e)
{
    for (int tries = 0; tries < 100; tries++) {
        if (refuse_special(path, e)) return -Q_EINPUT;
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
        if (fd < 0) return -q_fail(e, Q_EIO, "%s: cannot open the session: %s", path, strerror(errno));
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            int busy = errno == EWOULDBLOCK, code = errno;
            close(fd);
            return busy ? -q_fail(e, Q_ELIMIT, "%s: another process works with this session", path)
                        : -q_fail(e, Q_EIO, "%s: cannot lock the session: %s", path, strerror(code));
        }
        if (has_name(fd, path)) return fd;
        close(fd);
    }
    return -q_fail(e, Q_EIO, "%s: cannot lock the session: it is replaced all the time", path);
}

void session_unlock(int lock, const char *path)
{
    struct stat st;
    if (lock < 0) return;
    if (has_name(lock, path) && !fstat(lock, &st) && !st.st_size) unlink(path);
    close(lock);
}
