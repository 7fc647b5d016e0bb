/* Work directories: see store.h. A store has one of its own, locked for as long as its process lives, and its users' lie in there; so what a
 * killed process left is known by its lock, which went with it. */
#define _GNU_SOURCE
#include "store_impl.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 8, OLD_S = 3600 };

enum hold { HELD, TAKEN, UNKNOWN };   /* by another process, by this one now, on a disk without such locks */

static enum hold take(int fd)
{
    if (!flock(fd, LOCK_EX | LOCK_NB)) return TAKEN;
    return errno == EWOULDBLOCK ? HELD : UNKNOWN;
}

static int open_dir(const char *path) { return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

/* Where nobody can tell whose it is, an hour is longer than any work. */
static void remove_if_left(const char *path)
{
    struct stat st;
    int fd = open_dir(path);
    if (fd < 0) return;
    enum hold hold = take(fd);
    if (hold == TAKEN || (hold == UNKNOWN && !fstat(fd, &st) && st.st_mtime < time(NULL) - OLD_S)) dir_remove(path);
    close(fd);
}

static void remove_left(const char *objects)
{
    struct dirent **names;
    char path[Q_PATH];
    int n = scandir(objects, &names, NULL, NULL);
    for (int i = 0; i < n; i++) {
        if (!strncmp(names[i]->d_name, "work-", 5) && !path_join(path, NULL, objects, names[i]->d_name, NULL)) remove_if_left(path);
        free(names[i]);
    }
    if (n >= 0) free(names);
}

static int is_at(int fd, const char *path)
{
    struct stat a, b;
    return !fstat(fd, &a) && !stat(path, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Another process may find the new directory before it is locked, and take it for one that was left. */
static int make_own(struct store *s, const char *prefix, struct q_err *e)
{
    for (int i = 0; i < TRIES; i++) {
        int r = dir_temp(s->work, prefix, e);
        if (r) return s->work[0] = 0, r;
        s->work_lock = open_dir(s->work);
        if (s->work_lock < 0) continue;
        if (take(s->work_lock) != HELD && is_at(s->work_lock, s->work)) return Q_OK;
        close(s->work_lock);
    }
    s->work[0] = 0;
    return q_fail(e, Q_EIO, "%s...: others remove new directories there", prefix);
}

void store_remove_work(struct store *s)
{
    if (!s->work[0]) return;
    dir_remove(s->work);
    close(s->work_lock);
    s->work[0] = 0;
}

static int need_own(struct store *s, struct q_err *e)
{
    const char *cache;
    char objects[Q_PATH], prefix[Q_PATH];
    if (s->work[0] && is_at(s->work_lock, s->work)) return Q_OK;
    store_remove_work(s);      /* somebody cleared the cache meanwhile */
    int r = store_cache(s, &cache, e);
    if (!r) r = path_join(objects, e, cache, "objects", NULL);
    if (!r) r = dir_make(objects, e);
    if (!r) r = path_join(prefix, e, objects, "work-", NULL);
    if (r) return r;
    remove_left(objects);
    return make_own(s, prefix, e);
}

int store_workdir(struct store *s, char dir[Q_PATH], struct q_err *e)
{
    char prefix[Q_PATH];
    int r = need_own(s, e);
    if (!r) r = path_join(prefix, e, s->work, "", NULL);
    return r ? r : dir_temp(dir, prefix, e);
}
