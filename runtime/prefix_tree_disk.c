/* Checkpoints in files: which are written, by a thread of the tree's; what was there before. */
#include "prefix_tree_impl.h"
#include <stdlib.h>
#include <string.h>

/* ---- the thread ---- */

static int save(const struct q_tree *t, struct tree_save *s)
{
    const void **page = malloc(((size_t)s->host->n_pages + 1) * sizeof *page);
    if (!page) return q_fail(&s->err, Q_EMEM, "no memory to write a checkpoint of %d tokens", s->n);
    for (int i = 0; i < s->host->n_pages; i++) page[i] = s->host->page[i]->bytes;
    int rc = t->o.disk->save(t->o.disk->arg, s->ids, s->n, s->host->state, page, &s->f, &s->err);
    free(page);
    return rc;
}

static void *run(void *arg)
{
    struct q_tree *t = arg;
    struct tree_save *s = &t->save;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->end && (!s->busy || s->done)) pthread_cond_wait(&s->change, &s->lock);
        if (!s->busy || s->done) break;
        pthread_mutex_unlock(&s->lock);
        int rc = save(t, s);
        pthread_mutex_lock(&s->lock);
        s->rc = rc;
        s->done = 1;
        pthread_cond_broadcast(&s->change);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* The nearest above with a file, which a new one builds on; NULL. */
static const struct tree_node *base_node(const struct tree_node *n)
{
    const struct tree_node *up = n->parent;
    while (up && !up->file) up = up->parent;
    return up;
}

static struct tree_file *base_of(const struct tree_node *n)
{
    const struct tree_node *up = base_node(n);
    return up ? up->file : NULL;
}

static int shared_pages(const struct q_tree *t, const struct tree_node *n)
{
    const struct tree_node *up = base_node(n);
    return up ? up->depth / t->en.page_tokens : 0;
}

size_t tree_file_need(const struct q_tree *t, const struct tree_node *n)
{
    return t->en.state_bytes + (size_t)(tree_pages(t, n->depth) - shared_pages(t, n)) * t->en.page_bytes + (size_t)n->depth * sizeof(int32_t)
           + t->o.disk->file_bytes + 1;
}

static void begin(struct q_tree *t, struct tree_node *n)
{
    struct tree_save *s = &t->save;
    int32_t *ids = malloc((size_t)n->depth * sizeof *ids);
    if (!ids) return;
    tree_path_ids(n, ids);
    pthread_mutex_lock(&s->lock);
    s->ids = ids;
    s->n = n->depth;
    s->host = n->host;
    s->base = base_of(n);
    s->f = (struct q_tree_file){.shared = shared_pages(t, n)};
    s->done = 0;
    s->busy = 1;
    n->host->refs++;
    if (s->base) s->base->refs++;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}

/* ---- the index ---- */

void tree_file_forget(struct tree_file *f)
{
    while (f && !--f->refs) {
        struct tree_file *base = f->base;
        free(f);
        f = base;
    }
}

void tree_file_drop(struct q_tree *t, struct tree_file *f)
{
    t->o.disk->drop(t->o.disk->arg, f->f.name);
    t->c.tier[Q_TIER_DISK].bytes -= f->f.bytes;
    tree_file_forget(f);
}

/* base: what it builds on, held for it. Where it has no place the file goes. */
static void add_file(struct q_tree *t, struct tree_node *n, const struct q_tree_file *f, struct tree_file *base)
{
    struct tree_file *new = n && !n->file && (base || !f->shared) ? calloc(1, sizeof *new) : NULL;
    if (!new) {
        t->o.disk->drop(t->o.disk->arg, f->name);
        tree_file_forget(base);
        return;
    }
    *new = (struct tree_file){1, base, *f};
    n->file = new;
    n->was = 0;
    t->c.tier[Q_TIER_DISK].n++;
    t->c.tier[Q_TIER_DISK].bytes += f->bytes;
}

static void found(void *arg, const int32_t *ids, int n, const struct q_tree_file *f)
{
    struct q_tree *t = arg;
    struct tree_node *at = n > 0 ? tree_insert(t, ids, n) : NULL;
    struct tree_file *base = at && shared_pages(t, at) >= f->shared ? base_of(at) : NULL;
    if (base) base->refs++;
    if (at) at->used_s = t->en.seconds() - f->age_s;
    add_file(t, at, f, base);
}

static void keep_budget(struct q_tree *t)
{
    struct tree_node *n;
    while (t->c.tier[Q_TIER_DISK].bytes > t->o.disk_bytes && (n = tree_least(t, Q_TIER_DISK, NULL))) tree_drop(t, n, Q_TIER_DISK);
}

/* Of a checkpoint's bytes: the shortest one's, when the tree opens, or those of one that would be written. */
static void say_small(struct q_tree *t, size_t need)
{
    struct q_err e;
    if (t->save.told_small) return;
    t->save.told_small = 1;
    q_fail(&e, Q_ELIMIT, "a checkpoint on disk takes %.1f MiB or more and all may take %.1f MiB: such are not written", (double)need / 1048576,
           (double)t->o.disk_bytes / 1048576);
    tree_say(t, &e);
}

int tree_disk_open(struct q_tree *t, struct q_err *e)
{
    struct tree_save *s = &t->save;
    int rc = t->o.disk->list(t->o.disk->arg, found, t, e);
    if (rc) return rc;
    keep_budget(t);
    if (t->en.state_bytes + t->en.page_bytes > t->o.disk_bytes) say_small(t, t->en.state_bytes + t->en.page_bytes);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->change, NULL);
    if (pthread_create(&s->thread, NULL, run, t)) {
        pthread_cond_destroy(&s->change);
        pthread_mutex_destroy(&s->lock);
        return q_fail(e, Q_EIO, "cannot start the thread that writes checkpoints");
    }
    s->open = 1;
    return Q_OK;
}

/* ---- what is written ---- */

static int over(struct tree_save *s, int wait)
{
    pthread_mutex_lock(&s->lock);
    while (wait && s->busy && !s->done) pthread_cond_wait(&s->change, &s->lock);
    int done = s->busy && s->done;
    pthread_mutex_unlock(&s->lock);
    return done;
}

static void take_in(struct q_tree *t)
{
    struct tree_save *s = &t->save;
    struct tree_node *n = tree_exact(t, s->ids, s->n);
    if (s->rc && !s->told) tree_say(t, &s->err);
    s->told = s->rc != 0;
    if (s->rc) tree_file_forget(s->base);
    else add_file(t, n ? n : tree_insert(t, s->ids, s->n), &s->f, s->base);
    if (n) n->no_disk = s->rc != 0;
    t->c.tier[Q_TIER_DISK].put += !s->rc;
    tree_host_drop(t, s->host);
    free(s->ids);
    pthread_mutex_lock(&s->lock);
    s->busy = s->done = 0;
    s->host = NULL;
    s->base = NULL;
    s->ids = NULL;
    pthread_mutex_unlock(&s->lock);
    keep_budget(t);
    tree_trim_host(t);
}

static size_t file_bytes(const struct q_tree *t, const struct tree_node *n) { return tree_tier_bytes(t, n, Q_TIER_DISK); }
static double worth(const struct q_tree *t, const struct tree_node *n) { return tree_worth(t, n, Q_TIER_DISK); }

/* Files are written when nobody waits, or when the host runs full. The end of an answer that nobody went on from is not worth a state's bytes: from
 * its turn on, little has to be read again. */
struct tree_node *tree_disk_wish(struct q_tree *t, int idle)
{
    struct tree_node *best = NULL;
    size_t used = t->c.tier[Q_TIER_DISK].bytes, budget = t->o.disk_bytes;
    if (!idle && t->c.tier[Q_TIER_HOST].bytes < t->o.host_bytes / 4 * 3) return NULL;
    const struct tree_node *least = tree_least(t, Q_TIER_DISK, NULL);
    double floor = least ? worth(t, least) : 0;
    for (struct tree_node *n = t->root.child; n; n = tree_next(n, &t->root)) {
        if (n->file || n->no_disk || !(n->host || (n->snap && idle && !n->no_copy))) continue;
        if (n->kind == Q_TREE_END && !n->hits) continue;
        if (file_bytes(t, n) > budget) {
            say_small(t, file_bytes(t, n));
            continue;
        }
        if (used + file_bytes(t, n) > budget && worth(t, n) <= floor) continue;
        if (!best || worth(t, n) > worth(t, best)) best = n;
    }
    return best;
}

int tree_disk_step(struct q_tree *t, int idle)
{
    if (t->save.busy && over(&t->save, 0)) take_in(t);
    if (t->save.busy) return 1;
    struct tree_node *n = tree_disk_wish(t, idle);
    if (!n) return 0;
    if (n->host && tree_room(t, Q_TIER_DISK, n, worth(t, n))) begin(t, n);
    else if (n->host) n->no_disk = 1;   /* what would have to go is worth more */
    return 1;
}

void tree_disk_close(struct q_tree *t)
{
    struct tree_save *s = &t->save;
    struct q_err e;
    double end = t->en.seconds() + t->o.flush_s;
    for (struct tree_node *n; t->en.seconds() <= end;) {
        if (over(s, 1)) take_in(t);
        if (!(n = tree_disk_wish(t, 1))) break;
        if (!n->host && tree_copy_now(t, n, &e)) n->no_disk = 1;
        else tree_disk_step(t, 1);
    }
    if (over(s, 1)) take_in(t);
    pthread_mutex_lock(&s->lock);
    s->end = 1;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
    s->open = 0;
}

static int load(struct q_tree *t, struct tree_node *n, struct tree_host *h, int from, const int32_t *ids, struct q_err *e)
{
    void **page = malloc(((size_t)h->n_pages + 1) * sizeof *page);
    if (!page) return q_fail(e, Q_EMEM, "no memory for a checkpoint of %d tokens", n->depth);
    for (int i = 0; i < h->n_pages; i++) page[i] = i < from ? NULL : h->page[i]->bytes;
    int rc = t->o.disk->load(t->o.disk->arg, &n->file->f, ids, n->depth, h->state, page, e);
    free(page);
    return rc;
}

/* One file whose first pages others on the host have. */
static int load_one(struct q_tree *t, struct tree_node *n, struct q_err *e)
{
    int from = 0;
    int32_t *ids = malloc((size_t)n->depth * sizeof *ids);
    struct tree_host *h = ids ? tree_host_new(t, n, &from) : NULL;
    int rc = !h ? q_fail(e, Q_EMEM, "no memory for a checkpoint of %d tokens", n->depth)
             : from < n->file->f.shared ? q_fail(e, Q_EINTERNAL, "a checkpoint's first %d pages are missing", n->file->f.shared) : Q_OK;
    if (!rc) {
        tree_path_ids(n, ids);
        rc = load(t, n, h, from, ids, e);
    }
    free(ids);
    if (rc && h) tree_host_drop(t, h);
    if (rc) return rc;
    n->host = h;
    t->c.tier[Q_TIER_HOST].n++;
    t->c.tier[Q_TIER_HOST].put++;
    return Q_OK;
}

/* The file and all that build on it are of no use. */
static void give_up(struct q_tree *t, struct tree_node *n)
{
    for (struct tree_node *c = n; c; c = tree_next(c, n)) {
        int builds = 0;
        for (struct tree_file *f = c->file; f; f = f->base) builds |= f == n->file;
        if (builds && c != n) tree_drop(t, c, Q_TIER_DISK);
    }
    tree_drop(t, n, Q_TIER_DISK);
}

static struct tree_node *node_of(struct tree_node *n, const struct tree_file *f)
{
    while (n && n->file != f) n = n->parent;
    return n;
}

int tree_from_disk(struct q_tree *t, struct tree_node *n, struct q_err *e)
{
    int rc = Q_OK;
    tree_room(t, Q_TIER_HOST, n, 1e300);
    while (!rc && !n->host) {
        /* The first of its chain that is not there, where what is there does not do. */
        struct tree_node *at = n;
        for (struct tree_node *up; at->file->base && (up = node_of(at, at->file->base)) && !up->host;) at = up;
        rc = load_one(t, at, e);
        if (!rc) t->o.disk->touch(t->o.disk->arg, at->file->f.name);
        if (rc && rc != Q_EMEM) tree_say(t, e), give_up(t, at);
    }
    return rc;
}
