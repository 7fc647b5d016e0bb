/* A bundle's members to the bytes of its file: see bundle.h. */
#define _GNU_SOURCE
#include "archive_lib.h"
#include "bundle.h"
#include "runtime/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bundle_free(struct bundle *b)
{
    for (int i = 0; i < b->n; i++) free(b->m[i].data);
    free(b->m);
    free(b->manifest);
    memset(b, 0, sizeof *b);
}

const struct bundle_member *bundle_find(const struct bundle *b, const char *path)
{
    for (int i = 0; i < b->n; i++)
        if (!strcmp(b->m[i].path, path)) return &b->m[i];
    return NULL;
}

static int is_same(const struct bundle_member *m, const void *data, size_t n) { return m->n == n && m->data && !memcmp(m->data, data, n); }

/* Room for one more: at powers of two. */
static int grow(struct bundle *b, struct q_err *e)
{
    if (b->n & (b->n - 1)) return Q_OK;
    struct bundle_member *more = realloc(b->m, (b->n ? 2 * (size_t)b->n : 1) * sizeof *more);
    if (!more) return q_fail(e, Q_EMEM, "no memory for a bundle of %d members", b->n);
    b->m = more;
    return Q_OK;
}

int bundle_add(struct bundle *b, const char *path, const void *data, size_t n, struct q_err *e)
{
    size_t most;
    const struct bundle_member *have = bundle_find(b, path);
    if (have && is_same(have, data, n)) return Q_OK;
    if (have) return q_fail(e, Q_EINPUT, "%s: two members of that name", path);
    if (bundle_kind_of(path, &most) == BUNDLE_NONE) return q_fail(e, Q_EINPUT, "%s: no member of a bundle is called so", path);
    if (n > most || b->n == BUNDLE_MEMBERS)
        return q_fail(e, Q_ELIMIT, "%s: a bundle holds at most %d members, and of this kind %zu bytes", path, BUNDLE_MEMBERS, most);
    int r = grow(b, e);
    if (r) return r;
    struct bundle_member *m = &b->m[b->n];
    memset(m, 0, sizeof *m);
    if (!(m->data = malloc(n + 1))) return q_fail(e, Q_EMEM, "no memory for %s", path);
    if (n) memcpy(m->data, data, n);
    m->data[n] = 0;
    m->n = n;
    snprintf(m->path, sizeof m->path, "%s", path);
    sha_bytes(m->sha, data, n);
    b->n++;
    return Q_OK;
}

/* --- packing ----------------------------------------------------------------------------------------------------------- */

struct sink {
    char *data;                    /* owned */
    size_t n, cap;
};

static la_ssize_t take(struct archive *a, void *arg, const void *data, size_t n)
{
    struct sink *s = arg;
    (void)a;
    if (s->n + n > s->cap) {
        size_t cap = 2 * (s->n + n);
        char *more = realloc(s->data, cap);
        if (!more) return -1;
        s->data = more;
        s->cap = cap;
    }
    memcpy(s->data + s->n, data, n);
    s->n += n;
    return (la_ssize_t)n;
}

static int put(const struct archive_lib *l, struct archive *a, const char *path, const void *data, size_t n)
{
    struct archive_entry *entry = l->archive_entry_new();
    if (!entry) return -1;
    l->archive_entry_set_pathname(entry, path);
    l->archive_entry_set_filetype(entry, AE_IFREG);
    l->archive_entry_set_perm(entry, 0644);
    l->archive_entry_set_size(entry, (la_int64_t)n);
    l->archive_entry_set_mtime(entry, 0, 0);
    int failed = l->archive_write_header(a, entry) != ARCHIVE_OK || l->archive_write_data(a, data, n) != (la_ssize_t)n;
    l->archive_entry_free(entry);
    return failed;
}

/* One thread and one level: the same members give the same bytes. */
static int open_archive(const struct archive_lib *l, struct archive *a, struct sink *s)
{
    return l->archive_write_set_format_pax_restricted(a) || l->archive_write_add_filter_zstd(a)
           || l->archive_write_set_filter_option(a, "zstd", "compression-level", "9") || l->archive_write_set_bytes_in_last_block(a, 1)
           || l->archive_write_open(a, s, NULL, take, NULL);
}

static int put_all(const struct archive_lib *l, struct archive *a, const struct bundle *b, const char *manifest, const char *signature)
{
    int failed = put(l, a, "MANIFEST.json", manifest, strlen(manifest));
    if (!failed && *signature) failed = put(l, a, "MANIFEST.json.minisig", signature, strlen(signature));
    for (int i = 0; i < b->n && !failed; i++) failed = put(l, a, b->m[i].path, b->m[i].data, b->m[i].n);
    return failed;
}

static int write_archive(const struct archive_lib *l, const struct bundle *b, const char *manifest, const char *signature, struct sink *s,
                         struct q_err *e)
{
    struct archive *a = l->archive_write_new();
    if (!a) return q_fail(e, Q_EMEM, "no memory for a bundle");
    int failed = open_archive(l, a, s) || put_all(l, a, b, manifest, signature) || l->archive_write_close(a) != ARCHIVE_OK;
    const char *why = failed ? l->archive_error_string(a) : NULL;
    int rc = failed ? q_fail(e, Q_EIO, "cannot pack the bundle: %.200s", why ? why : "out of memory") : Q_OK;
    l->archive_write_free(a);
    return rc;
}

static int compare(const void *x, const void *y) { return strcmp(((const struct bundle_member *)x)->path, ((const struct bundle_member *)y)->path); }

int bundle_pack(struct bundle *b, const struct minisign_secret *key, char **data, size_t *n, struct q_err *e)
{
    struct archive_lib l;
    struct sink s = { 0 };
    char signature[MINISIGN_TEXT] = "", comment[64];
    int rc = archive_lib_open(&l, e);
    if (rc) return rc;
    if (b->n) qsort(b->m, (size_t)b->n, sizeof *b->m, compare);
    char *manifest = bundle_print_manifest(b);
    snprintf(comment, sizeof comment, "%s kernel set", b->creator);
    if (manifest && key) minisign_sign(signature, key, manifest, strlen(manifest), comment);
    rc = manifest ? write_archive(&l, b, manifest, signature, &s, e) : q_fail(e, Q_EMEM, "no memory for a manifest");
    archive_lib_close(&l);
    free(manifest);
    if (rc) free(s.data);
    *data = rc ? NULL : s.data;
    *n = s.n;
    return rc;
}
