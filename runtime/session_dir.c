/* Directories of session files: a list by heads alone, a bound of bytes, and what killed writers left. */
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

static void free_finds(struct finds *f)
{
    for (int i = 0; i < f->n; i++) free(f->at[i].name);
    free(f->at);
    *f = (struct finds){0};
}

/* Least recently used first. */
static int find_all(const char *dir, struct finds *f, struct q_err *e)
{
    DIR *d = opendir(dir);
    *f = (struct finds){0};
    if (!d) return q_fail(e, Q_EIO, "%s: cannot read the directory: %s", dir, strerror(errno));
    int failed = 0;
    for (struct dirent *x; !failed && (x = readdir(d));) failed = add_found(f, dirfd(d), x->d_name);
    closedir(d);
    if (failed) free_finds(f);
    else if (f->n) qsort(f->at, (size_t)f->n, sizeof *f->at, compare_found);
    return failed ? q_fail(e, Q_EMEM, "%s: no memory for a list of its files", dir) : Q_OK;
}

int session_find_files(const char *dir, struct session_found **list, int *n, struct q_err *e)
{
    struct finds f;
    int rc = find_all(dir, &f, e);
    *list = f.at;
    *n = f.n;
    return rc;
}

void session_found_free(struct session_found *list, int n) { free_finds(&(struct finds){list, n, n}); }

/* --- the list ---------------------------------------------------------------------------------------------------------- */

/* Takes the name. 0: left out. */
static int read_entry(const char *dir, const char *state_id, struct session_found *f, struct session_entry *to)
{
    char path[Q_PATH];
    struct q_err e;
    if (path_join(path, &e, dir, f->name, NULL) || session_read_head(path, &to->head, &e)) return 0;
    if (state_id && strcmp(to->head.state_id, state_id)) return 0;
    to->name = f->name;
    to->used = f->used;
    f->name = NULL;
    return 1;
}

int session_list(const char *dir, const char *state_id, struct session_entry **list, int *n, int *n_others, struct q_err *e)
{
    struct finds f;
    int rc = find_all(dir, &f, e);
    *list = NULL;
    *n = *n_others = 0;
    if (rc) return rc;
    if (!(*list = calloc((size_t)f.n + 1, sizeof **list))) rc = q_fail(e, Q_EMEM, "%s: no memory for a list of %d sessions", dir, f.n);
    for (int i = 0; !rc && i < f.n; i++) *n += read_entry(dir, state_id, &f.at[i], &(*list)[*n]);
    *n_others = rc ? 0 : f.n - *n;
    free_finds(&f);
    return rc;
}

void session_list_free(struct session_entry *list, int n)
{
    for (int i = 0; i < n; i++) free(list[i].name);
    free(list);
}

/* --- room -------------------------------------------------------------------------------------------------------------- */

static uint64_t sum(const struct finds *f)
{
    uint64_t all = 0;
    for (int i = 0; i < f->n; i++) all += f->at[i].bytes;
    return all;
}

uint64_t session_dir_bytes(const char *dir)
{
    struct finds f;
    if (find_all(dir, &f, NULL)) return 0;
    uint64_t all = sum(&f);
    free_finds(&f);
    return all;
}

int session_make_room(const char *dir, uint64_t most, uint64_t room, struct q_err *e)
{
    struct finds f;
    char path[Q_PATH];
    if (room > most)
        return q_fail(e, Q_ELIMIT, "%s: a session of %.1f MiB is larger than all that may lie there, %.1f MiB", dir, (double)room / 1048576,
                      (double)most / 1048576);
    int rc = find_all(dir, &f, e);
    if (rc) return rc;
    uint64_t all = sum(&f);
    for (int i = 0; i < f.n && all > most - room; i++)
        if (!path_join(path, NULL, dir, f.at[i].name, NULL) && !unlink(path)) all -= f.at[i].bytes;
    free_finds(&f);
    return all <= most - room ? Q_OK : q_fail(e, Q_EIO, "%s: old sessions cannot be removed, and %.1f MiB are taken", dir, (double)all / 1048576);
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
    const char *slash = strrchr(path, '/');
    if (strlen(path) >= sizeof dir) return;
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    session_clean(dir);
}

int session_dir_open(const char *dir, struct q_err *e)
{
    int rc = dir_make(dir, e);
    if (!rc) session_clean(dir);
    return rc;
}
