/* Split sets: PREFIX-00001-of-00003.gguf and so on. Any file of a set opens all of it, or the line says what is missing
 * or disagrees. Keys: split.no (from 0), split.count, split.tensors.count (over all files); file names count from 1. */
#include "gguf_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SUFFIX = sizeof "-00001-of-00003.gguf" - 1 };

/* Reads the two numbers of a name that follows the pattern; 0 if it does not. */
static int parse_name(const char *path, int *no, int *count)
{
    size_t n = strlen(path);
    if (n < SUFFIX) return 0;
    const char *p = path + n - SUFFIX;
    if (p[0] != '-' || memcmp(p + 6, "-of-", 4) || strcmp(p + 15, ".gguf")) return 0;
    if (strspn(p + 1, "0123456789") != 5 || strspn(p + 10, "0123456789") != 5) return 0;
    *no = atoi(p + 1);
    *count = atoi(p + 10);
    return 1;
}

/* The path of file `i` (from 0) of the set that `path` belongs to. NULL: out of memory. */
static char *name_of(const char *path, int i, int count)
{
    size_t n = strlen(path) + 1;
    char *s = malloc(n + 16);
    if (s) snprintf(s, n + 16, "%.*s-%05d-of-%05d.gguf", (int)(n - 1 - SUFFIX), path, i + 1, count);
    return s;
}

/* split.* of one file; absent keys are 0 of 1 and -1. */
struct place {
    int64_t no, count, tensors;
};

static int read_place(const struct gguf_shard *s, struct place *p, struct q_err *e)
{
    static const char *const keys[] = { "split.no", "split.count", "split.tensors.count" };
    int64_t v[3] = { 0, 1, -1 };
    for (int i = 0; i < 3; i++) {
        const struct gguf_kv *kv = gguf_shard_find(s, keys[i]);
        if (kv && (!gguf_kv_int(kv, v + i) || v[i] < 0))
            return q_fail(e, Q_EINPUT, "%s: key '%s': expected a non-negative integer, found %s", s->path, keys[i],
                          gguf_is_int(kv->type) ? "a negative one" : gguf_type_name(kv->type));
    }
    *p = (struct place){ v[0], v[1], v[2] };
    if (p->count == 0) p->count = 1;
    if (p->count > GGUF_MAX_SHARDS || p->no >= p->count)
        return q_fail(e, Q_EINPUT, "%s: split.no %lld of split.count %lld makes no sense", s->path, (long long)p->no,
                      (long long)p->count);
    return Q_OK;
}

int gguf_is_split(const struct gguf_shard *s)
{
    struct place p;
    return read_place(s, &p, NULL) || p.count > 1;
}

/* What the keys say and what the name says must be one story, or the other files cannot be found by name. */
static int check_name(const char *path, const struct place *p, struct q_err *e)
{
    int no, count;
    if (!parse_name(path, &no, &count))
        return q_fail(e, Q_EINPUT, "%s: is file %lld of a set of %lld (split.no, split.count), but its name does not end in "
                      "-%05lld-of-%05lld.gguf, so the others cannot be found", path, (long long)p->no + 1,
                      (long long)p->count, (long long)p->no + 1, (long long)p->count);
    if (no != p->no + 1 || count != p->count)
        return q_fail(e, Q_EINPUT, "%s: its name says file %d of %d, but it holds split.no %lld (file %lld) and split.count "
                      "%lld", path, no, count, (long long)p->no, (long long)p->no + 1, (long long)p->count);
    return Q_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Lists every file of the set that is not there, in one line. */
static int check_present(const char *path, int count, struct q_err *e)
{
    char list[600] = "";
    int missing = 0;
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        char *name = name_of(path, i, count);
        if (!name) return q_fail(e, Q_EMEM, "%s: out of memory", path);
        if (access(name, F_OK)) {
            int n = snprintf(list + used, sizeof list - used, "%s%s", missing ? ", " : "", base_name(name));
            if (n > 0 && used + (size_t)n < sizeof list - 4)
                used += (size_t)n;
            else
                strcpy(list + used, missing && used ? "..." : "");
            missing++;
        }
        free(name);
    }
    if (!missing) return Q_OK;
    return q_fail(e, Q_EMISS, "%s: %d of the %d files of its set %s missing: %s", path, missing, count,
                  missing == 1 ? "is" : "are", list);
}

static int check_member(const struct gguf_shard *first, const struct gguf_shard *s, int i, struct q_err *e)
{
    struct place a, b;
    int rc = read_place(first, &a, e);
    if (!rc) rc = read_place(s, &b, e);
    if (!rc) rc = check_name(s->path, &b, e);
    if (rc) return rc;
    if (b.no != i || b.count != a.count || b.tensors != a.tensors)
        return q_fail(e, Q_EINPUT, "%s: split.no %lld, split.count %lld, split.tensors.count %lld; expected %d, %lld, %lld as in %s",
                      s->path, (long long)b.no, (long long)b.count, (long long)b.tensors, i, (long long)a.count,
                      (long long)a.tensors, base_name(first->path));
    return Q_OK;
}

static int check_total(const struct gguf *g, int64_t expected, struct q_err *e)
{
    int64_t n = 0;
    for (int i = 0; i < g->n_shards; i++) n += g->shard[i].n_tensors;
    if (expected >= 0 && n != expected)
        return q_fail(e, Q_EINPUT, "%s: key 'split.tensors.count' is %lld, but the %d files hold %lld tensors", g->path,
                      (long long)expected, g->n_shards, (long long)n);
    return n <= GGUF_MAX_TENSORS ? Q_OK : q_fail(e, Q_ELIMIT, "%s: %lld tensors; this version reads up to %d", g->path,
                                                 (long long)n, GGUF_MAX_TENSORS);
}

/* Opens file i of the set into g->shard[i]; the one that was given is there already. */
static int open_member(struct gguf *g, int i, int count, struct q_err *e)
{
    struct gguf_shard *s = g->shard + i;
    if (s->map) return Q_OK;
    char *name = name_of(g->path, i, count);
    if (!name) return q_fail(e, Q_EMEM, "%s: out of memory", g->path);
    int rc = gguf_map(s, name, e);
    if (!rc) rc = gguf_parse(s, e);
    free(name);
    return rc;
}

/* Makes room for `count` files and puts the given one at its place. */
static int make_room(struct gguf *g, const struct place *p, struct q_err *e)
{
    struct gguf_shard *all = calloc((size_t)p->count, sizeof *all);
    if (!all) return q_fail(e, Q_EMEM, "%s: out of memory", g->path);
    all[p->no] = g->shard[0];
    free(g->shard);
    g->shard = all;
    g->n_shards = (int)p->count;
    return Q_OK;
}

int gguf_open_set(struct gguf *g, struct q_err *e)
{
    struct place p;
    int rc = read_place(g->shard, &p, e);
    if (rc || p.count == 1) return rc ? rc : check_total(g, p.tensors, e);
    rc = check_name(g->path, &p, e);
    if (!rc) rc = check_present(g->path, (int)p.count, e);
    if (!rc) rc = make_room(g, &p, e);
    for (int i = 0; i < g->n_shards && !rc; i++) rc = open_member(g, i, (int)p.count, e);
    for (int i = 0; i < g->n_shards && !rc; i++) rc = check_member(g->shard, g->shard + i, i, e);
    return rc ? rc : check_total(g, p.tensors, e);
}
