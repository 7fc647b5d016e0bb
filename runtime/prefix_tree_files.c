#include "prefix_tree_files.h"
#include "session_file.h"
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct q_tree_files {
    struct q_tree_disk disk;
    struct session_head head;        /* of every file, but for its ids and part */
    size_t most;                     /* bytes of all trees' files */
    char dir[PATH_MAX - Q_TREE_NAME];
};

#define PREFIX "tree-"               /* files that people made have other names, and are left alone */

static void path_of(const struct q_tree_files *f, const char *name, char path[PATH_MAX]) { snprintf(path, PATH_MAX, "%s/%s", f->dir, name); }

/* ---- writing ---- */

static void name_of(const struct q_tree_files *f, const int32_t *ids, int n, char name[Q_TREE_NAME])
{
    enum { HASH = 16 };
    unsigned char hash[HASH];
    char hex[2 * HASH + 1];
    crypto_generichash_state h;
    crypto_generichash_init(&h, NULL, 0, HASH);
    crypto_generichash_update(&h, (const unsigned char *)f->head.state_id, strlen(f->head.state_id) + 1);
    crypto_generichash_update(&h, (const unsigned char *)ids, (size_t)n * sizeof *ids);
    crypto_generichash_final(&h, hash, HASH);
    sodium_bin2hex(hex, sizeof hex, hash, HASH);
    snprintf(name, Q_TREE_NAME, PREFIX "%s.session", hex);
}

struct source {
    const struct session_head *h;
    const char *state;
    const void *const *page;
};

/* The state, then page after page: how much of [at, at + n) lies together, and where. */
static const char *bytes_at(const struct source *s, size_t at, size_t *n)
{
    size_t states = s->h->state_bytes, one = s->h->page_bytes, in;
    if (at < states) {
        if (*n > states - at) *n = states - at;
        return s->state + at;
    }
    in = (at - states) % one;
    if (*n > one - in) *n = one - in;
    return (const char *)s->page[(size_t)(s->h->part[0].from / s->h->page_tokens) + (at - states) / one] + in;
}

static int read_source(void *arg, int part, size_t at, void *dst, size_t n, struct q_err *e)
{
    for (size_t done = 0, take; done < n; done += take) {
        take = n - done;
        const char *from = bytes_at(arg, at + done, &take);
        memcpy((char *)dst + done, from, take);
    }
    return Q_OK;
}

static int save(void *arg, const int32_t *ids, int n, const void *state, const void *const *page, struct q_tree_file *to, struct q_err *e)
{
    const struct q_tree_files *f = arg;
    struct session_source src = {.h = f->head, .ids = ids, .read = read_source};
    struct source s = {&src.h, state, page};
    char path[PATH_MAX];
    src.arg = &s;
    src.h.n_ids = n;
    src.h.n_parts = 1;
    src.h.part[0] = (struct session_part){to->shared * f->head.page_tokens, n};
    name_of(f, ids, n, to->name);
    path_of(f, to->name, path);
    return session_write(path, &src, NULL, &to->bytes, e);
}

/* ---- reading ---- */

struct target {
    const struct session_head *h;
    char *state;
    void *const *page;
};

static int put(void *arg, size_t at, const void *src, size_t n, struct q_err *e)
{
    const struct target *t = arg;
    /* A page that is not wanted is passed over. */
    for (size_t done = 0, take; done < n; done += take) {
        take = n - done;
        const struct source s = {t->h, t->state, (const void *const *)t->page};
        size_t states = t->h->state_bytes, pos = at + done;
        int skip = pos >= states && !t->page[(size_t)(t->h->part[0].from / t->h->page_tokens) + (pos - states) / t->h->page_bytes];
        char *to = (char *)bytes_at(&s, pos, &take);
        if (!skip) memcpy(to, (const char *)src + done, take);
    }
    return Q_OK;
}

static int check(const struct q_tree_files *f, const struct session *s, const struct q_tree_file *file, const int32_t *ids, int n, struct q_err *e)
{
    const struct session_head *h = session_head(s), *own = &f->head;
    int rc = session_check_id(session_path(s), h, own->state_id, e);
    if (rc) return rc;
    if (h->n_parts == 1 && h->part[0].length == n && h->part[0].from == file->shared * own->page_tokens && h->n_ids == n
        && h->page_tokens == own->page_tokens && h->state_bytes == own->state_bytes && h->page_bytes == own->page_bytes
        && !memcmp(session_ids(s), ids, (size_t)n * sizeof *ids))
        return Q_OK;
    return q_fail(e, Q_EINPUT, "%s: is not the checkpoint of %d tokens that was here", session_path(s), n);
}

static int load(void *arg, const struct q_tree_file *file, const int32_t *ids, int n, void *state, void *const *page, struct q_err *e)
{
    const struct q_tree_files *f = arg;
    struct session *s;
    char path[PATH_MAX];
    path_of(f, file->name, path);
    int rc = session_open(&s, path, e);
    if (rc) return rc;
    struct target t = {session_head(s), state, page};
    rc = check(f, s, file, ids, n, e);
    if (!rc) rc = session_read(s, 0, put, &t, e);
    session_close(s);
    return rc;
}

static void drop(void *arg, const char *name)
{
    char path[PATH_MAX];
    path_of(arg, name, path);
    unlink(path);
}

static void touch(void *arg, const char *name)
{
    char path[PATH_MAX];
    path_of(arg, name, path);
    session_touch(path);
}

/* ---- what is there ---- */

static int shorter(const void *a, const void *b)
{
    int x = ((const struct session_entry *)a)->head.n_ids, y = ((const struct session_entry *)b)->head.n_ids;
    return (x > y) - (x < y);
}

static void tell_file(const struct q_tree_files *f, const struct session_entry *x,
                      void (*file)(void *, const int32_t *, int, const struct q_tree_file *), void *to)
{
    struct session *s;
    struct q_err e;
    char path[PATH_MAX];
    const struct session_head *h = &x->head;
    double age = (double)time(NULL) - x->used;
    struct q_tree_file found = {.shared = h->part[0].from / f->head.page_tokens, .bytes = h->bytes, .age_s = age > 0 ? age : 0};
    if (h->n_parts != 1 || h->part[0].length != h->n_ids) return;
    memcpy(found.name, x->name, strlen(x->name) + 1);
    path_of(f, x->name, path);
    if (session_open(&s, path, &e)) return;
    file(to, session_ids(s), h->n_ids, &found);
    session_close(s);
}

static int is_tree(const struct session_entry *x) { return !strncmp(x->name, PREFIX, strlen(PREFIX)) && strlen(x->name) < Q_TREE_NAME; }
static int is_own(const struct q_tree_files *f, const struct session_entry *x) { return is_tree(x) && !strcmp(x->head.state_id, f->head.state_id); }

/* entry: the longest unused first. */
static void drop_others(struct q_tree_files *f, const struct session_entry *entry, int n)
{
    uint64_t all = 0;
    for (int i = 0; i < n; i++) all += is_tree(&entry[i]) ? entry[i].head.bytes : 0;
    for (int i = 0; i < n && all > f->most; i++) {
        if (!is_tree(&entry[i]) || is_own(f, &entry[i])) continue;
        drop(f, entry[i].name);
        all -= entry[i].head.bytes;
    }
}

static int list(void *arg, void (*file)(void *, const int32_t *, int, const struct q_tree_file *), void *to, struct q_err *e)
{
    struct q_tree_files *f = arg;
    struct session_entry *entry;
    int n, others;
    int rc = session_list(f->dir, NULL, &entry, &n, &others, e);
    if (rc) return rc;
    drop_others(f, entry, n);
    qsort(entry, (size_t)n, sizeof *entry, shorter);
    for (int i = 0; i < n; i++)
        if (is_own(f, &entry[i])) tell_file(f, &entry[i], file, to);
    session_list_free(entry, n);
    return Q_OK;
}

/* ---- opening ---- */

int q_tree_files_open(struct q_tree_files **out, const char *dir, size_t most, const struct q_tree_engine *en, const char *state_id, struct q_err *e)
{
    struct q_tree_files *f = calloc(1, sizeof *f);
    if (!f) return q_fail(e, Q_EMEM, "no memory for a directory of checkpoints");
    f->disk = (struct q_tree_disk){f, save, load, drop, touch, list};
    f->most = most;
    f->head = (struct session_head){.page_tokens = en->page_tokens, .state_bytes = en->state_bytes, .page_bytes = en->page_bytes};
    int rc = strlen(dir) < sizeof f->dir && strlen(state_id) < sizeof f->head.state_id
                 ? session_dir_open(dir, e) : q_fail(e, Q_ELIMIT, "%.80s...: a name that long is not possible for a directory of checkpoints", dir);
    if (rc) {
        free(f);
        return rc;
    }
    memcpy(f->dir, dir, strlen(dir) + 1);
    memcpy(f->head.state_id, state_id, strlen(state_id) + 1);
    *out = f;
    return Q_OK;
}

void q_tree_files_close(struct q_tree_files *f) { free(f); }
const struct q_tree_disk *q_tree_files_disk(const struct q_tree_files *f) { return &f->disk; }
