#include "prefix_tree_bound.h"
#include "clock.h"
#include "files.h"
#include "session_file.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double LOOK_S = 3;      /* between two looks at the directory */

struct own {
    char name[Q_TREE_NAME];
    size_t bytes;
};

struct tree_bound {
    const char *dir;                 /* borrowed */
    size_t most;
    pthread_mutex_t lock;            /* of all below */
    struct own *own;                 /* owned: [n_own] */
    int n_own, cap;
    struct session_found *other;     /* owned: [n_other], the longest unused first; those before `gone` went */
    int n_other, gone;
    double looked_s;                 /* 0: never */
};

int tree_bound_is_name(const char *name)
{
    return !strncmp(name, TREE_FILE_PREFIX, strlen(TREE_FILE_PREFIX)) && strlen(name) < Q_TREE_NAME;
}

struct tree_bound *tree_bound_new(const char *dir, size_t most)
{
    struct tree_bound *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->dir = dir;
    b->most = most;
    pthread_mutex_init(&b->lock, NULL);
    return b;
}

void tree_bound_free(struct tree_bound *b)
{
    if (!b) return;
    session_found_free(b->other, b->n_other);
    pthread_mutex_destroy(&b->lock);
    free(b->own);
    free(b);
}

/* ---- the tree's own ---- */

static struct own *own_of(const struct tree_bound *b, const char *name)
{
    for (int i = b->n_own; i--;)
        if (!strcmp(b->own[i].name, name)) return &b->own[i];
    return NULL;
}

static void forget(struct tree_bound *b, const char *name)
{
    struct own *o = own_of(b, name);
    if (o) *o = b->own[--b->n_own];
}

/* Where memory is short, the file counts among the others. */
static struct own *one_more(struct tree_bound *b)
{
    if (b->n_own == b->cap) {
        int cap = b->cap ? 2 * b->cap : 64;
        struct own *more = realloc(b->own, (size_t)cap * sizeof *more);
        if (!more) return NULL;
        b->own = more;
        b->cap = cap;
    }
    return &b->own[b->n_own++];
}

void tree_bound_add(struct tree_bound *b, const char *name, size_t bytes)
{
    pthread_mutex_lock(&b->lock);
    forget(b, name);
    struct own *o = one_more(b);
    if (o) {
        o->bytes = bytes;
        strcpy(o->name, name);
    }
    pthread_mutex_unlock(&b->lock);
}

void tree_bound_forget(struct tree_bound *b, const char *name)
{
    pthread_mutex_lock(&b->lock);
    forget(b, name);
    pthread_mutex_unlock(&b->lock);
}

/* ---- the others' ---- */

static int look(struct tree_bound *b, struct q_err *e)
{
    session_found_free(b->other, b->n_other);
    b->other = NULL;
    b->n_other = b->gone = 0;
    int rc = session_find_files(b->dir, &b->other, &b->n_other, e);
    b->looked_s = rc ? 0 : clock_s();
    return rc;
}

static int counts(const struct tree_bound *b, const struct session_found *f, const char *name)
{
    return tree_bound_is_name(f->name) && strcmp(f->name, name) && !own_of(b, f->name);
}

/* With `bytes` for the file `name`, which takes the place of one there may be. */
static uint64_t all_bytes(const struct tree_bound *b, const char *name, size_t bytes)
{
    uint64_t all = bytes;
    for (int i = 0; i < b->n_own; i++) all += strcmp(b->own[i].name, name) ? b->own[i].bytes : 0;
    for (int i = b->gone; i < b->n_other; i++) all += counts(b, &b->other[i], name) ? b->other[i].bytes : 0;
    return all;
}

static int remove_file(const struct tree_bound *b, const char *name, struct q_err *e)
{
    char path[Q_PATH];
    int rc = path_join(path, e, b->dir, name, NULL);
    if (rc || !unlink(path) || errno == ENOENT) return rc;
    return q_fail(e, Q_EIO, "%s: cannot remove an old checkpoint: %s", path, strerror(errno));
}

static int make_room(struct tree_bound *b, const char *name, size_t bytes, int now, struct q_err *e)
{
    int rc = now || !b->looked_s || clock_s() - b->looked_s > LOOK_S ? look(b, e) : Q_OK;
    uint64_t all = rc ? 0 : all_bytes(b, name, bytes);
    for (; !rc && b->gone < b->n_other && all > b->most; b->gone++) {
        const struct session_found *f = &b->other[b->gone];
        if (!counts(b, f, name)) continue;
        if ((rc = remove_file(b, f->name, e))) break;
        all -= f->bytes;
    }
    return rc;
}

int tree_bound_room(struct tree_bound *b, const char *name, size_t bytes, int now, struct q_err *e)
{
    pthread_mutex_lock(&b->lock);
    int rc = make_room(b, name, bytes, now, e);
    pthread_mutex_unlock(&b->lock);
    return rc;
}
