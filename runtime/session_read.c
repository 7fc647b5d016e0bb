/* Reading a session file. Nothing is mapped: a file that shrinks meanwhile is an error and no fault. */
#include "files.h"
#include "session_impl.h"
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session {
    char *path;              /* owned */
    int fd;                  /* owned */
    struct session_head h;
    int32_t *ids;            /* owned: [n_ids] */
    char *text;              /* owned: [n_text], and a zero byte */
};

static int get_all(const char *path, int fd, void *dst, uint64_t at, size_t n, struct q_err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pread(fd, (char *)dst + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return q_fail(e, Q_EIO, "%s: cannot read the session: %s", path, strerror(errno));
        if (!k) return q_fail(e, Q_EINPUT, "%s: cut off: byte %llu of the session is not there", path, (unsigned long long)(at + done));
        done += (size_t)k;
    }
    return Q_OK;
}

static int get_head(const char *path, int fd, size_t size, struct session_head *h, struct q_err *e)
{
    unsigned char head[SESSION_HEAD + SESSION_HASH];
    if (!size) return q_fail(e, Q_EINPUT, "%s: expected a session file, found an empty one", path);
    int rc = get_all(path, fd, head, 0, size < sizeof head ? size : sizeof head, e);
    if (!rc && size < sizeof head) rc = q_fail(e, Q_EINPUT, "%s: not a session file: it has %zu bytes", path, size);
    if (!rc) rc = session_unpack(path, head, h, e);
    if (rc || h->bytes == size) return rc;
    return q_fail(e, Q_EINPUT, "%s: %s: expected %llu bytes, found %zu", path, size < h->bytes ? "cut off" : "something follows the session",
                  (unsigned long long)h->bytes, size);
}

int session_read_head(const char *path, struct session_head *h, struct q_err *e)
{
    size_t size;
    int fd = file_open(path, &size, e);
    if (fd < 0) return -fd;
    int rc = get_head(path, fd, size, h, e);
    close(fd);
    return rc;
}

int session_claims(const char *path)
{
    unsigned char first[SESSION_MAGIC];
    size_t size;
    struct q_err e;
    int fd = file_open(path, &size, &e);
    if (fd < 0) return 0;
    int is = pread(fd, first, sizeof first, 0) == (ssize_t)sizeof first && session_has_magic(first);
    close(fd);
    return is;
}

/* n bytes at `at`, and a zero byte behind them; their hash follows them in the file. */
static int get_block(struct session *s, void **to, uint64_t at, size_t n, const char *what, struct q_err *e)
{
    unsigned char hash[SESSION_HASH], want[SESSION_HASH];
    if (!(*to = calloc(n + 1, 1))) return q_fail(e, Q_EMEM, "%s: no memory for %zu bytes", s->path, n);
    int rc = get_all(s->path, s->fd, *to, at, n, e);
    if (!rc) rc = get_all(s->path, s->fd, want, at + n, sizeof want, e);
    if (rc) return rc;
    crypto_generichash(hash, sizeof hash, *to, n, NULL, 0);
    return memcmp(hash, want, sizeof hash) ? q_fail(e, Q_EINPUT, "%s: damaged: its %s not what was written", s->path, what) : Q_OK;
}

static int get_ids_and_text(struct session *s, struct q_err *e)
{
    size_t n = (size_t)s->h.n_ids * sizeof *s->ids;
    uint64_t at = SESSION_HEAD + SESSION_HASH;
    void *ids = NULL, *text = NULL;
    int rc = get_block(s, &ids, at, n, "tokens are", e);
    if (!rc) rc = get_block(s, &text, at + n + SESSION_HASH, (size_t)s->h.n_text, "text is", e);
    s->ids = ids;
    s->text = text;
    return rc;
}

int session_open(struct session **out, const char *path, struct q_err *e)
{
    size_t size;
    struct session *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return q_fail(e, Q_EMEM, "no memory for a session");
    }
    s->fd = file_open(path, &size, e);
    int rc = s->fd < 0 ? -s->fd : get_head(path, s->fd, size, &s->h, e);
    if (!rc) rc = get_ids_and_text(s, e);
    if (rc) session_close(s);
    else *out = s;
    return rc;
}

void session_close(struct session *s)
{
    if (!s) return;
    if (s->fd >= 0) close(s->fd);
    free(s->ids);
    free(s->text);
    free(s->path);
    free(s);
}

const struct session_head *session_head(const struct session *s) { return &s->h; }
const int32_t *session_ids(const struct session *s) { return s->ids; }
const char *session_text(const struct session *s) { return s->text; }
const char *session_path(const struct session *s) { return s->path; }

static int get_part(struct session *s, int part, char *piece, session_put put, void *arg, struct q_err *e)
{
    unsigned char hash[SESSION_HASH], want[SESSION_HASH];
    crypto_generichash_state st;
    uint64_t begin = session_part_at(&s->h, part), all = session_part_bytes(&s->h, part);
    int rc = Q_OK;
    crypto_generichash_init(&st, NULL, 0, sizeof hash);
    for (uint64_t at = 0, n; at < all && !rc; at += n) {
        n = all - at < SESSION_PIECE ? all - at : SESSION_PIECE;
        rc = get_all(s->path, s->fd, piece, begin + at, n, e);
        if (!rc) crypto_generichash_update(&st, (const unsigned char *)piece, n);
        if (!rc) rc = put(arg, at, piece, n, e);
    }
    crypto_generichash_final(&st, hash, sizeof hash);
    if (!rc) rc = get_all(s->path, s->fd, want, begin + all, sizeof want, e);
    if (rc || !memcmp(hash, want, sizeof hash)) return rc;
    return q_fail(e, Q_EINPUT, "%s: damaged: the state at token %d is not what was written", s->path, s->h.part[part].length);
}

int session_read(struct session *s, int part, session_put put, void *arg, struct q_err *e)
{
    uint64_t all = session_part_bytes(&s->h, part);
    char *piece = malloc(all < SESSION_PIECE ? (size_t)all + 1 : SESSION_PIECE);
    int rc = piece ? get_part(s, part, piece, put, arg, e) : q_fail(e, Q_EMEM, "no memory for a session's piece");
    free(piece);
    return rc;
}

/* --- whose state it is ------------------------------------------------------------------------------------------------- */

/* The value of `name=` in an id, cut to what a line has room for. */
static void word(char to[100], const char *id, const char *name)
{
    const char *at = strstr(id, name);
    size_t n = at ? strcspn(at += strlen(name), " ") : 0;
    n = n < 99 ? n : 99;
    memcpy(to, at ? at : "", n);
    to[n] = 0;
}

static int differs(const char *name, const char *a, const char *b, char in_a[100], char in_b[100])
{
    word(in_a, a, name);
    word(in_b, b, name);
    return strcmp(in_a, in_b) != 0;
}

/* pinned is what this card's kernels compute, and another tuning's are others. */
static const char *other_kernels(const char *a, const char *b)
{
    if (strncmp(a, "pinned-", 7) || strncmp(b, "pinned-", 7)) return "";
    return ": the kernels are others, by a card, its threads or a tuning (a session of --numerics strict outlives that)";
}

int session_check_kv(const char *path, const struct session_head *h, const char *kv_k, const char *kv_v, struct q_err *e)
{
    char id[100], a[100], b[100];
    snprintf(id, sizeof id, "kv=%s+%s ", kv_k, kv_v);
    if (!differs("kv=", h->state_id, id, a, b)) return Q_OK;
    return q_fail(e, Q_EINPUT, "%s: a session whose KV is %s; this engine's is %s (K+V)", path, a, b);
}

int session_check_id(const char *path, const struct session_head *h, const char *state_id, struct q_err *e)
{
    char a[100], b[100];
    if (!strcmp(h->state_id, state_id)) return Q_OK;
    if (differs("model=", h->state_id, state_id, a, b))
        return q_fail(e, Q_EINPUT, "%s: a session of another model%s%s: expected %.12s..., found %.12s...", path, *h->model ? ", " : "", h->model,
                      b, a);
    if (differs("kv=", h->state_id, state_id, a, b))
        return q_fail(e, Q_EINPUT, "%s: a session whose KV is %s; this engine's is %s (K+V)", path, a, b);
    if (differs("numerics=", h->state_id, state_id, a, b))
        return q_fail(e, Q_EINPUT, "%s: a session computed with numerics %s; this engine computes with %s%s", path, a, b, other_kernels(a, b));
    if (differs("rope=", h->state_id, state_id, a, b))
        return q_fail(e, Q_EINPUT, "%s: a session whose positions are stretched by %s; this engine's are by %s (--rope-scaling)", path,
                      *a ? a : "nothing", *b ? b : "nothing");
    return q_fail(e, Q_EINPUT, "%s: a session of '%s'; this engine is '%s'", path, h->state_id, state_id);
}
