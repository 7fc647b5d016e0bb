#include "prefix_tree_files.h"
#include "prefix_tree_bound.h"
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
    struct tree_bound *bound;        /* owned */
    void (*say)(void *arg, const char *line);   /* may be NULL */
    void *say_arg;
    char dir[PATH_MAX - Q_TREE_NAME];
};

static void path_of(const struct q_tree_files *f, const char *name, char path[PATH_MAX]) { snprintf(path, PATH_MAX, "%s/%s", f->dir, name); }

/* ---- writing ---- */

static void name_of(const char *state_id, const int32_t *ids, int n, char name[Q_TREE_NAME])
{
    enum { HASH = 16 };
    unsigned char hash[HASH];
    char hex[2 * HASH + 1];
    crypto_generichash_state h;
    crypto_generichash_init(&h, NULL, 0, HASH);
    crypto_generichash_update(&h, (const unsigned char *)state_id, strlen(state_id) + 1);
    crypto_generichash_update(&h, (const unsigned char *)ids, (size_t)n * sizeof *ids);
    crypto_generichash_final(&h, hash, HASH);
    sodium_bin2hex(hex, sizeof hex, hash, HASH);
    snprintf(name, Q_TREE_NAME, TREE_FILE_PREFIX "%s.session", hex);
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
    struct session_source src = {.h = f->head, .ids = ids, .read = read_source, .what = "checkpoint"};
    struct source s = {&src.h, state, page};
    char path[PATH_MAX];
    src.arg = &s;
    src.h.n_ids = n;
    src.h.n_parts = 1;
    src.h.part[0] = (struct session_part){to->shared * f->head.page_tokens, n};
    name_of(f->head.state_id, ids, n, to->name);
    path_of(f, to->name, path);
    int rc = tree_bound_room(f->bound, to->name, session_file_bytes(&src.h), 0, e);
    if (!rc) rc = session_write(path, &src, NULL, &to->bytes, e);
    if (!rc) tree_bound_add(f->bound, to->name, to->bytes);
    return rc;
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
    const struct q_tree_files *f = arg;
    char path[PATH_MAX];
    path_of(f, name, path);
    unlink(path);
    tree_bound_forget(f->bound, name);
}

static void touch(void *arg, const char *name)
{
    char path[PATH_MAX];
    path_of(arg, name, path);
    session_touch(path);
}

/* ---- what is there ---- */

/* A file of this tree's, as the list has it. */
struct entry {
    const struct session_found *found;   /* borrowed */
    int n_ids;
};

static int shorter(const void *a, const void *b)
{
    int x = ((const struct entry *)a)->n_ids, y = ((const struct entry *)b)->n_ids;
    return (x > y) - (x < y);
}

static void tell_file(const struct q_tree_files *f, const struct entry *x, void (*file)(void *, const int32_t *, int, const struct q_tree_file *),
                      void *to)
{
    struct session *s;
    struct q_err e;
    char path[PATH_MAX];
    double age = (double)time(NULL) - x->found->used;
    path_of(f, x->found->name, path);
    if (session_open(&s, path, &e)) return;
    const struct session_head *h = session_head(s);
    struct q_tree_file found = {.shared = h->part[0].from / f->head.page_tokens, .bytes = h->bytes, .age_s = age > 0 ? age : 0};
    strcpy(found.name, x->found->name);
    tree_bound_add(f->bound, found.name, found.bytes);
    file(to, session_ids(s), h->n_ids, &found);
    session_close(s);
}

/* Heads, ids and the name, which is their hash: any tree's. Q_EINPUT, Q_EUNSUP: no tree will read it. */
static int read_entry(const struct q_tree_files *f, const char *name, int *is_own, int *n_ids, struct q_err *e)
{
    struct session *s;
    char path[PATH_MAX], right[Q_TREE_NAME];
    path_of(f, name, path);
    int rc = session_open(&s, path, e);
    if (rc) return rc;
    const struct session_head *h = session_head(s);
    name_of(h->state_id, session_ids(s), h->n_ids, right);
    *is_own = !strcmp(h->state_id, f->head.state_id);
    *n_ids = h->n_ids;
    if (h->n_parts != 1 || h->part[0].length != h->n_ids) rc = q_fail(e, Q_EINPUT, "%s: is no checkpoint of all its tokens", path);
    else if (strcmp(name, right)) rc = q_fail(e, Q_EINPUT, "%s: expected the checkpoint of that name, found %s", path, right);
    session_close(s);
    return rc;
}

/* What the files of no use were. */
struct dead {
    int n;
    uint64_t bytes;
    struct q_err first;
};

static void say_dead(const struct q_tree_files *f, const struct dead *d)
{
    char line[sizeof d->first.text + 200];
    if (!d->n || !f->say) return;
    snprintf(line, sizeof line, "%d file%s of checkpoints that cannot be read w%s removed (%.1f MiB)%s%s", d->n, d->n > 1 ? "s" : "",
             d->n > 1 ? "ere" : "as", (double)d->bytes / 1048576, d->n > 1 ? ", the first: " : ": ", d->first.text);
    f->say(f->say_arg, line);
}

static int choose(const struct q_tree_files *f, const struct session_found *found, int n, struct entry *entry, struct dead *dead)
{
    int n_own = 0;
    for (int i = 0; i < n; i++) {
        struct q_err e;
        int is_own, n_ids, rc = tree_bound_is_name(found[i].name) ? read_entry(f, found[i].name, &is_own, &n_ids, &e) : Q_EMISS;
        if (!rc && is_own) entry[n_own++] = (struct entry){&found[i], n_ids};
        if (rc != Q_EINPUT && rc != Q_EUNSUP) continue;
        drop((void *)f, found[i].name);
        if (!dead->n++) dead->first = e;
        dead->bytes += found[i].bytes;
    }
    return n_own;
}

static int list(void *arg, void (*file)(void *, const int32_t *, int, const struct q_tree_file *), void *to, struct q_err *e)
{
    struct q_tree_files *f = arg;
    struct session_found *found;
    struct dead dead = {0};
    int n, rc = session_find_files(f->dir, &found, &n, e);
    if (rc) return rc;
    struct entry *entry = calloc((size_t)n + 1, sizeof *entry);
    int n_own = entry ? choose(f, found, n, entry, &dead) : 0;
    if (!entry) rc = q_fail(e, Q_EMEM, "%s: no memory for a list of its files", f->dir);
    else qsort(entry, (size_t)n_own, sizeof *entry, shorter);
    for (int i = 0; i < n_own; i++) tell_file(f, &entry[i], file, to);
    free(entry);
    session_found_free(found, n);
    say_dead(f, &dead);
    /* Files that cannot be removed now are an error when one is to be written. */
    struct q_err later;
    if (!rc) tree_bound_room(f->bound, "", 0, 1, &later);
    return rc;
}

/* ---- opening ---- */

/* Bytes of a file beside ids, state and pages. */
static size_t beside(const struct session_head *sizes)
{
    struct session_head h = *sizes;
    h.n_ids = h.n_parts = h.part[0].length = 1;
    return session_file_bytes(&h) - h.state_bytes - h.page_bytes - sizeof(int32_t);
}

int q_tree_files_open(struct q_tree_files **out, const char *dir, size_t most, const struct q_tree_engine *en, const char *state_id,
                      void (*say)(void *arg, const char *line), void *say_arg, struct q_err *e)
{
    struct q_tree_files *f = calloc(1, sizeof *f);
    if (!f) return q_fail(e, Q_EMEM, "no memory for a directory of checkpoints");
    f->say = say;
    f->say_arg = say_arg;
    f->head = (struct session_head){.page_tokens = en->page_tokens, .state_bytes = en->state_bytes, .page_bytes = en->page_bytes};
    f->disk = (struct q_tree_disk){f, beside(&f->head), save, load, drop, touch, list};
    int rc = strlen(dir) < sizeof f->dir && strlen(state_id) < sizeof f->head.state_id
                 ? session_dir_open(dir, e) : q_fail(e, Q_ELIMIT, "%.80s...: a name that long is not possible for a directory of checkpoints", dir);
    if (!rc && !(f->bound = tree_bound_new(f->dir, most))) rc = q_fail(e, Q_EMEM, "no memory for a directory of checkpoints");
    if (rc) {
        free(f);
        return rc;
    }
    memcpy(f->dir, dir, strlen(dir) + 1);
    memcpy(f->head.state_id, state_id, strlen(state_id) + 1);
    *out = f;
    return Q_OK;
}

void q_tree_files_close(struct q_tree_files *f)
{
    if (!f) return;
    tree_bound_free(f->bound);
    free(f);
}

const struct q_tree_disk *q_tree_files_disk(const struct q_tree_files *f) { return &f->disk; }
