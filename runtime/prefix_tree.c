/* The tree's nodes: finding, getting and putting checkpoints. */
#include "prefix_tree_impl.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Nodes without a checkpoint go, the longest unused first, beyond these. */
enum { MOST_TOKENS = 4 << 20, MOST_EMPTY = 2000 };

const char *q_tier_name(enum q_tier tier)
{
    static const char *const names[Q_TIERS] = {"none", "device", "host", "disk"};
    return names[tier];
}

void tree_say(const struct q_tree *t, const struct q_err *e)
{
    if (t->o.say) t->o.say(t->o.say_arg, e->text);
}

/* ---- nodes ---- */

struct tree_node *tree_next(const struct tree_node *at, const struct tree_node *top)
{
    if (at->child) return at->child;
    while (at != top && !at->next) at = at->parent;
    return at == top ? NULL : at->next;
}

static struct tree_node *child_of(const struct tree_node *n, int32_t id)
{
    struct tree_node *c = n->child;
    while (c && c->ids[0] != id) c = c->next;
    return c;
}

static int common(const int32_t *a, int n_a, const int32_t *b, int n_b)
{
    int i = 0;
    while (i < n_a && i < n_b && a[i] == b[i]) i++;
    return i;
}

struct tree_node *tree_exact(const struct q_tree *t, const int32_t *ids, int n)
{
    const struct tree_node *at = &t->root;
    while (at && at->depth < n) {
        int depth = at->depth;
        at = child_of(at, ids[depth]);
        if (at && common(at->ids, at->n, ids + depth, n - depth) < at->n) at = NULL;
    }
    return (struct tree_node *)at;
}

void tree_path_ids(const struct tree_node *n, int32_t *ids)
{
    for (; n->parent; n = n->parent) memcpy(ids + n->depth - n->n, n->ids, (size_t)n->n * sizeof *ids);
}

static struct tree_node *new_node(const int32_t *ids, int n, int depth)
{
    struct tree_node *node = calloc(1, sizeof *node);
    if (!node || !(node->ids = malloc((size_t)n * sizeof *ids))) {
        free(node);
        return NULL;
    }
    memcpy(node->ids, ids, (size_t)n * sizeof *ids);
    node->n = n;
    node->depth = depth;
    return node;
}

static void link_child(struct tree_node *parent, struct tree_node *c)
{
    c->parent = parent;
    c->next = parent->child;
    parent->child = c;
    parent->n_children++;
}

static void unlink_child(struct tree_node *c)
{
    struct tree_node **at = &c->parent->child;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    c->parent->n_children--;
}

/* Puts a node between `c` and its parent that ends k ids into its run; NULL: no memory, and nothing has changed. */
static struct tree_node *split(struct q_tree *t, struct tree_node *c, int k)
{
    struct tree_node *up = new_node(c->ids, k, c->depth - c->n + k);
    if (!up) return NULL;
    up->used_s = c->used_s;
    unlink_child(c);
    link_child(c->parent, up);
    memmove(c->ids, c->ids + k, (size_t)(c->n - k) * sizeof *c->ids);
    c->n -= k;
    link_child(up, c);
    t->c.nodes++;
    return up;
}

static void remove_leaf(struct q_tree *t, struct tree_node *n)
{
    t->c.nodes--;
    t->c.tokens -= n->n;
    unlink_child(n);
    free(n->ids);
    free(n);
}

/* Memories of what was given up are bounded. */
static void prune(struct q_tree *t, const struct tree_node *but)
{
    int most = MOST_EMPTY;
    for (int i = Q_TIER_DEVICE; i < Q_TIERS; i++) most += 2 * t->c.tier[i].n;   /* each with a fork above it */
    while (t->c.tokens > MOST_TOKENS || t->c.nodes > most) {
        struct tree_node *oldest = NULL;
        for (struct tree_node *n = t->root.child; n; n = tree_next(n, &t->root))
            if (!n->child && !tree_has(n) && n != but && (!oldest || n->used_s < oldest->used_s)) oldest = n;
        if (!oldest) return;
        remove_leaf(t, oldest);
    }
}

struct tree_node *tree_insert(struct q_tree *t, const int32_t *ids, int n)
{
    struct tree_node *at = &t->root, *c;
    while (at->depth < n && (c = child_of(at, ids[at->depth]))) {
        int same = common(c->ids, c->n, ids + at->depth, n - at->depth);
        at = same < c->n ? split(t, c, same) : c;
        if (!at) return NULL;
    }
    if (at->depth == n) return at;
    if (!(c = new_node(ids + at->depth, n - at->depth, n))) return NULL;
    link_child(at, c);
    t->c.nodes++;
    t->c.tokens += c->n;
    prune(t, c);
    return c;
}

/* ---- finding ---- */

static enum q_tier tier_of(const struct tree_node *n)
{
    return n->snap ? Q_TIER_DEVICE : n->host ? Q_TIER_HOST : n->file ? Q_TIER_DISK : Q_TIER_NONE;
}

static struct tree_node *find(const struct q_tree *t, const int32_t *ids, int n, struct q_tree_found *f)
{
    const struct tree_node *at = &t->root, *best = NULL;
    *f = (struct q_tree_found){.other = -1, .any = t->root.child != NULL};
    while (at->depth < n) {
        const struct tree_node *c = child_of(at, ids[at->depth]);
        int same = c ? common(c->ids, c->n, ids + at->depth, n - at->depth) : 0;
        f->shared = at->depth + same;
        f->other = c && same < c->n ? c->ids[same] : c || !at->child ? -1 : at->child->ids[0];
        if (!c || same < c->n) break;
        at = c;
        if (tree_has(at)) best = at;
        else if (at->was) f->gone = at->depth;
    }
    if (f->shared == n) f->other = -1;
    if (best) {
        f->n = best->depth;
        f->tier = tier_of(best);
    }
    return (struct tree_node *)best;
}

struct q_tree_found q_tree_find(const struct q_tree *t, const int32_t *ids, int n)
{
    struct q_tree_found f;
    find(t, ids, n, &f);
    return f;
}

/* Whatever tier it lies on: to the device, as far as `seconds` reach; it is there when n->snap is. */
static int bring(struct q_tree *t, struct tree_node *n, double seconds, struct q_err *e)
{
    double begin = t->en.seconds(), now = begin;
    int rc = Q_OK;
    if (!n->snap && !n->host) {
        rc = tree_from_disk(t, n, e);
        n->brought = rc ? Q_TIER_NONE : Q_TIER_DISK;
    }
    for (; !rc && !n->snap && now - begin <= seconds; now = t->en.seconds()) rc = tree_bring_piece(t, n, e);
    if (n->snap || rc) tree_trim_host(t);   /* on its way it keeps its place on the host, whatever the budget */
    t->c.move_s += t->en.seconds() - begin;
    return rc;
}

int q_tree_bring(struct q_tree *t, const int32_t *ids, int n, double seconds)
{
    struct q_tree_found f;
    struct q_err e;
    struct tree_node *at = find(t, ids, n, &f);
    if (!at || at->snap || bring(t, at, seconds, &e)) return 0;
    return !at->snap;
}

static void used(struct q_tree *t, struct tree_node *n, enum q_tier tier)
{
    n->hits++;
    n->no_copy = n->no_disk = 0;
    n->used_s = t->en.seconds();
    t->c.tier[tier].got++;
}

int q_tree_get(struct q_tree *t, const int32_t *ids, int n, const struct q_snap **snap, struct q_tree_found *found, struct q_err *e)
{
    struct tree_node *at = find(t, ids, n, found);
    *snap = NULL;
    t->got = NULL;
    while (at && at->parent) {
        enum q_tier tier = tier_of(at);
        int rc = tier ? bring(t, at, INFINITY, e) : Q_ELIMIT;
        if (!rc && at->brought) tier = at->brought;
        at->brought = Q_TIER_NONE;
        if (!rc && t->en.length(at->snap) != at->depth)
            return q_fail(e, Q_EINTERNAL, "a checkpoint of %d tokens holds %d", at->depth, t->en.length(at->snap));
        found->n = rc ? 0 : at->depth;
        found->tier = rc ? Q_TIER_NONE : tier;
        if (!rc) {
            t->got = at;
            used(t, at, tier);
            *snap = at->snap;
            return Q_OK;
        }
        if (rc == Q_EINTERNAL) return rc;
        at = at->parent;
    }
    return Q_OK;
}

void q_tree_done(struct q_tree *t) { t->got = NULL; }

/* ---- putting ---- */

/* A candidate, as if it were there: for its worth. */
static struct tree_node candidate(const struct q_tree *t, const struct tree_node *above, int depth, enum q_tree_kind kind)
{
    const struct tree_node *kept = tree_kept(above);
    return (struct tree_node){.parent = (struct tree_node *)above, .n = depth - above->depth, .depth = depth, .kind = kind, .used_s = t->en.seconds(),
                              .cost = kept->cost + (depth - kept->depth) * t->token_s};
}

/* The deepest node that ids[0, n) pass. */
static const struct tree_node *above(const struct q_tree *t, const int32_t *ids, int n)
{
    const struct tree_node *at = &t->root;
    for (const struct tree_node *c; at->depth < n && (c = child_of(at, ids[at->depth])); at = c)
        if (c->depth > n || common(c->ids, c->n, ids + at->depth, n - at->depth) < c->n) break;
    return at;
}

/* What goes may be what the new one would have shared pages with, so this is asked again after it. */
static int over_device_bytes(const struct q_tree *t, const struct tree_node *new, int reserved)
{
    if (t->o.device_bytes == SIZE_MAX) return 0;
    return tree_device_bytes(t) + tree_tier_bytes(t, new, Q_TIER_DEVICE) * (size_t)(reserved + 1) > t->o.device_bytes;
}

int q_tree_room(struct q_tree *t, const int32_t *ids, int n, enum q_tree_kind kind, int reserved)
{
    const struct tree_node *at = above(t, ids, n);
    if (!t->o.max_snaps || reserved >= t->o.max_snaps || !n || (at->depth == n && at->snap)) return 0;
    struct tree_node new = candidate(t, at->depth == n ? at->parent : at, n, kind);
    double worth = tree_worth(t, &new, Q_TIER_DEVICE);
    while (tree_slots(t) + reserved >= t->o.max_snaps || over_device_bytes(t, &new, reserved)) {
        struct tree_node *least = tree_least(t, Q_TIER_DEVICE, NULL);
        if (!least) return 0;
        if (kind != Q_TREE_MUST && tree_worth(t, least, Q_TIER_DEVICE) >= worth) return 0;
        tree_drop(t, least, Q_TIER_DEVICE);
    }
    return 1;
}

int q_tree_put(struct q_tree *t, const int32_t *ids, int n, enum q_tree_kind kind, struct q_snap *snap, double token_s, struct q_err *e)
{
    int length = t->en.length(snap);
    struct tree_node *at = length == n ? tree_insert(t, ids, n) : NULL;
    if (!at || at->snap) {
        t->en.close(snap);
        return length == n ? Q_OK : q_fail(e, Q_EINTERNAL, "a checkpoint of %d tokens holds %d", n, length);
    }
    if (token_s > 0) t->token_s = t->token_s > 0 ? 0.7 * t->token_s + 0.3 * token_s : token_s;
    const struct tree_node *kept = tree_kept(at->parent);
    at->cost = kept->cost + (n - kept->depth) * token_s;
    at->snap = snap;
    at->was = 0;
    at->kind = kind;
    at->used_s = t->en.seconds();
    t->c.tier[Q_TIER_DEVICE].n++;
    t->c.tier[Q_TIER_DEVICE].put++;
    return Q_OK;
}

int q_tree_give(struct q_tree *t)
{
    struct tree_node *least = tree_least(t, Q_TIER_DEVICE, NULL);
    if (least) tree_drop(t, least, Q_TIER_DEVICE);
    else if (!t->bring.node) return 0;
    else tree_bring_stop(t);
    return 1;
}

double q_tree_give_age(const struct q_tree *t)
{
    const struct tree_node *least = tree_least(t, Q_TIER_DEVICE, NULL);
    return least ? least->used_s : 0;
}

/* ---- the rest ---- */

int q_tree_open(struct q_tree **out, const struct q_tree_engine *en, const struct q_tree_opts *o, struct q_err *e)
{
    struct q_tree *t = calloc(1, sizeof *t);
    if (!t) return q_fail(e, Q_EMEM, "no memory for a prefix tree");
    t->en = *en;
    t->o = *o;
    if (!o->max_snaps) t->o.host_bytes = t->o.disk_bytes = 0;   /* they are reached through the device */
    t->c.tier[Q_TIER_DEVICE].budget = o->max_snaps ? o->device_bytes : 0;
    t->c.tier[Q_TIER_HOST].budget = t->o.host_bytes;
    t->c.tier[Q_TIER_DISK].budget = tree_has_disk(t) ? t->o.disk_bytes : 0;
    int rc = tree_has_disk(t) ? tree_disk_open(t, e) : Q_OK;
    if (rc) q_tree_close(t);
    else *out = t;
    return rc;
}

void q_tree_close(struct q_tree *t)
{
    if (!t) return;
    if (t->save.open) tree_disk_close(t);
    tree_copy_stop(t);
    tree_bring_stop(t);
    for (struct tree_node *n = t->root.child; n; n = tree_next(n, &t->root)) {
        if (n->snap) t->en.close(n->snap);
        if (n->host) tree_host_drop(t, n->host);
        if (n->file) tree_file_forget(n->file);
    }
    while (t->root.child) {
        struct tree_node *n = t->root.child;
        while (n->child) n = n->child;
        remove_leaf(t, n);
    }
    free(t);
}

int q_tree_work(struct q_tree *t, double seconds, int idle)
{
    double begin = t->en.seconds(), now = begin;
    int more = 1;
    for (; more && now - begin <= seconds; now = t->en.seconds()) more = tree_copy_step(t, idle);
    t->c.move_s += now - begin;
    return tree_has_disk(t) ? tree_disk_step(t, idle) || more : more;
}

struct q_tree_counts q_tree_counts(const struct q_tree *t)
{
    struct q_tree_counts c = t->c;
    c.tier[Q_TIER_DEVICE].bytes = tree_device_bytes(t);
    return c;
}
