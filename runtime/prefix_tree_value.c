/* What a checkpoint is worth, and what goes first. */
#include "prefix_tree_impl.h"
#include <stdlib.h>
#include <string.h>

/* Seconds after which what was not used is half as likely to be as what was just used. */
static const double FRESH_S = 300;
/* How much less likely the end of an answer is gone on from than a turn of a user's, until it was. */
static const double AT_AN_END = 0.25;
/* What fetching from a lower tier costs of reading again. All four are settings that seemed sensible, and nothing measured. */
static const double FROM_HOST = 0.05, FROM_DISK = 0.2;

static double cost_of(const struct q_tree *t, const struct tree_node *n) { return n->cost > 0 || !n->parent ? n->cost : n->depth * t->token_s; }

double tree_loss(const struct q_tree *t, const struct tree_node *n)
{
    const struct tree_node *kept = tree_kept(n->parent);
    double again = cost_of(t, n) - cost_of(t, kept), age = t->en.seconds() - n->used_s;
    double least = (n->depth - kept->depth) * 1e-9;   /* where no time is known, tokens decide */
    double likely = n->kind == Q_TREE_END && !n->hits ? AT_AN_END : 1.0 + n->hits + (n->n_children > 1 ? n->n_children - 1 : 0);
    return (again > least ? again : least) * likely * FRESH_S / (FRESH_S + (age > 0 ? age : 0));
}

/* What of it is lost when the tier's copy goes; where there is none, of what it would be. */
static double loss_on(const struct q_tree *t, const struct tree_node *n, enum q_tier tier)
{
    int device = n->snap && tier != Q_TIER_DEVICE, host = n->host && tier != Q_TIER_HOST, disk = n->file && tier != Q_TIER_DISK;
    /* A file's use is that it stays when the others go: what lies above it does not count. */
    if (tier == Q_TIER_DISK) device = host = 0;
    return tree_loss(t, n) * (device || host ? FROM_HOST : disk ? FROM_DISK : 1);
}

/* Pages from the nearest snapshot above on; a page that only begins there is a page more, for it will be copied. */
static int device_pages(const struct q_tree *t, const struct tree_node *n)
{
    const struct tree_node *above = n->parent;
    while (above && !above->snap) above = above->parent;
    return tree_pages(t, n->depth) - (above ? above->depth / t->en.page_tokens : 0);
}

/* A snapshot below holds the pages too: only the last one, which that began to write anew, is given back. */
static int pages_given_back(const struct q_tree *t, const struct tree_node *n)
{
    for (const struct tree_node *c = n->child; c; c = tree_next(c, n))
        if (c->snap) return 1;
    return device_pages(t, n);
}

size_t tree_tier_bytes(const struct q_tree *t, const struct tree_node *n, enum q_tier tier)
{
    size_t bytes = t->en.state_bytes + 1;
    if (tier == Q_TIER_DISK) return n->file ? n->file->f.bytes : tree_file_need(t, n);
    if (tier == Q_TIER_DEVICE) return bytes + (size_t)pages_given_back(t, n) * t->en.page_bytes;
    for (int i = 0; n->host && i < n->host->n_pages; i++)
        if (n->host->page[i]->refs == 1) bytes += t->en.page_bytes;
    return bytes;
}

double tree_worth(const struct q_tree *t, const struct tree_node *n, enum q_tier tier)
{
    return loss_on(t, n, tier) / (double)tree_tier_bytes(t, n, tier);
}

size_t tree_device_bytes(const struct q_tree *t)
{
    size_t bytes = 0;
    int seen = 0, n_device = t->c.tier[Q_TIER_DEVICE].n;
    for (const struct tree_node *n = t->root.child; n && seen < n_device; n = tree_next(n, &t->root)) {
        if (!n->snap) continue;
        bytes += t->en.state_bytes + (size_t)device_pages(t, n) * t->en.page_bytes;
        seen++;
    }
    return bytes;
}

static int on(const struct tree_node *n, enum q_tier tier)
{
    return tier == Q_TIER_DEVICE ? n->snap != NULL : tier == Q_TIER_HOST ? n->host != NULL : n->file != NULL;
}

struct tree_node *tree_least(const struct q_tree *t, enum q_tier tier, const struct tree_node *but)
{
    struct tree_node *best = NULL;
    double least = 0;
    int seen = 0;
    for (struct tree_node *n = t->root.child; n && seen < t->c.tier[tier].n; n = tree_next(n, &t->root)) {
        if (!on(n, tier)) continue;
        seen++;
        if (n == but || (tier == Q_TIER_DEVICE && n == t->got) || (tier == Q_TIER_DISK && n->file->refs > 1)) continue;
        double loss = tree_worth(t, n, tier);
        if (!best || loss < least) best = n, least = loss;
    }
    return best;
}

void tree_drop(struct q_tree *t, struct tree_node *n, enum q_tier tier)
{
    if (tier == Q_TIER_DEVICE) {
        if (t->copy.node == n) tree_copy_stop(t);
        n->brought = Q_TIER_NONE;
        t->en.close(n->snap);
        n->snap = NULL;
    } else if (tier == Q_TIER_HOST) {
        if (t->bring.node == n) tree_bring_stop(t);
        tree_host_drop(t, n->host);
        n->host = NULL;
    } else {
        tree_file_drop(t, n->file);
        n->file = NULL;
        n->no_disk = 1;   /* written once for each use, lest two that do not fit together take turns */
    }
    t->c.tier[tier].n--;
    t->c.tier[tier].given++;
    if (tree_has(n)) return;
    n->was = 1;
    t->c.lost++;
}

/* What goes may be what the node would have shared pages with, so its need is asked again after each. */
int tree_room(struct q_tree *t, enum q_tier tier, const struct tree_node *n, double worth)
{
    size_t budget = t->c.tier[tier].budget;
    for (;;) {
        size_t need = tier == Q_TIER_HOST ? tree_host_need(t, n) : tree_file_need(t, n);
        if (t->c.tier[tier].bytes + need <= budget) return 1;
        struct tree_node *least = need <= budget ? tree_least(t, tier, n) : NULL;
        if (!least || tree_worth(t, least, tier) >= worth) return 0;
        tree_drop(t, least, tier);
    }
}
