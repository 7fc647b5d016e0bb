/* Copies of checkpoints in host memory: made in pieces while they still lie on the device, and brought back. */
#include "prefix_tree_impl.h"
#include <stdlib.h>
#include <string.h>

enum { PIECE = 4 << 20 };   /* bytes copied at once, at least a page */

/* ---- pages ---- */

static struct tree_page *new_page(struct q_tree *t)
{
    struct tree_page *p = malloc(sizeof *p + t->en.page_bytes);
    if (!p) return NULL;
    p->refs = 1;
    t->c.tier[Q_TIER_HOST].bytes += t->en.page_bytes;
    return p;
}

static void drop_page(struct q_tree *t, struct tree_page *p)
{
    if (--p->refs) return;
    t->c.tier[Q_TIER_HOST].bytes -= t->en.page_bytes;
    free(p);
}

void tree_host_drop(struct q_tree *t, struct tree_host *h)
{
    if (--h->refs) return;
    for (int i = 0; i < h->n_pages; i++)
        if (h->page[i]) drop_page(t, h->page[i]);
    if (h->state) t->c.tier[Q_TIER_HOST].bytes -= t->en.state_bytes;
    free(h->page);
    free(h->state);
    free(h);
}

static const struct tree_node *host_in(const struct tree_node *top)
{
    for (const struct tree_node *n = top; n; n = tree_next(n, top))
        if (n->host) return n;
    return NULL;
}

/* The host copy that has most whole pages in common with what the node's would hold; *shared: how many. */
static const struct tree_host *relative(const struct q_tree *t, const struct tree_node *n, int *shared)
{
    *shared = 0;
    for (const struct tree_node *up = n; up->parent; up = up->parent) {
        const struct tree_node *r = host_in(up);
        if (!r) continue;
        *shared = up->depth / t->en.page_tokens;
        return r->host;
    }
    return NULL;
}

size_t tree_host_need(const struct q_tree *t, const struct tree_node *n)
{
    int shared;
    relative(t, n, &shared);
    return t->en.state_bytes + (size_t)(tree_pages(t, n->depth) - shared) * t->en.page_bytes;
}

struct tree_host *tree_host_new(struct q_tree *t, const struct tree_node *n, int *from)
{
    const struct tree_host *r = relative(t, n, from);
    struct tree_host *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    h->refs = 1;
    h->n_pages = tree_pages(t, n->depth);
    h->page = calloc((size_t)h->n_pages + 1, sizeof *h->page);
    h->state = malloc(t->en.state_bytes + 1);
    if (h->state) t->c.tier[Q_TIER_HOST].bytes += t->en.state_bytes;
    int good = h->page && h->state;
    for (int i = 0; good && i < h->n_pages; i++) {
        if (i < *from) (h->page[i] = r->page[i])->refs++;
        else good = (h->page[i] = new_page(t)) != NULL;
    }
    if (good) return h;
    if (!h->page) h->n_pages = 0;
    tree_host_drop(t, h);
    return NULL;
}

void tree_trim_host(struct q_tree *t)
{
    while (t->c.tier[Q_TIER_HOST].bytes > t->o.host_bytes) {
        struct tree_node *least = tree_least(t, Q_TIER_HOST, NULL);
        if (!least) return;
        tree_drop(t, least, Q_TIER_HOST);
    }
}

/* ---- from the device, in pieces ---- */

void tree_copy_stop(struct q_tree *t)
{
    if (t->copy.host) tree_host_drop(t, t->copy.host);
    t->copy = (struct tree_copy){0};
}

static int copy_begin(struct q_tree *t, struct tree_node *n)
{
    int from;
    struct tree_host *h = tree_host_new(t, n, &from);
    if (!h) return 0;
    t->copy = (struct tree_copy){n, h, from, 0};
    return 1;
}

/* Pages lie apart on the host, so each is read by itself. */
static int copy_pages(struct q_tree *t, struct q_err *e)
{
    struct tree_copy *c = &t->copy;
    size_t done = 0;
    int rc = Q_OK;
    while (!rc && c->page < c->host->n_pages && done < PIECE) {
        rc = t->en.read_page(&t->en, c->node->snap, c->page, c->host->page[c->page]->bytes, e);
        done += t->en.page_bytes + 1;
        c->page += !rc;
    }
    return rc;
}

static void copy_done(struct q_tree *t)
{
    t->copy.node->host = t->copy.host;
    t->copy = (struct tree_copy){0};
    t->c.tier[Q_TIER_HOST].n++;
    t->c.tier[Q_TIER_HOST].put++;
}

static size_t piece_of_state(const struct q_tree *t, size_t at)
{
    size_t left = t->en.state_bytes - at;
    return left < PIECE ? left : PIECE;
}

static int copy_state(struct q_tree *t, struct q_err *e)
{
    struct tree_copy *c = &t->copy;
    size_t n = piece_of_state(t, c->state);
    int rc = t->en.read_state(&t->en, c->node->snap, c->state, n, c->host->state + c->state, e);
    c->state += n;
    return rc;
}

/* An error of the device is told by the next step that runs on it; the copy is given up. */
static int copy_piece(struct q_tree *t, struct q_err *e)
{
    struct tree_copy *c = &t->copy;
    int rc = c->state < t->en.state_bytes ? copy_state(t, e) : copy_pages(t, e);
    if (rc) {
        c->node->no_copy = 1;
        tree_copy_stop(t);
        return rc;
    }
    if (c->state == t->en.state_bytes && c->page == c->host->n_pages) copy_done(t);
    return Q_OK;
}

int tree_copy_now(struct q_tree *t, struct tree_node *n, struct q_err *e)
{
    if (t->copy.node != n) tree_copy_stop(t);
    if (!t->copy.node && !copy_begin(t, n)) return q_fail(e, Q_EMEM, "no memory for a checkpoint of %d tokens", n->depth);
    int rc = Q_OK;
    while (!rc && !n->host) rc = copy_piece(t, e);
    return rc;
}

/* Snapshots that may go at once, or slots that are free. */
static int covered(const struct q_tree *t)
{
    int n = t->o.max_snaps - t->c.tier[Q_TIER_DEVICE].n;
    for (const struct tree_node *at = t->root.child; at; at = tree_next(at, &t->root)) n += at->snap && (at->host || at->file);
    return n;
}

static int fits(struct q_tree *t, struct tree_node *n, int may_drop)
{
    size_t need = tree_host_need(t, n);
    if (t->c.tier[Q_TIER_HOST].bytes + need <= t->o.host_bytes) return 1;
    return may_drop && tree_room(t, Q_TIER_HOST, n, tree_loss(t, n) / (double)(need + 1));
}

/* What leaves the device next, as long as few may; while nobody waits whatever fits beside the others. */
static struct tree_node *choose(struct q_tree *t, int idle)
{
    int low = t->o.max_snaps > 4 ? t->o.max_snaps / 2 : 2, pressed = covered(t) < low;
    struct tree_node *best = NULL;
    double worth = 0;
    if (!t->o.host_bytes || (!pressed && !idle)) return NULL;
    for (struct tree_node *n = t->root.child; n; n = tree_next(n, &t->root)) {
        if (!n->snap || n->host || n->file || n->no_copy) continue;
        double w = tree_worth(t, n, Q_TIER_DEVICE);
        /* Pressed, the least valuable that is worth a place; idle, the most valuable that fits. */
        if (best && (pressed ? w >= worth : w <= worth)) continue;
        if (fits(t, n, 0)) best = n, worth = w;
    }
    if (best || !pressed) return best;
    best = tree_least(t, Q_TIER_DEVICE, NULL);
    return best && !best->host && !best->file && !best->no_copy && fits(t, best, 1) ? best : NULL;
}

int tree_copy_step(struct q_tree *t, int idle)
{
    struct q_err e;
    if (!t->copy.node) {
        struct tree_node *n = choose(t, idle);
        if (!n && tree_has_disk(t) && (n = tree_disk_wish(t, idle)) && (n->host || t->save.busy)) n = NULL;
        if (!n || !copy_begin(t, n)) return 0;
    }
    return !copy_piece(t, &e);
}

/* ---- to the device ---- */

static const struct tree_node *base_of(const struct tree_node *n)
{
    const struct tree_node *up = n->parent;
    while (up && !up->snap) up = up->parent;
    return up;
}

void tree_bring_stop(struct q_tree *t)
{
    struct tree_bring *b = &t->bring;
    if (!b->node) return;
    if (b->snap) t->en.close(b->snap);
    tree_host_drop(t, b->host);
    *b = (struct tree_bring){0};
}

/* What has to go for it goes. */
static int bring_begin(struct q_tree *t, struct tree_node *n, struct q_err *e)
{
    struct q_snap *snap;
    int shared, rc;
    tree_bring_stop(t);
    while (tree_slots(t) >= t->o.max_snaps)
        if (!q_tree_give(t)) return q_fail(e, Q_ELIMIT, "no snapshot is left");
    do {
        const struct tree_node *base = base_of(n);
        shared = base ? base->depth / t->en.page_tokens : 0;
        rc = t->en.make(&t->en, base ? base->snap : NULL, shared, n->depth, &snap, e);
    } while (rc == Q_ELIMIT && q_tree_give(t));
    if (rc) return rc;
    n->host->refs++;
    t->bring = (struct tree_bring){n, n->host, snap, shared, 0};
    return Q_OK;
}

static int bring_bytes(struct q_tree *t, struct q_err *e)
{
    struct tree_bring *b = &t->bring;
    int rc = Q_OK;
    if (b->state < t->en.state_bytes) {
        size_t n = piece_of_state(t, b->state);
        rc = t->en.write_state(&t->en, b->snap, b->state, n, b->host->state + b->state, e);
        b->state += n;
        return rc;
    }
    for (size_t done = 0; !rc && b->page < b->host->n_pages && done < PIECE; done += t->en.page_bytes + 1, b->page++)
        rc = t->en.write_page(&t->en, b->snap, b->page, b->host->page[b->page]->bytes, e);
    return rc;
}

static void bring_done(struct q_tree *t)
{
    struct tree_bring *b = &t->bring;
    b->node->snap = b->snap;
    b->node->brought = b->node->brought ? b->node->brought : Q_TIER_HOST;
    b->snap = NULL;
    t->c.tier[Q_TIER_DEVICE].n++;
    t->c.tier[Q_TIER_DEVICE].put++;
    tree_bring_stop(t);
}

int tree_bring_piece(struct q_tree *t, struct tree_node *n, struct q_err *e)
{
    int rc = t->bring.node == n ? Q_OK : bring_begin(t, n, e);
    if (!rc) rc = bring_bytes(t, e);
    if (rc) tree_bring_stop(t);
    else if (t->bring.state == t->en.state_bytes && t->bring.page == t->bring.host->n_pages) bring_done(t);
    return rc;
}
