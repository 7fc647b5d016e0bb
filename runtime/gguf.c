/* The GGUF reader's public face: opening and closing a set, and finding keys and tensors by name.
 * Names are sorted once, which makes look-up fast and duplicates neighbours; nothing here is quadratic. */
#include "gguf_impl.h"
#include "plain.h"
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- strings --- */

static int compare(struct gguf_str a, struct gguf_str b)
{
    int d = memcmp(a.s, b.s, a.n < b.n ? a.n : b.n);
    return d ? d : (a.n > b.n) - (a.n < b.n);
}

/* Length of the valid UTF-8 character at p (of n bytes), 0 if it is none. No surrogates, no overlong forms. */
static size_t utf8_len(const unsigned char *p, size_t n)
{
    if (p[0] < 0x80) return 1;
    size_t len = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || n < len) return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F)) return 0;
    if ((p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F)) return 0;
    return len;
}

int gguf_valid_utf8(struct gguf_str s)
{
    const unsigned char *p = (const unsigned char *)s.s;
    for (size_t i = 0, len; i < s.n; i += len)
        if (!(len = utf8_len(p + i, s.n - i))) return 0;
    return 1;
}

char *gguf_str_copy(char *dst, size_t size, struct gguf_str s)
{
    const unsigned char *p = (const unsigned char *)s.s;
    size_t used = 0;
    for (size_t i = 0; i < s.n;) {
        size_t len = utf8_len(p + i, s.n - i);
        int bad = !len || plain_control(s.s + i, s.n - i);
        if (used + (bad ? 1 : len) >= size) break;
        if (bad) dst[used] = '?';
        else memcpy(dst + used, p + i, len);
        used += bad ? 1 : len;
        i += len ? len : 1;
    }
    dst[used] = 0;
    return dst;
}

/* --- order --- */

static int cmp_key(const void *a, const void *b)
{
    return compare((*(const struct gguf_kv *const *)a)->key, (*(const struct gguf_kv *const *)b)->key);
}

static int cmp_name(const void *a, const void *b)
{
    return compare((*(const struct gguf_tensor *const *)a)->name, (*(const struct gguf_tensor *const *)b)->name);
}

static const struct gguf_kv *find_key(const struct gguf *g, struct gguf_str key)
{
    struct gguf_kv want = { .key = key };
    const struct gguf_kv *p = &want, *const *hit;
    hit = bsearch(&p, g->by_key, (size_t)g->shard[0].n_kv, sizeof *g->by_key, cmp_key);
    return hit ? *hit : NULL;
}

/* The keys of one file in order, with no two alike. *sorted is owned by the caller, also on failure. */
static int sort_keys(const struct gguf_shard *s, const struct gguf_kv ***sorted, struct q_err *e)
{
    const struct gguf_kv **kv = *sorted = malloc(((size_t)s->n_kv + 1) * sizeof *kv);
    if (!kv) return q_fail(e, Q_EMEM, "%s: out of memory", s->path);
    for (int i = 0; i < s->n_kv; i++) kv[i] = s->kv + i;
    qsort(kv, (size_t)s->n_kv, sizeof *kv, cmp_key);
    for (int i = 1; i < s->n_kv; i++)
        if (!compare(kv[i - 1]->key, kv[i]->key))
            return q_fail(e, Q_EINPUT, "%s: key '%s' occurs twice", s->path, GGUF_SHOW(kv[i]->key));
    return Q_OK;
}

/* A key that a later file of a set repeats must say what the first says; only its own place and layout may differ. */
static int check_keys_agree(const struct gguf *g, const struct gguf_shard *s, struct q_err *e)
{
    for (int i = 0; i < s->n_kv; i++) {
        const struct gguf_kv *b = s->kv + i, *a = find_key(g, b->key);
        if (!a || gguf_str_eq(b->key, "split.no") || gguf_str_eq(b->key, "general.alignment")) continue;
        if (a->type == b->type && a->elem == b->elem && a->bytes == b->bytes && !memcmp(a->data, b->data, a->bytes))
            continue;
        return q_fail(e, Q_EINPUT, "%s: disagrees with %s on key '%s': files of different models or downloads", s->path,
                      g->shard[0].path, GGUF_SHOW(b->key));
    }
    return Q_OK;
}

static int check_keys(struct gguf *g, struct q_err *e)
{
    int rc = sort_keys(g->shard, &g->by_key, e);
    for (int i = 1; i < g->n_shards && !rc; i++) {
        const struct gguf_kv **sorted;
        rc = sort_keys(g->shard + i, &sorted, e);
        if (!rc) rc = check_keys_agree(g, g->shard + i, e);
        free(sorted);
    }
    return rc;
}

static int sort_tensors(struct gguf *g, struct q_err *e)
{
    int n = 0;
    for (int i = 0; i < g->n_shards; i++) n += g->shard[i].n_tensors;
    g->by_name = malloc(((size_t)n + 1) * sizeof *g->by_name);
    if (!g->by_name) return q_fail(e, Q_EMEM, "%s: out of memory", g->path);
    for (int i = 0; i < g->n_shards; i++)
        for (int k = 0; k < g->shard[i].n_tensors; k++) {
            g->shard[i].tensor[k].shard = (short)i;
            g->by_name[g->n_tensors++] = g->shard[i].tensor + k;
        }
    qsort(g->by_name, (size_t)n, sizeof *g->by_name, cmp_name);
    for (int i = 1; i < n; i++)
        if (!compare(g->by_name[i - 1]->name, g->by_name[i]->name))
            return q_fail(e, Q_EINPUT, "%s: tensor '%s' occurs twice%s", g->path, GGUF_SHOW(g->by_name[i]->name),
                          g->by_name[i - 1]->shard != g->by_name[i]->shard ? ", in different files of the set" : "");
    return Q_OK;
}

/* --- open, close --- */

static void close_shard(struct gguf_shard *s)
{
    gguf_unmap(s);
    free(s->path);
    free(s->kv);
    free(s->tensor);
}

void gguf_close(struct gguf *g)
{
    if (!g) return;
    for (int i = 0; i < g->n_shards; i++) close_shard(g->shard + i);
    free(g->shard);
    free(g->by_key);
    free(g->by_name);
    free(g->path);
    free(g);
}

/* A `gguf` of one empty shard. */
static struct gguf *make(const char *path)
{
    struct gguf *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->path = strdup(path);
    g->shard = calloc(1, sizeof *g->shard);
    g->n_shards = g->shard != NULL;
    if (g->path && g->shard) return g;
    gguf_close(g);
    return NULL;
}

static int finish(struct gguf **out, struct gguf *g, int rc, struct q_err *e)
{
    if (!rc) rc = check_keys(g, e);
    if (!rc) rc = sort_tensors(g, e);
    if (rc) gguf_close(g);
    *out = rc ? NULL : g;
    return rc;
}

int gguf_open(struct gguf **out, const char *path, struct q_err *e)
{
    *out = NULL;
    struct gguf *g = make(path);
    if (!g) return q_fail(e, Q_EMEM, "%s: out of memory", path);
    int rc = gguf_map(g->shard, path, e);
    if (!rc) rc = gguf_parse(g->shard, e);
    if (!rc) rc = gguf_open_set(g, e);
    return finish(out, g, rc, e);
}

int gguf_open_memory(struct gguf **out, const void *data, size_t n, const char *name, struct q_err *e)
{
    *out = NULL;
    struct gguf *g = make(name);
    if (!g || !(g->shard->path = strdup(name))) {
        gguf_close(g);
        return q_fail(e, Q_EMEM, "%s: out of memory", name);
    }
    g->shard->map = data;
    g->shard->size = n;
    int rc = gguf_parse(g->shard, e);
    if (!rc && gguf_is_split(g->shard))
        rc = q_fail(e, Q_EINPUT, "%s: one file of a split set: the set is opened by path", name);
    return finish(out, g, rc, e);
}

/* --- accessors --- */

const char *gguf_path(const struct gguf *g) { return g->path; }
const char *gguf_shard_path(const struct gguf *g, int shard) { return g->shard[shard].path; }
int gguf_n_shards(const struct gguf *g) { return g->n_shards; }
uint32_t gguf_version(const struct gguf *g) { return g->shard[0].version; }
uint64_t gguf_alignment(const struct gguf *g, int shard) { return g->shard[shard].alignment; }

size_t gguf_file_bytes(const struct gguf *g)
{
    size_t n = 0;
    for (int i = 0; i < g->n_shards; i++) n += g->shard[i].size;
    return n;
}

size_t gguf_header_bytes(const struct gguf *g)
{
    size_t n = 0;
    for (int i = 0; i < g->n_shards; i++) n += g->shard[i].header;
    return n;
}

void gguf_header_hash(const struct gguf *g, unsigned char out[32])
{
    crypto_hash_sha256_state st;
    crypto_hash_sha256_init(&st);
    for (int i = 0; i < g->n_shards; i++) crypto_hash_sha256_update(&st, g->shard[i].map, g->shard[i].header);
    crypto_hash_sha256_final(&st, out);
}

/* Whole pages only: a page at either end may hold a neighbour's bytes. MAP_PRIVATE and read-only, so nothing is lost. */
void gguf_drop_pages(const struct gguf *g, const void *p, size_t n)
{
    if (!g->shard[0].mapped) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)p, to = from + n;
    from = (from + page - 1) / page * page;
    to = to / page * page;
    if (from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}

void gguf_drop_cache(const struct gguf *g, const void *p, size_t n)
{
    const unsigned char *from = p;
    gguf_drop_pages(g, p, n);
    for (int i = 0; i < g->n_shards; i++) {
        const struct gguf_shard *s = &g->shard[i];
        if (!s->mapped || from < s->map || from >= s->map + s->size) continue;
        int fd = open(s->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;      /* only a favour to others */
        posix_fadvise(fd, from - s->map, (off_t)n, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

int gguf_n_keys(const struct gguf *g) { return g->shard[0].n_kv; }
const struct gguf_kv *gguf_key(const struct gguf *g, int i) { return g->shard[0].kv + i; }

const struct gguf_kv *gguf_shard_find(const struct gguf_shard *s, const char *key)
{
    for (int i = 0; i < s->n_kv; i++)
        if (gguf_str_eq(s->kv[i].key, key)) return s->kv + i;
    return NULL;
}

const struct gguf_kv *gguf_find(const struct gguf *g, const char *key)
{
    return find_key(g, (struct gguf_str){ key, strlen(key) });
}

int gguf_n_tensors(const struct gguf *g) { return g->n_tensors; }

const struct gguf_tensor *gguf_tensor(const struct gguf *g, int i)
{
    int s = 0;
    while (i >= g->shard[s].n_tensors) i -= g->shard[s++].n_tensors;
    return g->shard[s].tensor + i;
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name)
{
    struct gguf_tensor want = { .name = { name, strlen(name) } };
    const struct gguf_tensor *p = &want, *const *hit;
    hit = bsearch(&p, g->by_name, (size_t)g->n_tensors, sizeof *g->by_name, cmp_name);
    return hit ? *hit : NULL;
}
