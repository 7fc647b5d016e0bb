#include "cache.h"
#include "runtime/host_memory.h"
#include "runtime/prefix_tree_files.h"
#include "runtime/xdg.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cache {
    struct q_tree_files *files;      /* owned, NULL: no disk tier */
};

static const size_t MOST_HOST = (size_t)8 << 30;
static const double FLUSH_S = 10;    /* what a service manager grants an ending server is more */

/* What a CPU's KV memory and states have not touched yet is spoken for. */
static size_t host_share(const struct q_engine *en)
{
    size_t planned, taken, available = host_memory_available();
    q_engine_memory(en, &planned, &taken);
    if (q_engine_card(en)->kind == Q_CARD_CPU) available = available > planned ? available - planned : 0;
    return available / 4 < MOST_HOST ? available / 4 : MOST_HOST;
}

static int open_files(struct cache *c, const struct cache_opts *o, struct q_engine *en, const struct q_sched_engine *se, char dir[PATH_MAX],
                      void (*say)(void *, const char *), void *say_arg, struct q_err *e)
{
    int rc = Q_OK;
    if (o->dir) {
        if ((size_t)snprintf(dir, PATH_MAX, "%s", o->dir) >= PATH_MAX) return q_fail(e, Q_ELIMIT, "--cache-dir: the name is too long");
    } else {
        rc = xdg_dir(XDG_CACHE, dir, PATH_MAX - 16, e);
        if (!rc) strcat(dir, "/checkpoints");
    }
    return rc ? rc : q_tree_files_open(&c->files, dir, o->disk_bytes, &se->tree, q_engine_state_id(en), say, say_arg, e);
}

static double mib(size_t bytes) { return (double)bytes / 1048576; }

static void tell(const struct q_sched_engine *se, const char *dir, void (*say)(void *, const char *), void *arg)
{
    char line[PATH_MAX + 200], disk[PATH_MAX + 64] = "";
    const struct q_tree_opts *t = &se->cache;
    if (!say) return;
    if (t->disk) snprintf(disk, sizeof disk, ", %.1f MiB on disk in %s", mib(t->disk_bytes), dir);
    if (!t->max_snaps) snprintf(line, sizeof line, "memory: no checkpoints of prompts are kept");
    else snprintf(line, sizeof line, "memory: checkpoints of prompts: %d on the device, then up to %.1f MiB of host memory%s", t->max_snaps,
                  mib(t->host_bytes), disk);
    say(arg, line);
}

int cache_open(struct cache **out, const struct cache_opts *o, struct q_engine *en, struct q_sched_engine *se,
               void (*say)(void *arg, const char *line), void *say_arg, struct q_err *e)
{
    char dir[PATH_MAX] = "";
    struct cache *c = calloc(1, sizeof *c);
    if (!c) return q_fail(e, Q_EMEM, "no memory for a cache of checkpoints");
    int on = se->cache.max_snaps > 0, rc = on && o->disk_bytes ? open_files(c, o, en, se, dir, say, say_arg, e) : Q_OK;
    if (rc) {
        cache_close(c);
        return rc;
    }
    se->cache.host_bytes = !on ? 0 : o->host_given ? o->host_bytes : host_share(en);
    se->cache.disk_bytes = c->files ? o->disk_bytes : 0;
    se->cache.disk = c->files ? q_tree_files_disk(c->files) : NULL;
    se->cache.flush_s = FLUSH_S;
    se->cache.say = say;
    se->cache.say_arg = say_arg;
    se->mark_every = o->every;
    tell(se, dir, say, say_arg);
    *out = c;
    return Q_OK;
}

void cache_close(struct cache *c)
{
    if (!c) return;
    q_tree_files_close(c->files);
    free(c);
}
