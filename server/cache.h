/* What the server keeps of prompts that it has read: budgets of the prefix tree's tiers (runtime/prefix_tree.h), from options and the machine. */
#ifndef S_CACHE_H
#define S_CACHE_H

#include "runtime/scheduler.h"

struct cache_opts {
    size_t host_bytes, disk_bytes;
    int host_given;                  /* else a share of the memory that is free: a quarter, at most 8 GiB */
    const char *dir;                 /* of the disk tier; NULL: the user's cache directory */
    int every;                       /* tokens of a long prompt between checkpoints */
};

struct cache;
/* Fills se->cache and tells the budgets. en has been opened. */
int cache_open(struct cache **c, const struct cache_opts *o, struct q_engine *en, struct q_sched_engine *se, void (*say)(void *arg, const char *line),
               void *say_arg, struct q_err *e);
/* After the scheduler was closed. */
void cache_close(struct cache *c);

#endif
