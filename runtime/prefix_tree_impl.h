/* What the tree's files share: prefix_tree.c (nodes; finding, getting and putting), prefix_tree_value.c (what a checkpoint is worth, what goes),
 * prefix_tree_host.c (copies in host memory and their making), prefix_tree_disk.c (files and their thread).
 *
 * Invariants: no two children of a node begin with the same id; only the root's run is empty. node->depth is the length of the path
 * with its run, and that of each checkpoint there. A host copy's page is shared by every host copy whose tokens agree up to its end.
 */
#ifndef Q_PREFIX_TREE_IMPL_H
#define Q_PREFIX_TREE_IMPL_H

#include "prefix_tree.h"
#include <pthread.h>

struct tree_page {
    int refs;
    char bytes[];                     /* [page_bytes] */
};

/* A whole checkpoint in host memory. refs: its node's, and the disk thread's. */
struct tree_host {
    int refs, n_pages;
    char *state;                      /* owned */
    struct tree_page **page;          /* owned: [n_pages], each held */
};

/* refs: its node's, and those of files whose first pages it has. Only one that no other builds on may go. */
struct tree_file {
    int refs;
    struct tree_file *base;           /* held, NULL */
    struct q_tree_file f;
};

struct tree_node {
    struct tree_node *parent, *child, *next;   /* first child; next sibling */
    int32_t *ids;                     /* owned: [n] its run */
    int n, depth, n_children;
    int was;                          /* it had a checkpoint, which was given up */
    struct q_snap *snap;              /* owned, NULL */
    struct tree_host *host;           /* held, NULL */
    struct tree_file *file;           /* owned, NULL */
    double cost;                      /* seconds to read all tokens up to here; 0: unknown */
    double used_s;
    enum q_tree_kind kind;
    enum q_tier brought;              /* from where it came to the device, until it was got */
    unsigned hits;
    int no_copy, no_disk;             /* a copy, a file failed, or its file went: not tried again until it is used */
};

/* A copy to the host that is being made. */
struct tree_copy {
    struct tree_node *node;           /* NULL: none */
    struct tree_host *host;           /* owned */
    int page;                         /* pages [0, page) are there */
    size_t state;                     /* bytes of the state that are */
};

/* A host copy on its way to the device. */
struct tree_bring {
    struct tree_node *node;           /* NULL: none */
    struct tree_host *host;           /* held */
    struct q_snap *snap;              /* owned */
    int page;
    size_t state;
};

/* One file being written. Between `busy` and `done` the thread owns all of it. */
struct tree_save {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    int open, busy, done, end;        /* guarded by lock */
    int told, told_small;             /* writing fails, the budget is too small for a checkpoint: said once, until one was written */
    int32_t *ids;                     /* owned: [n] */
    int n, rc;
    struct tree_host *host;           /* held */
    struct tree_file *base;           /* held, NULL */
    struct q_tree_file f;
    struct q_err err;
};

struct q_tree {
    struct q_tree_engine en;
    struct q_tree_opts o;
    struct tree_node root;
    const struct tree_node *got;      /* its snapshot is in use and stays; NULL */
    struct tree_copy copy;
    struct tree_bring bring;
    struct tree_save save;
    double token_s;                   /* of late: seconds that a token takes to be read */
    struct q_tree_counts c;
};

static inline int tree_has(const struct tree_node *n) { return n->snap || n->host || n->file; }
/* The nearest of it and those above it that has a checkpoint; the root where none has. */
static inline const struct tree_node *tree_kept(const struct tree_node *n)
{
    while (n->parent && !tree_has(n)) n = n->parent;
    return n;
}
static inline int tree_pages(const struct q_tree *t, int tokens) { return (tokens + t->en.page_tokens - 1) / t->en.page_tokens; }
static inline int tree_has_disk(const struct q_tree *t) { return t->o.disk && t->o.disk_bytes; }

/* ---- prefix_tree.c ---- */
/* Of all nodes in order, parents first; NULL after the last one. `top` bounds it to a subtree. */
struct tree_node *tree_next(const struct tree_node *at, const struct tree_node *top);
/* The node that ends exactly there, or NULL. */
struct tree_node *tree_exact(const struct q_tree *t, const int32_t *ids, int n);
/* The same, made where it is not there yet; NULL: no memory. */
struct tree_node *tree_insert(struct q_tree *t, const int32_t *ids, int n);
void tree_path_ids(const struct tree_node *n, int32_t *ids);   /* [depth] */
void tree_say(const struct q_tree *t, const struct q_err *e);

/* ---- prefix_tree_value.c ---- */
/* Seconds that are to be expected lost with the checkpoint. */
double tree_loss(const struct q_tree *t, const struct tree_node *n);
size_t tree_tier_bytes(const struct q_tree *t, const struct tree_node *n, enum q_tier tier);
/* Seconds lost a byte when the tier's copy goes; where there is none, of what it would be. */
double tree_worth(const struct q_tree *t, const struct tree_node *n, enum q_tier tier);
/* The copy on a tier that is worth least a byte, or NULL; never `but`. */
struct tree_node *tree_least(const struct q_tree *t, enum q_tier tier, const struct tree_node *but);
/* Bytes on the device: states, and pages that snapshots hold, shared ones once. */
size_t tree_device_bytes(const struct q_tree *t);
void tree_drop(struct q_tree *t, struct tree_node *n, enum q_tier tier);
/* Makes room for the node on the host or on disk from what is worth less a byte than `worth`; 0: there is not enough. */
int tree_room(struct q_tree *t, enum q_tier tier, const struct tree_node *n, double worth);

/* ---- prefix_tree_host.c ---- */
/* A copy whose pages are as far as possible those of relatives; *from: the first page to be filled. NULL: no memory. */
struct tree_host *tree_host_new(struct q_tree *t, const struct tree_node *n, int *from);
void tree_host_drop(struct q_tree *t, struct tree_host *h);
/* Bytes that a new copy of the node would take beside its relatives'. */
size_t tree_host_need(const struct q_tree *t, const struct tree_node *n);
void tree_copy_stop(struct q_tree *t);
/* One piece of a copy, or the choice of the next. 0: there is nothing to do. */
int tree_copy_step(struct q_tree *t, int idle);
/* The whole of it, now. */
int tree_copy_now(struct q_tree *t, struct tree_node *n, struct q_err *e);
/* Back within the budget: copies that were only made to pass through go. */
void tree_trim_host(struct q_tree *t);
/* Snapshots that are taken. */
static inline int tree_slots(const struct q_tree *t) { return t->c.tier[Q_TIER_DEVICE].n + (t->bring.node != NULL); }
/* A piece of the way from the host copy to the device; it is there when n->snap is. Q_ELIMIT: there is no room. */
int tree_bring_piece(struct q_tree *t, struct tree_node *n, struct q_err *e);
void tree_bring_stop(struct q_tree *t);

/* ---- prefix_tree_disk.c ---- */
int tree_disk_open(struct q_tree *t, struct q_err *e);
/* Writes what is not there yet, and ends the thread. */
void tree_disk_close(struct q_tree *t);
/* Takes in a file that was written, begins the next. 0: nothing is under way. */
int tree_disk_step(struct q_tree *t, int idle);
/* What would be worth saving next, and fits; NULL. */
struct tree_node *tree_disk_wish(struct q_tree *t, int idle);
size_t tree_file_need(const struct q_tree *t, const struct tree_node *n);
void tree_file_forget(struct tree_file *f);   /* the file stays */
void tree_file_drop(struct q_tree *t, struct tree_file *f);
/* From the file, and those that it builds on, to the host. */
int tree_from_disk(struct q_tree *t, struct tree_node *n, struct q_err *e);

#endif
