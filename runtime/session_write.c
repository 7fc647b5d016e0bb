/* Writing a session file: room first, then piece after piece through one buffer, then the name. */
#define _GNU_SOURCE /* fallocate, mkostemp */
#include "files.h"
#include "session_impl.h"
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

struct writer {
    const struct session_source *src;
    struct session_head h;
    char dir[Q_PATH], temp[Q_PATH];
    int fd;
    char *piece;             /* owned: [SESSION_PIECE] */
};

static const char *what(const struct writer *w) { return w->src->what ? w->src->what : "session"; }

static int fail_write(const struct writer *w, struct q_err *e)
{
    return q_fail(e, Q_EIO, "%s: cannot write the %s: %s", w->dir, what(w), strerror(errno));
}

static int put_all(const struct writer *w, const void *data, size_t n, struct q_err *e)
{
    return file_put_all(w->fd, data, n) ? fail_write(w, e) : Q_OK;
}

/* With the lock that tells session_clean that its writer lives; one that was cleaned before the lock is made again. */
static int open_temp(struct writer *w, struct q_err *e)
{
    struct stat st;
    for (int tries = 0; tries < 100; tries++) {
        int rc = path_join(w->temp, e, w->dir, SESSION_TEMP "XXXXXX", NULL);
        if (rc) return rc;
        if ((w->fd = mkostemp(w->temp, O_CLOEXEC)) < 0) return q_fail(e, Q_EIO, "%s: cannot create a file: %s", w->dir, strerror(errno));
        if (!flock(w->fd, LOCK_EX | LOCK_NB) && !fstat(w->fd, &st) && st.st_nlink) return Q_OK;
        close(w->fd);
        w->fd = -1;
    }
    return q_fail(e, Q_EIO, "%s: cannot keep a temporary file there", w->dir);
}

/* A file system that cannot set room aside is taken at its word. */
static int take_room(struct writer *w, struct q_err *e)
{
    struct statvfs v;
    double need = (double)w->h.bytes / 1048576;
    if (!fstatvfs(w->fd, &v) && (uint64_t)v.f_bavail * v.f_frsize < w->h.bytes)
        return q_fail(e, Q_EIO, "%s: the %s takes %.1f MiB and %.1f MiB are free on that disk", w->dir, what(w), need,
                      (double)v.f_bavail * (double)v.f_frsize / 1048576);
    if (!fallocate(w->fd, 0, 0, (off_t)w->h.bytes) || errno == EOPNOTSUPP || errno == ENOSYS) return Q_OK;
    return q_fail(e, Q_EIO, "%s: no room for the %s's %.1f MiB: %s", w->dir, what(w), need, strerror(errno));
}

static int put_block(struct writer *w, const void *data, size_t n, struct q_err *e)
{
    unsigned char hash[SESSION_HASH];
    crypto_generichash(hash, sizeof hash, data, n, NULL, 0);
    int rc = put_all(w, data, n, e);
    return rc ? rc : put_all(w, hash, sizeof hash, e);
}

static int put_part(struct writer *w, int part, struct q_err *e)
{
    unsigned char hash[SESSION_HASH];
    crypto_generichash_state st;
    uint64_t all = session_part_bytes(&w->h, part);
    int rc = Q_OK;
    crypto_generichash_init(&st, NULL, 0, sizeof hash);
    for (uint64_t at = 0, n; at < all && !rc; at += n) {
        n = all - at < SESSION_PIECE ? all - at : SESSION_PIECE;
        rc = w->src->read(w->src->arg, part, at, w->piece, n, e);
        if (!rc) crypto_generichash_update(&st, (const unsigned char *)w->piece, n);
        if (!rc) rc = put_all(w, w->piece, n, e);
    }
    crypto_generichash_final(&st, hash, sizeof hash);
    return rc ? rc : put_all(w, hash, sizeof hash, e);
}

static int put_file(struct writer *w, struct q_err *e)
{
    unsigned char head[SESSION_HEAD + SESSION_HASH];
    session_pack(head, &w->h);
    int rc = take_room(w, e);
    if (!rc) rc = put_all(w, head, sizeof head, e);
    if (!rc) rc = put_block(w, w->src->ids, (size_t)w->h.n_ids * sizeof *w->src->ids, e);
    if (!rc) rc = put_block(w, w->src->text, (size_t)w->h.n_text, e);
    for (int i = 0; i < w->h.n_parts && !rc; i++) rc = put_part(w, i, e);
    if (!rc && fsync(w->fd)) rc = fail_write(w, e);
    return rc;
}

static int start(struct writer *w, const char *path, struct q_err *e)
{
    int rc = path_dir(w->dir, path, e);
    if (rc) return rc;
    w->h.made = (int64_t)time(NULL);
    w->h.bytes = session_file_bytes(&w->h);
    if (!(w->piece = malloc(SESSION_PIECE))) return q_fail(e, Q_EMEM, "no memory for a session's piece");
    return open_temp(w, e);
}

int session_write(const char *path, const struct session_source *src, int *lock, size_t *written, struct q_err *e)
{
    struct writer w = {.src = src, .h = src->h, .fd = -1};
    int rc = start(&w, path, e);
    if (!rc) rc = put_file(&w, e);
    if (!rc) rc = file_rename(w.temp, path, e);
    if (rc && w.fd >= 0) unlink(w.temp);
    free(w.piece);
    if (!rc && written) *written = w.h.bytes;
    /* The new file's lock is held already, so nobody comes between. */
    if (!rc && lock) {
        int old = *lock;
        *lock = w.fd;
        w.fd = old;
    }
    if (w.fd >= 0) close(w.fd);
    return rc;
}
