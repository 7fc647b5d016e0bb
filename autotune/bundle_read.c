/* The bytes of a bundle's file, from anywhere, to its members: see bundle.h. */
#define _GNU_SOURCE
#include "archive_lib.h"
#include "bundle.h"
#include "runtime/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct archive_lib l;
    struct archive *a;
    struct archive_entry *entry;
    const char *where;
    struct q_err *e;
};

static int refuse(const struct reader *r, const char *why)
{
    return q_fail(r->e, Q_EINPUT, "%.600s: not a whole kernel set: %s", r->where, why);
}

/* What libarchive says, in its own words. */
static int refuse_archive(const struct reader *r)
{
    const char *why = r->l.archive_error_string(r->a);
    return refuse(r, why ? why : "no zstd-compressed tar file");
}

/* The next entry: a plain file, with no second name and no holes. Q_EMISS at the end. */
static int next(struct reader *r, const char **path)
{
    int rc = r->l.archive_read_next_header(r->a, &r->entry);
    if (rc == ARCHIVE_EOF) return Q_EMISS;
    if (rc != ARCHIVE_OK) return refuse_archive(r);
    *path = r->l.archive_entry_pathname(r->entry);
    if (!*path) return refuse(r, "a member without a name");
    if (r->l.archive_entry_filetype(r->entry) != AE_IFREG || r->l.archive_entry_hardlink(r->entry) || r->l.archive_entry_symlink(r->entry)
        || r->l.archive_entry_sparse_count(r->entry))
        return q_fail(r->e, Q_EINPUT, "%.600s: %.200s: expected plain files", r->where, *path);
    return Q_OK;
}

/* All of the entry's data: at most `most` bytes, with a NUL behind them. Grows as it comes, so a size that lies takes no memory. */
static int read_data(const struct reader *r, size_t most, char **data, size_t *n)
{
    size_t cap = 0, len = 0;
    char *buf = NULL;
    la_ssize_t got;
    do {
        if (len + 1 >= cap) {
            char *more = realloc(buf, cap = cap ? 2 * cap : 16384);
            if (!more) return free(buf), q_fail(r->e, Q_EMEM, "no memory for a member of %zu bytes", cap);
            buf = more;
        }
        got = r->l.archive_read_data(r->a, buf + len, cap - 1 - len);
        len += got > 0 ? (size_t)got : 0;
    } while (got > 0 && len <= most);
    if (got < 0 || len > most) return free(buf), got < 0 ? refuse_archive(r) : refuse(r, "a member is longer than it may be");
    buf[len] = 0;
    *data = buf;
    *n = len;
    return Q_OK;
}

static int read_manifest(struct reader *r, struct bundle *b)
{
    const char *path;
    int rc = next(r, &path);
    if (rc == Q_EMISS) return refuse(r, "it is empty");
    if (!rc && strcmp(path, "MANIFEST.json")) return refuse(r, "its first member is not MANIFEST.json");
    if (!rc) rc = read_data(r, BUNDLE_MANIFEST, &b->manifest, &b->manifest_n);
    return rc ? rc : bundle_parse_manifest(b, b->manifest, b->manifest_n, r->where, r->e);
}

static int read_signature(const struct reader *r, struct bundle *b)
{
    char *text;
    size_t n;
    struct q_err why;
    int rc = read_data(r, 4096, &text, &n);
    if (rc) return rc;
    rc = minisign_parse(&b->signature, text, n, &why);
    free(text);
    b->has_signature = !rc;
    return rc ? refuse(r, why.text) : Q_OK;
}

static int read_member(const struct reader *r, struct bundle_member *m, const char *path)
{
    char sha[65];
    size_t n, most;
    if (strcmp(path, m->path)) return q_fail(r->e, Q_EINPUT, "%.600s: expected the member %s, found %.200s", r->where, m->path, path);
    int rc = read_data(r, m->n, &m->data, &n);
    if (rc) return rc;
    sha_bytes(sha, m->data, n);
    if (n != m->n || strcmp(sha, m->sha))
        return q_fail(r->e, Q_EINPUT, "%.600s: %s: damaged: its content is not what the manifest says", r->where, m->path);
    if (bundle_kind_of(m->path, &most) != BUNDLE_SOURCE) return Q_OK;
    free(m->data);
    m->data = NULL;
    return Q_OK;
}

static int read_members(struct reader *r, struct bundle *b)
{
    const char *path;
    int rc = next(r, &path), i = 0;
    if (!rc && !strcmp(path, "MANIFEST.json.minisig") && !(rc = read_signature(r, b))) rc = next(r, &path);
    while (i < b->n && !rc)
        if (!(rc = read_member(r, &b->m[i++], path))) rc = next(r, &path);
    if (!rc) return refuse(r, "it holds more than its manifest lists");
    if (rc != Q_EMISS) return rc;
    return i < b->n ? refuse(r, "it ends before its last member") : Q_OK;
}

static int read_archive(struct reader *r, struct bundle *b, const void *data, size_t n)
{
    r->a = r->l.archive_read_new();
    if (!r->a) return q_fail(r->e, Q_EMEM, "no memory for a bundle");
    r->l.archive_read_support_filter_zstd(r->a);
    r->l.archive_read_support_format_tar(r->a);
    int rc = r->l.archive_read_open_memory(r->a, data, n) == ARCHIVE_OK ? Q_OK : refuse_archive(r);
    if (!rc) rc = read_manifest(r, b);
    if (!rc) rc = read_members(r, b);
    r->l.archive_read_free(r->a);
    return rc;
}

int bundle_unpack(struct bundle *b, const void *data, size_t n, const char *where, struct q_err *e)
{
    struct reader r = { .where = where, .e = e };
    memset(b, 0, sizeof *b);
    int rc = archive_lib_open(&r.l, e);
    if (rc) return rc;
    rc = read_archive(&r, b, data, n);
    archive_lib_close(&r.l);
    if (rc) bundle_free(b);
    return rc;
}

int bundle_read(struct bundle *b, const char *path, struct q_err *e)
{
    char *data;
    size_t n;
    memset(b, 0, sizeof *b);
    int rc = file_read(path, BUNDLE_FILE, &data, &n, e);
    if (rc) return rc;
    rc = bundle_unpack(b, data, n, path, e);
    free(data);
    return rc;
}
