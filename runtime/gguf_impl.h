/* Inside the GGUF reader: the structs behind gguf.h and the steps of opening a set. Only gguf*.c include this. */
#ifndef Q_GGUF_IMPL_H
#define Q_GGUF_IMPL_H

#include "gguf.h"
#include <string.h>

struct gguf_shard {
    char *path;                     /* owned */
    const unsigned char *map;       /* owned if `mapped`, else borrowed */
    size_t size;
    int mapped;
    uint32_t version;
    uint64_t alignment;
    size_t header;                  /* bytes before the tensor data */
    struct gguf_kv *kv;             /* owned [n_kv], file order */
    struct gguf_tensor *tensor;     /* owned [n_tensors], file order */
    int n_kv, n_tensors;
};

struct gguf {
    char *path;                     /* owned: as given */
    struct gguf_shard *shard;       /* owned [n_shards] */
    int n_shards, n_tensors;
    const struct gguf_kv **by_key;         /* owned: keys of shard 0, sorted */
    const struct gguf_tensor **by_name;    /* owned: tensors of all shards, sorted */
};

/* A name for messages: "%.*s" would pass on whatever bytes the file holds. */
#define GGUF_SHOW(s) gguf_str_copy((char[100]){ 0 }, 100, (s))

static inline uint32_t load_u32(const unsigned char *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline uint64_t load_u64(const unsigned char *p) { uint64_t v; memcpy(&v, p, 8); return v; }

/* gguf_kind.c: opens `path` read-only if it is a regular file with bytes in it; maps it. */
int gguf_map(struct gguf_shard *s, const char *path, struct q_err *e);
void gguf_unmap(struct gguf_shard *s);
/* What a file that is not GGUF looks like, with advice; never NULL. */
const char *gguf_guess_kind(const unsigned char *p, size_t n);

/* gguf_parse.c: header of s->map[0, size) into kv, tensor, alignment, header. Checks everything within this one file. */
int gguf_parse(struct gguf_shard *s, struct q_err *e);

/* gguf_split.c: with shard[0] parsed from g->path, opens the rest of its set and puts it in order. */
int gguf_open_set(struct gguf *g, struct q_err *e);
/* Whether a parsed file says that it belongs to a set of more than one. */
int gguf_is_split(const struct gguf_shard *s);

/* gguf.c: lookups within one shard and ordering, for the others. */
const struct gguf_kv *gguf_shard_find(const struct gguf_shard *s, const char *key);
int gguf_valid_utf8(struct gguf_str s);
/* gguf_value.c: the integer that a scalar kv holds; 0 if it is not an integer in range. */
int gguf_kv_int(const struct gguf_kv *kv, int64_t *out);

#endif
