/* The header of one GGUF file, read with a cursor that cannot leave the file.
 *
 * Order of a file: magic, version, counts; keys; tensor infos; padding to the alignment; tensor data. Nothing is
 * allocated before the counts were held against the bytes that are there and against GGUF_MAX_*, so a few bytes cannot
 * ask for gigabytes. Source: the GGUF specification, version 3 (version 2 has the same layout).
 */
#include "gguf_impl.h"
#include "quant.h"
#include <stdio.h>
#include <stdlib.h>

struct cursor {
    const unsigned char *base;
    size_t at, end;
    const char *path;
    struct q_err *e;
};

static size_t left(const struct cursor *c) { return c->end - c->at; }

static int cut(const struct cursor *c, const char *what, uint64_t need)
{
    return q_fail(c->e, Q_EINPUT, "%s: %s at byte %zu needs %llu bytes, but the file ends %zu bytes later (truncated?)",
                  c->path, what, c->at, (unsigned long long)need, left(c));
}

static int read_u32(struct cursor *c, const char *what, uint32_t *v)
{
    if (left(c) < 4) return cut(c, what, 4);
    *v = load_u32(c->base + c->at);
    c->at += 4;
    return Q_OK;
}

static int read_u64(struct cursor *c, const char *what, uint64_t *v)
{
    if (left(c) < 8) return cut(c, what, 8);
    *v = load_u64(c->base + c->at);
    c->at += 8;
    return Q_OK;
}

static int read_str(struct cursor *c, const char *what, struct gguf_str *s)
{
    uint64_t n = 0;
    int rc = read_u64(c, what, &n);
    if (rc) return rc;
    if (n > left(c)) {
        c->at -= 8;
        return cut(c, what, n);
    }
    *s = (struct gguf_str){ (const char *)c->base + c->at, (size_t)n };
    c->at += (size_t)n;
    return Q_OK;
}

/* --- values --- */

static size_t type_bytes(int type)
{
    static const unsigned char bytes[GGUF_N_TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return bytes[type];
}

static int read_bools(struct cursor *c, const struct gguf_kv *kv)
{
    for (uint64_t i = 0; i < kv->count; i++)
        if (kv->data[i] > 1)
            return q_fail(c->e, Q_EINPUT, "%s: key '%s': expected a bool of 0 or 1, found %d at byte %zu", c->path,
                          GGUF_SHOW(kv->key), kv->data[i], c->at + (size_t)i);
    return Q_OK;
}

/* A vocabulary has half a million of these: the loop is kept bare, and the error's words are made when it fails. */
static int read_strings(struct cursor *c, const struct gguf_kv *kv)
{
    for (uint64_t i = 0; i < kv->count; i++) {
        uint64_t n = left(c) >= 8 ? load_u64(c->base + c->at) : UINT64_MAX;
        if (n == UINT64_MAX || n > left(c) - 8)
            return q_fail(c->e, Q_EINPUT, "%s: key '%s': string %llu at byte %zu reaches past the end of the file",
                          c->path, GGUF_SHOW(kv->key), (unsigned long long)i, c->at);
        c->at += 8 + (size_t)n;
    }
    return Q_OK;
}

/* Fixed-size elements in one step, strings one by one. kv->elem and kv->count are set. */
static int read_elements(struct cursor *c, struct gguf_kv *kv)
{
    size_t start = c->at, each = kv->elem == GGUF_STRING ? 8 : type_bytes(kv->elem);
    kv->data = c->base + c->at;
    if (kv->count > left(c) / each)
        return q_fail(c->e, Q_EINPUT, "%s: key '%s' at byte %zu holds %llu x %s, but only %zu bytes of the file are left",
                      c->path, GGUF_SHOW(kv->key), c->at, (unsigned long long)kv->count, gguf_type_name(kv->elem),
                      left(c));
    if (kv->elem == GGUF_BOOL && read_bools(c, kv)) return Q_EINPUT;
    int rc = Q_OK;
    if (kv->elem == GGUF_STRING)
        rc = read_strings(c, kv);
    else
        c->at += (size_t)kv->count * each;
    kv->bytes = c->at - start;
    return rc;
}

static int read_type(struct cursor *c, const struct gguf_kv *kv, const char *what, int *type)
{
    uint32_t t = 0;
    int rc = read_u32(c, what, &t);
    if (rc) return rc;
    if (t >= GGUF_N_TYPES)
        return q_fail(c->e, Q_EINPUT, "%s: key '%s': %s %u at byte %zu is unknown (0 to %d are defined)", c->path,
                      GGUF_SHOW(kv->key), what, t, c->at - 4, GGUF_N_TYPES - 1);
    *type = (int)t;
    return Q_OK;
}

static int read_key(struct cursor *c, struct gguf_kv *kv, int index)
{
    char what[40];
    snprintf(what, sizeof what, "metadata key %d", index);
    size_t at = c->at;
    int rc = read_str(c, what, &kv->key);
    if (rc) return rc;
    if (!kv->key.n) return q_fail(c->e, Q_EINPUT, "%s: %s is empty (at byte %zu)", c->path, what, at);
    if (!gguf_valid_utf8(kv->key) || memchr(kv->key.s, 0, kv->key.n))
        return q_fail(c->e, Q_EINPUT, "%s: %s is not valid UTF-8 (at byte %zu)", c->path, what, at);
    return Q_OK;
}

static int read_kv(struct cursor *c, struct gguf_kv *kv, int index)
{
    int rc = read_key(c, kv, index);
    if (!rc) rc = read_type(c, kv, "value type", &kv->type);
    if (rc) return rc;
    kv->elem = kv->type;
    kv->count = 1;
    if (kv->type == GGUF_ARRAY) {
        rc = read_type(c, kv, "element type", &kv->elem);
        if (!rc) rc = read_u64(c, "array count", &kv->count);
        if (rc) return rc;
        if (kv->elem == GGUF_ARRAY)
            return q_fail(c->e, Q_EINPUT, "%s: key '%s': an array of arrays is not part of the format", c->path,
                          GGUF_SHOW(kv->key));
    }
    return read_elements(c, kv);
}

/* --- tensor infos --- */

static int read_name(struct cursor *c, struct gguf_tensor *t, int index)
{
    char what[40];
    snprintf(what, sizeof what, "name of tensor %d", index);
    size_t at = c->at;
    int rc = read_str(c, what, &t->name);
    if (rc) return rc;
    if (!t->name.n || t->name.n > GGUF_NAME_BYTES)
        return q_fail(c->e, Q_EINPUT, "%s: %s at byte %zu: expected 1 to %d bytes, found %zu", c->path, what, at,
                      GGUF_NAME_BYTES, t->name.n);
    int bad = !gguf_valid_utf8(t->name);
    for (size_t i = 0; i < t->name.n; i++) bad |= (unsigned char)t->name.s[i] < 0x20 || t->name.s[i] == 0x7F;
    return bad ? q_fail(c->e, Q_EINPUT, "%s: %s at byte %zu is not printable UTF-8", c->path, what, at) : Q_OK;
}

static int read_dims(struct cursor *c, struct gguf_tensor *t, int64_t *elements)
{
    uint32_t n = 0;
    int rc = read_u32(c, "tensor's number of dimensions", &n);
    if (rc) return rc;
    if (n > 4)
        return q_fail(c->e, Q_EINPUT, "%s: tensor '%s': expected at most 4 dimensions, found %u (at byte %zu)", c->path,
                      GGUF_SHOW(t->name), n, c->at - 4);
    t->n_dims = (short)n;
    *elements = 1;
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t d = 1;
        if (i < n && (rc = read_u64(c, "tensor dimension", &d))) return rc;
        if (!d || d > INT64_MAX)
            return q_fail(c->e, Q_EINPUT, "%s: tensor '%s': dimension %u is %lld (at byte %zu)", c->path,
                          GGUF_SHOW(t->name), i, (long long)d, c->at - 8);
        t->ne[i] = (int64_t)d;
        if (__builtin_mul_overflow(*elements, (int64_t)d, elements))
            return q_fail(c->e, Q_EINPUT, "%s: tensor '%s': the product of its dimensions overflows (at byte %zu)",
                          c->path, GGUF_SHOW(t->name), c->at - 8);
    }
    return Q_OK;
}

/* Sets type and bytes. */
static int read_tensor_type(struct cursor *c, struct gguf_tensor *t, int64_t elements)
{
    uint32_t type = 0;
    int rc = read_u32(c, "tensor type", &type);
    if (rc) return rc;
    int block = type < 1024 ? q_type_block((int)type) : 0;
    if (!block)
        return q_fail(c->e, Q_EUNSUP,
                      "%s: tensor '%s' uses type %u, unknown to this version (at byte %zu); "
                      "it needs a newer build or another quantisation", c->path, GGUF_SHOW(t->name), type, c->at - 4);
    t->type = (int)type;
    if (t->ne[0] % block)
        return q_fail(c->e, Q_EINPUT, "%s: tensor '%s': %s comes in blocks of %d, but its rows have %lld elements",
                      c->path, GGUF_SHOW(t->name), q_type_name(t->type), block, (long long)t->ne[0]);
    if (__builtin_mul_overflow((size_t)(elements / block), (size_t)q_type_bytes(t->type), &t->bytes) ||
        t->bytes > INT64_MAX)
        return q_fail(c->e, Q_EINPUT, "%s: tensor '%s': its size in bytes overflows", c->path, GGUF_SHOW(t->name));
    return Q_OK;
}

/* Tensors lie in the order of their infos, each padded to the alignment, without holes; *next is where this one must be. */
static int read_offset(struct cursor *c, struct gguf_tensor *t, uint64_t alignment, uint64_t *next)
{
    uint64_t offset = 0;
    int rc = read_u64(c, "tensor offset", &offset);
    if (rc) return rc;
    if (offset != *next)
        return q_fail(c->e, Q_EINPUT, "%s: tensor '%s': expected its data at offset %llu, after the tensor before it, "
                      "found %llu (at byte %zu)", c->path, GGUF_SHOW(t->name), (unsigned long long)*next,
                      (unsigned long long)offset, c->at - 8);
    uint64_t end;
    if (__builtin_add_overflow(offset, t->bytes, &end) || __builtin_add_overflow(end, alignment - 1, &end) ||
        end > INT64_MAX)
        return q_fail(c->e, Q_EINPUT, "%s: tensor '%s': its end overflows", c->path, GGUF_SHOW(t->name));
    *next = end / alignment * alignment;
    return Q_OK;
}

static int read_tensor(struct cursor *c, struct gguf_tensor *t, int index, uint64_t alignment, uint64_t *next)
{
    int64_t elements = 0;
    int rc = read_name(c, t, index);
    if (!rc) rc = read_dims(c, t, &elements);
    if (!rc) rc = read_tensor_type(c, t, elements);
    if (!rc) rc = read_offset(c, t, alignment, next);
    return rc;
}

/* --- the whole header --- */

static int read_magic(struct cursor *c, uint32_t *version)
{
    if (left(c) < 4 || memcmp(c->base, "GGUF", 4))
        return q_fail(c->e, Q_EINPUT, "%s: not a GGUF file: %s", c->path, gguf_guess_kind(c->base, c->end));
    c->at = 4;
    int rc = read_u32(c, "version", version);
    if (rc) return rc;
    if (!(*version & 0xFFFF) && *version)
        return q_fail(c->e, Q_EUNSUP, "%s: a big-endian GGUF file (version reads as %u); convert it for little-endian "
                      "machines", c->path, *version);
    if (*version < 2 || *version > 3)
        return q_fail(c->e, Q_EUNSUP, "%s: expected GGUF version 2 or 3, found %u", c->path, *version);
    return Q_OK;
}

static int read_count(struct cursor *c, const char *what, size_t least, uint64_t max, int *n)
{
    uint64_t v = 0;
    int rc = read_u64(c, what, &v);
    if (rc) return rc;
    if (v > left(c) / least)
        return q_fail(c->e, Q_EINPUT, "%s: %s is %lld (at byte %zu), but only %zu bytes of the file are left", c->path,
                      what, (long long)v, c->at - 8, left(c));
    if (v > max)
        return q_fail(c->e, Q_ELIMIT, "%s: %s is %llu; this version reads up to %llu", c->path, what,
                      (unsigned long long)v, (unsigned long long)max);
    *n = (int)v;
    return Q_OK;
}

static int read_alignment(struct cursor *c, struct gguf_shard *s)
{
    const struct gguf_kv *kv = gguf_shard_find(s, "general.alignment");
    s->alignment = 32;
    if (!kv) return Q_OK;
    if (kv->type != GGUF_U32)
        return q_fail(c->e, Q_EINPUT, "%s: key 'general.alignment': expected u32, found %s", c->path,
                      gguf_type_name(kv->type));
    s->alignment = load_u32(kv->data);
    if (!s->alignment || (s->alignment & (s->alignment - 1)))
        return q_fail(c->e, Q_EINPUT, "%s: key 'general.alignment': expected a power of two, found %llu", c->path,
                      (unsigned long long)s->alignment);
    return Q_OK;
}

/* Now that all sizes are known: where the data begins, and whether the file holds all of it. */
static int place_data(struct cursor *c, struct gguf_shard *s)
{
    uint64_t start = (c->at + s->alignment - 1) / s->alignment * s->alignment, offset = 0;
    s->header = c->at;
    for (int i = 0; i < s->n_tensors; i++) {
        struct gguf_tensor *t = s->tensor + i;
        if (start > s->size || offset + t->bytes > s->size - start)
            return q_fail(c->e, Q_EINPUT, "%s: tensor '%s': its data ends at byte %llu, but the file has %zu bytes "
                          "(an unfinished download?)", c->path, GGUF_SHOW(t->name),
                          (unsigned long long)(start + offset + t->bytes), s->size);
        t->data = s->map + start + offset;
        offset = (offset + t->bytes + s->alignment - 1) / s->alignment * s->alignment;
    }
    return Q_OK;
}

static int read_body(struct cursor *c, struct gguf_shard *s)
{
    int rc = Q_OK;
    uint64_t next = 0;
    for (int i = 0; i < s->n_kv && !rc; i++) rc = read_kv(c, s->kv + i, i);
    if (!rc) rc = read_alignment(c, s);
    for (int i = 0; i < s->n_tensors && !rc; i++) rc = read_tensor(c, s->tensor + i, i, s->alignment, &next);
    return rc ? rc : place_data(c, s);
}

int gguf_parse(struct gguf_shard *s, struct q_err *e)
{
    struct cursor c = { s->map, 0, s->size, s->path, e };
    enum { KV_LEAST = 14, TENSOR_LEAST = 25 };   /* bytes of the smallest key and tensor info */
    int n_tensors = 0, n_kv = 0, rc = read_magic(&c, &s->version);
    if (!rc) rc = read_count(&c, "the number of tensors", TENSOR_LEAST, GGUF_MAX_TENSORS, &n_tensors);
    if (!rc) rc = read_count(&c, "the number of keys", KV_LEAST, GGUF_MAX_KEYS, &n_kv);
    if (rc) return rc;
    s->kv = calloc((size_t)n_kv + 1, sizeof *s->kv);
    s->tensor = calloc((size_t)n_tensors + 1, sizeof *s->tensor);
    if (!s->kv || !s->tensor) return q_fail(e, Q_EMEM, "%s: out of memory for its header", s->path);
    s->n_kv = n_kv;
    s->n_tensors = n_tensors;
    return read_body(&c, s);
}
