/* Directories of session files: which there are, and what killed writers left. */
#define _GNU_SOURCE
#include "files.h"
#include "session_impl.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct finds {
    struct session_found *at;        /* owned: [n] */
    int n, cap;
};

static int is_session_name(const char *name)
{
    size_t n = strlen(name), end = strlen(SESSION_END);
    return n > end && name[0] != '.' && !strcmp(name + n - end, SESSION_END);
}

static int compare_found(const void *a, const void *b)
{
    const struct session_found *x = a, *y = b;
    return x->used != y->used ? (x->used > y->used) - (x->used < y->used) : strcmp(x->name, y->name);
}

static int add_found(struct finds *f, int dir, const char *name)
{
    struct stat st;
    if (!is_session_name(name) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)) return 0;
    if (f->n == f->cap) {
        int cap = f->cap ? 2 * f->cap : 64;
        struct session_found *more = realloc(f->at, (size_t)cap * sizeof *more);
        if (!more) return -1;
        f->at = more;
        f->cap = cap;
    }
    struct session_found *to = &f->at[f->n];
    *to = (struct session_found){strdup(name), (uint64_t)st.st_size, (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec};
    f->n += to->name != NULL;
    return to->name ? 0 : -1;
}

int session_find_files(const char *dir, struct session_found **list, int *n, struct q_err *e)
{
    struct finds f = {0};
    DIR *d = opendir(dir);
    *list = NULL;
    *n = 0;
    if (!d) return q_fail(e, Q_EIO, "%s: cannot read the directory: %s", dir, strerror(errno));
    int failed = 0;
    for (struct dirent *x; !failed && (x = readdir(d));) failed = add_found(&f, dirfd(d), x->d_name);
    closedir(d);
    if (failed) {
        session_found_free(f.at, f.n);
        return q_fail(e, Q_EMEM, "%s: no memory for a list of its files", dir);
    }
    if (f.n) qsort(f.at, (size_t)f.n, sizeof *f.at, compare_found);
    *list = f.at;
    *n = f.n;
    return Q_OK;
}

void session_found_free(struct session_found *list, int n)
{
    for (int i = 0; i < n; i++) free(list[i].name);
    free(list);
}

void session_touch(const char *path) { utimensat(AT_FDCWD, path, NULL, 0); }

/* --- leftovers --------------------------------------------------------------------------------------------------------- */

/* Its writer holds a lock while it lives. */
static void clean_one(int dir, const char *name)
{
    if (strncmp(name, SESSION_TEMP, strlen(SESSION_TEMP)) || strlen(name) != strlen(SESSION_TEMP) + 6) return;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (!flock(fd, LOCK_EX | LOCK_NB)) unlinkat(dir, name, 0);
    close(fd);
}

void session_clean(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *x; (x = readdir(d));) clean_one(dirfd(d), x->d_name);
    closedir(d);
}

void session_clean_beside(const char *path)
{
    char dir[Q_PATH];
    if (!path_dir(dir, path, NULL)) session_clean(dir);
}

int session_dir_open(const char *dir, struct q_err *e)
{
    int rc = dir_make(dir, e);
    if (!rc) session_clean(dir);
    return rc;
}
