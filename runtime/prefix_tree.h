/* What has been read before: checkpoints of sequences in a radix tree over their tokens, on the device, in host memory and on disk.
 *
 * A recurrent state cannot be rewound, so a prompt goes on from a place where the state was kept, or is read from its start. The tree is the one
 * holder of such places. A node is a run of tokens; a checkpoint hangs at a node's end and may lie on up to three tiers: on the device (a
 * q_snap: a state slot, and KV pages shared with sequences and other snapshots), in host memory (the state, and page by page, shared among
 * checkpoints whose tokens agree), on disk (a file, which survives the program). Nodes without a checkpoint stay for a while, to tell a prompt
 * that was never seen from one that was given up.
 *
 * Promises:
 *  - A budget a tier, in bytes; 0 is none at all. What goes first is what costs least to lose: seconds to read it again from the nearest kept
 *    ancestor, as they were measured, times how likely it is wanted (hits, branches, recency), a byte, and a small part of that
 *    where a lower tier has it too.
 *  - Nothing waits long for a move: device copies to the host are made ahead, in pieces, by q_tree_work between steps, and come back in pieces
 *    (q_tree_bring) where others are at work; files are written by a thread of its own, and read at once. A checkpoint that must go before it
 *    was copied is lost, and counted.
 *  - A file that cannot be read, or is of something else, is a miss with one line, never a failure.
 *  - State and KV are of the same length: a snapshot that does not have its node's length is refused as an internal error.
 *
 * It knows no engine, no file format and no clock but its tables' (struct q_tree_engine, struct q_tree_disk). One thread at a time.
 * Keys are 32-bit ids below one root: tokens, later hashes of images. That all of it belongs to one model, one pair of KV formats and one
 * numerics is its owner's to see to: an engine has a tree of its own, and a disk table gives files of its state id alone.
 */
#ifndef Q_PREFIX_TREE_H
#define Q_PREFIX_TREE_H

#include "err.h"
#include <stddef.h>
#include <stdint.h>

struct q_engine;
struct q_snap;

enum q_tier { Q_TIER_NONE, Q_TIER_DEVICE, Q_TIER_HOST, Q_TIER_DISK, Q_TIERS };

/* The engine as a tree sees it. Page i of a snapshot holds tokens [i * page_tokens, (i + 1) * page_tokens). */
struct q_tree_engine {
    struct q_engine *engine;
    int page_tokens;
    size_t state_bytes, page_bytes;   /* of a state and of a KV page, over all layers, on the device and as they are copied */
    int (*length)(const struct q_snap *s);
    void (*close)(struct q_snap *s);
    /* Bytes [at, at + n) of the state; a page. */
    int (*read_state)(const struct q_tree_engine *en, const struct q_snap *s, size_t at, size_t n, void *to, struct q_err *e);
    int (*read_page)(const struct q_tree_engine *en, const struct q_snap *s, int page, void *to, struct q_err *e);
    int (*write_state)(const struct q_tree_engine *en, struct q_snap *s, size_t at, size_t n, const void *from, struct q_err *e);
    int (*write_page)(const struct q_tree_engine *en, struct q_snap *s, int page, const void *from, struct q_err *e);
    /* A snapshot of `length` tokens, still to be written: its first `shared` pages are those of `base` (0: base may be NULL). Q_ELIMIT: no
     * snapshot or no KV page is left. */
    int (*make)(const struct q_tree_engine *en, const struct q_snap *base, int shared, int length, struct q_snap **out, struct q_err *e);
    double (*seconds)(void);
};
/* That of a real engine. */
struct q_tree_engine q_tree_engine_of(struct q_engine *en);

/* Checkpoints on disk, each with its state and its pages from `shared` on; those before are in the file of a beginning of it. `save` runs on a
 * thread of the tree's, one at a time; the others on the caller's, also meanwhile. */
enum { Q_TREE_NAME = 96 };
struct q_tree_file {
    char name[Q_TREE_NAME];
    int shared;                       /* pages */
    size_t bytes;                     /* of the file */
    double age_s;                     /* since its last use */
};
struct q_tree_disk {
    void *arg;
    size_t file_bytes;                /* of a file, beside ids, state and pages */
    /* Writes one file, all or nothing: f's name and bytes. page: [ceil(n / page_tokens)], from f->shared on. */
    int (*save)(void *arg, const int32_t *ids, int n, const void *state, const void *const *page, struct q_tree_file *f, struct q_err *e);
    /* To memory of the caller's; a page that is NULL is not wanted. Other ids are refused. */
    int (*load)(void *arg, const struct q_tree_file *f, const int32_t *ids, int n, void *state, void *const *page, struct q_err *e);
    void (*drop)(void *arg, const char *name);
    void (*touch)(void *arg, const char *name);   /* it is used now */
    /* The files there are, shorter ones first. */
    int (*list)(void *arg, void (*file)(void *to, const int32_t *ids, int n, const struct q_tree_file *f), void *to, struct q_err *e);
};

struct q_tree_opts {
    int max_snaps;                    /* on the device */
    size_t device_bytes;              /* of states and of pages that snapshots hold; SIZE_MAX: as max_snaps and the pool allow */
    size_t host_bytes, disk_bytes;
    const struct q_tree_disk *disk;   /* borrowed; NULL: none */
    double flush_s;                   /* closing writes to disk what is not there yet, this long at most */
    void (*say)(void *arg, const char *line);   /* what went wrong on disk; may be NULL */
    void *say_arg;
};

struct q_tree;
int q_tree_open(struct q_tree **t, const struct q_tree_engine *en, const struct q_tree_opts *o, struct q_err *e);
void q_tree_close(struct q_tree *t);

struct q_tree_found {
    int n;                            /* tokens that the deepest checkpoint among the prompt's beginnings holds, 0: there is none */
    enum q_tier tier;                 /* where it lies */
    int shared;                       /* tokens in common with anything remembered, at least n */
    int gone;                         /* tokens that a checkpoint given up held, 0 */
    int32_t other;                    /* the token remembered where the prompt has ids[shared]; -1: nothing goes on there */
    int any;                          /* something is remembered */
};
/* Of ids[0, n). Nothing moves. */
struct q_tree_found q_tree_find(const struct q_tree *t, const int32_t *ids, int n);
/* As it finds, brought to the device: *snap stays the tree's and is good until q_tree_done. NULL and Q_OK: there is none, or no room for
 * it. found->n and ->tier are of what was got. */
int q_tree_get(struct q_tree *t, const int32_t *ids, int n, const struct q_snap **snap, struct q_tree_found *found, struct q_err *e);
void q_tree_done(struct q_tree *t);
/* What q_tree_get would bring to the device from the host, in pieces: for about `seconds`. 0: it is there, or there is nothing to bring. */
int q_tree_bring(struct q_tree *t, const int32_t *ids, int n, double seconds);

enum q_tree_kind {
    Q_TREE_END,                       /* of an answer: a template that writes it in another way will not come back to it */
    Q_TREE_MARK,                      /* where a later prompt may well leave this one */
    Q_TREE_MUST                       /* the same, and kept whatever has to go for it */
};
/* May a snapshot of ids[0, n) be taken? Makes room for one more than `reserved`, if what must go is worth less. 0: it is there already, or
 * there is no room. */
int q_tree_room(struct q_tree *t, const int32_t *ids, int n, enum q_tree_kind kind, int reserved);
/* The snapshot becomes the tree's; token_s: seconds that a token took to be read. An error is internal: lengths differ. */
int q_tree_put(struct q_tree *t, const int32_t *ids, int n, enum q_tree_kind kind, struct q_snap *snap, double token_s, struct q_err *e);
/* Gives KV pages back: the least valuable checkpoint leaves the device. 0: none is there. */
int q_tree_give(struct q_tree *t);
/* When that one was used last, by the engine's clock; 0: there is none. */
double q_tree_give_age(const struct q_tree *t);

/* Moves for about `seconds`; idle: nobody waits, so that copies are made ahead of need. 0: there is nothing left to do now. */
int q_tree_work(struct q_tree *t, double seconds, int idle);

struct q_tree_tier_counts {
    int n;                            /* checkpoints, those on higher tiers too included */
    size_t bytes, budget;             /* budget SIZE_MAX: no other than slots and pages */
    unsigned long long got, put, given;   /* re-used from there; brought there; gone from there */
};
struct q_tree_counts {
    struct q_tree_tier_counts tier[Q_TIERS];
    int nodes;
    long long tokens;                 /* in nodes */
    unsigned long long lost;          /* checkpoints given up altogether */
    double move_s;                    /* seconds spent on copies from the device and to it */
};
struct q_tree_counts q_tree_counts(const struct q_tree *t);
/* "device", "host", "disk" */
const char *q_tier_name(enum q_tier tier);

#endif
