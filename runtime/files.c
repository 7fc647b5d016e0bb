#define _GNU_SOURCE
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int fail_io(struct q_err *e, const char *what, const char *path)
{
    return q_fail(e, errno == ENOENT || errno == ENOTDIR ? Q_EMISS : Q_EIO, "%s: cannot %s: %s", path, what, strerror(errno));
}

int path_join(char dst[Q_PATH], struct q_err *e, ...)
{
    va_list ap;
    va_start(ap, e);
    size_t n = 0;
    const char *part;
    dst[0] = 0;
    while ((part = va_arg(ap, const char *)) && n < Q_PATH) {
        int k = snprintf(dst + n, Q_PATH - n, "%s%s", n ? "/" : "", part);
        n += k > 0 ? (size_t)k : 0;
    }
    va_end(ap);
    return n < Q_PATH ? Q_OK : q_fail(e, Q_ELIMIT, "%.200s...: the path is longer than %d bytes", dst, Q_PATH);
}

int path_dir(char dst[Q_PATH], const char *path, struct q_err *e)
{
    const char *slash = strrchr(path, '/');
    if (strlen(path) >= Q_PATH) return q_fail(e, Q_ELIMIT, "%.200s...: path too long", path);
    snprintf(dst, Q_PATH, "%.*s", slash && slash > path ? (int)(slash - path) : 1, slash ? path : ".");
    return Q_OK;
}

/* --- directories ------------------------------------------------------------------------------------------------------- */

int dir_make(const char *path, struct q_err *e)
{
    char part[Q_PATH];
    struct stat st;
    int why = 0;
    if (!stat(path, &st) && S_ISDIR(st.st_mode)) return Q_OK;
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) return q_fail(e, Q_ELIMIT, "%.200s...: path too long", path);
    for (char *p = part + 1;; p++) {
        if (*p && *p != '/') continue;
        char c = *p;
        *p = 0;
        /* A parent may be unwritable and there: only the last step's failure counts. That nothing is above it has a reason above it. */
        int failed = mkdir(part, 0700) && errno != EEXIST ? errno : 0;
        if (failed != ENOENT || !why) why = failed;
        if (why && !c) return q_fail(e, Q_EIO, "%s: cannot make the directory: %s", path, strerror(why));
        if (!c) break;
        *p = c;
    }
    if (stat(path, &st) || !S_ISDIR(st.st_mode)) return q_fail(e, Q_EIO, "%s: expected a directory", path);
    return Q_OK;
}

int dir_make_for(const char *path, struct q_err *e)
{
    char dir[Q_PATH];
    int rc = path_dir(dir, path, e);
    return rc ? rc : dir_make(dir, e);
}

/* An unnamed-to-be file in `dir`; its name is left in `path`. */
static int temp_file(char path[Q_PATH], const char *dir, struct q_err *e)
{
    int r = path_join(path, e, dir, ".tmp-XXXXXX", NULL);
    if (r) return -1;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) q_fail(e, Q_EIO, "%s: cannot create a file: %s", dir, strerror(errno));
    return fd;
}

int dir_probe(const char *path, long bytes, struct q_err *e)
{
    char temp[Q_PATH];
    int r = dir_make(path, e);
    if (r) return r;
    int fd = temp_file(temp, path, e);
    if (fd < 0) return Q_EIO;
    int failed = posix_fallocate(fd, 0, bytes);
    close(fd);
    unlink(temp);
    return failed ? q_fail(e, Q_EIO, "%s: cannot write %ld bytes: %s", path, bytes, strerror(failed)) : Q_OK;
}

int dir_may_run(const char *path, struct q_err *e)
{
    struct statvfs disk;
    if (statvfs(path, &disk) || !(disk.f_flag & ST_NOEXEC)) return Q_OK;
    return q_fail(e, Q_EIO, "%s: kernels cannot run from there: its disk is mounted noexec", path);
}

int dir_temp(char dst[Q_PATH], const char *prefix, struct q_err *e)
{
    if (snprintf(dst, Q_PATH, "%sXXXXXX", prefix) >= Q_PATH) return q_fail(e, Q_ELIMIT, "%.200s...: path too long", prefix);
    return mkdtemp(dst) ? Q_OK : q_fail(e, Q_EIO, "%s: cannot make a directory: %s", dst, strerror(errno));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st, (void)type, (void)f;
    remove(path);
    return 0;
}

void dir_remove(const char *path) { nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* --- files ------------------------------------------------------------------------------------------------------------- */

int file_get_all(int fd, size_t max, char **data, size_t *n)
{
    size_t cap = 8192, len = 0;
    char *buf = malloc(cap);
    while (buf && len <= max) {
        if (len + 1 == cap) {
            char *more = realloc(buf, cap *= 2);
            if (!more) free(buf);
            buf = more;
            continue;
        }
        ssize_t k = read(fd, buf + len, cap - 1 - len);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) {
            free(buf);
            return -1;
        }
        if (k == 0) break;
        len += (size_t)k;
    }
    if (!buf) {
        errno = ENOMEM;
        return -1;
    }
    buf[len] = 0;
    *data = buf;
    *n = len;
    return 0;
}

static const char *name_mode(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a FIFO (a pipe)" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* To open a device may set it going, so it is looked at first; O_NONBLOCK is for a FIFO that came meanwhile, and nothing to a file. */
int file_open(const char *path, size_t *bytes, struct q_err *e)
{
    struct stat st;
    int fd = -1, bad = stat(path, &st);
    if (!bad && S_ISREG(st.st_mode)) fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY), bad = fd < 0 || fstat(fd, &st);
    if (bad) {
        int code = fail_io(e, "open", path);
        if (fd >= 0) close(fd);
        return -code;
    }
    if (S_ISREG(st.st_mode)) {
        if (bytes) *bytes = (size_t)st.st_size;
        return fd;
    }
    if (fd >= 0) close(fd);
    return -q_fail(e, Q_EINPUT, "%s: expected a regular file, found %s", path, name_mode(st.st_mode));
}

int file_read(const char *path, size_t max, char **data, size_t *n, struct q_err *e)
{
    int fd = file_open(path, NULL, e);
    if (fd < 0) return -fd;
    int failed = file_get_all(fd, max, data, n), saved = errno;
    close(fd);
    errno = saved;
    if (failed) return fail_io(e, "read", path);
    if (*n <= max) return Q_OK;
    free(*data);
    *data = NULL;
    return q_fail(e, Q_ELIMIT, "%s: expected at most %zu bytes, found more", path, max);
}

int file_put_all(int fd, const void *data, size_t n)
{
    for (const char *p = data; n;) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* After a rename: the directory's entry itself must reach the disk. */
static void sync_parent(const char *path)
{
    char dir[Q_PATH];
    int fd = path_dir(dir, path, NULL) ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

/* A rename would put the file in the place of a device or a FIFO, which is never what somebody wants. */
static int refuse_special(const char *path, struct q_err *e)
{
    struct stat st;
    if (lstat(path, &st) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)) return Q_OK;
    return q_fail(e, Q_EINPUT, "%s: expected a regular file or none, found %s", path, name_mode(st.st_mode));
}

int file_rename(const char *from, const char *to, struct q_err *e)
{
    if (refuse_special(to, e)) return Q_EINPUT;
    if (rename(from, to)) return q_fail(e, Q_EIO, "%s: cannot write: %s", to, strerror(errno));
    sync_parent(to);
    return Q_OK;
}

int file_write(const char *path, const void *data, size_t n, struct q_err *e)
{
    char dir[Q_PATH], temp[Q_PATH];
    int rc = refuse_special(path, e);
    if (!rc) rc = path_dir(dir, path, e);
    if (rc) return rc;
    int fd = temp_file(temp, dir, e);
    if (fd < 0) return Q_EIO;
    int failed = file_put_all(fd, data, n) || fsync(fd), saved = errno;
    close(fd);
    rc = failed ? q_fail(e, Q_EIO, "%s: cannot write: %s", path, strerror(saved)) : file_rename(temp, path, e);
    if (rc) unlink(temp);
    return rc;
}

int file_let_read(const char *path, struct q_err *e)
{
    mode_t mask = umask(0);
    umask(mask);
    return chmod(path, 0666 & ~mask) ? fail_io(e, "set the mode of", path) : Q_OK;
}

int file_publish(const char *from, const char *to, struct q_err *e)
{
    int fd = open(from, O_RDWR | O_CLOEXEC);
    if (fd < 0) return fail_io(e, "open", from);
    int failed = fchmod(fd, 0600) || fsync(fd), saved = errno;
    close(fd);
    return failed ? q_fail(e, Q_EIO, "%s: cannot write: %s", to, strerror(saved)) : file_rename(from, to, e);
}

int file_is_ours(const char *path)
{
    struct stat st;
    return !stat(path, &st) && (st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & 022);
}

/* --- hashes ------------------------------------------------------------------------------------------------------------ */

static void to_hex(char hex[65], const unsigned char *d)
{
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", d[i]);
}

void sha_texts(char hex[65], const char *const *texts, int n)
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state st;
    crypto_hash_sha256_init(&st);
    for (int i = 0; i < n; i++) crypto_hash_sha256_update(&st, (const unsigned char *)texts[i], strlen(texts[i]) + 1);
    crypto_hash_sha256_final(&st, digest);
    to_hex(hex, digest);
}

void sha_bytes(char hex[65], const void *data, size_t n)
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, data, n);
    to_hex(hex, digest);
}

int sha_file(char hex[65], const char *path, long *size, struct q_err *e)
{
    char *data;
    size_t n;
    int r = file_read(path, 64 << 20, &data, &n, e);
    if (r) return r;
    sha_bytes(hex, data, n);
    *size = (long)n;
    free(data);
    return Q_OK;
}
