/* GGUF files: mapped, checked once, then read as views into the map.
 *
 * gguf_open takes any shard of a split set and opens all of it. After it returns 0 every key, value, name, dimension and
 * offset has been held against the file's bounds and against the format's rules, so users may read what the accessors
 * hand out without defence. Nothing is copied: strings and arrays are views into the map and live as long as the `gguf`;
 * none is NUL-terminated. Memory taken is about 100 bytes a key or tensor, whatever the file claims.
 * It knows the container only: what keys mean is config.c's business, what tensors mean model_bind.c's.
 * A `gguf` is immutable after opening, so several threads may read it.
 */
#ifndef Q_GGUF_H
#define Q_GGUF_H

#include "err.h"
#include <stddef.h>
#include <stdint.h>

enum gguf_type {
    GGUF_U8, GGUF_I8, GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32, GGUF_F32, GGUF_BOOL, GGUF_STRING, GGUF_ARRAY,
    GGUF_U64, GGUF_I64, GGUF_F64, GGUF_N_TYPES
};

enum {
    GGUF_MAX_KEYS = 1 << 16,     /* real files have about 50 */
    GGUF_MAX_TENSORS = 1 << 17,  /* the largest mixture of experts with one tensor an expert has 92,000 */
    GGUF_MAX_SHARDS = 1024,
    GGUF_NAME_BYTES = 63
};

struct gguf;

struct gguf_str {
    const char *s;               /* borrowed from the map, not NUL-terminated; may hold any byte unless said otherwise */
    size_t n;
};

struct gguf_kv {
    struct gguf_str key;         /* not empty, valid UTF-8, unique in its file */
    int type;                    /* enum gguf_type */
    int elem;                    /* arrays: type of the elements (never GGUF_ARRAY); else the same as type */
    int shard;
    uint64_t count;              /* arrays: elements; else 1 */
    const unsigned char *data;   /* little endian, unaligned; strings: u64 length and bytes, one after the other */
    size_t bytes;
};

struct gguf_tensor {
    struct gguf_str name;        /* 1 to 63 bytes of valid UTF-8 without control characters, unique in the whole set */
    int type;                    /* GGUF's type id; its block divides ne[0] */
    short n_dims, shard;
    int64_t ne[4];               /* ne[0] is contiguous; all >= 1, missing ones are 1 */
    const unsigned char *data;   /* inside the map, aligned to gguf_alignment() of its file */
    size_t bytes;
};

/* Opens FILE. Errors name the file and the key, tensor or byte. Never blocks: anything but a regular file is refused. */
int gguf_open(struct gguf **g, const char *path, struct q_err *e);
/* For tests and fuzzers, which have no file: parses one file's bytes in memory, which must stay alive; `name` stands for the path. A shard of a set is refused. */
int gguf_open_memory(struct gguf **g, const void *data, size_t n, const char *name, struct q_err *e);
void gguf_close(struct gguf *g);

const char *gguf_path(const struct gguf *g);              /* the path given to gguf_open */
const char *gguf_shard_path(const struct gguf *g, int shard);
int gguf_n_shards(const struct gguf *g);                  /* 1 for a file that is not split */
uint32_t gguf_version(const struct gguf *g);              /* of the first shard */
uint64_t gguf_alignment(const struct gguf *g, int shard);
size_t gguf_file_bytes(const struct gguf *g);             /* of all shards */
size_t gguf_header_bytes(const struct gguf *g);           /* of all shards: all before the tensor data */
/* SHA-256 of the header bytes of every shard in turn: names a model without reading its weights. */
void gguf_header_hash(const struct gguf *g, unsigned char out[32]);
/* Tells the system that the pages wholly inside [p, p+n) of the map are not needed now; they are read again if touched. */
void gguf_drop_pages(const struct gguf *g, const void *p, size_t n);
/* The same, and the system is asked to forget them: of data that lives elsewhere from now on (a card). */
void gguf_drop_cache(const struct gguf *g, const void *p, size_t n);

/* Keys: those of the first shard, in file order. (Keys that later shards repeat were held against the first's.) */
int gguf_n_keys(const struct gguf *g);
const struct gguf_kv *gguf_key(const struct gguf *g, int i);
const struct gguf_kv *gguf_find(const struct gguf *g, const char *key);   /* NULL: not there */
const char *gguf_type_name(int type);                                     /* "u32", "array", "?" */

/* Typed values. Where the key is missing they leave *out alone and return Q_EMISS (its line says "key missing");
 * a value of another type is Q_EINPUT, with the type expected and found. Integers of any width convert if they fit. */
int gguf_get_int(const struct gguf *g, const char *key, int64_t min, int64_t max, int64_t *out, struct q_err *e);
int gguf_get_float(const struct gguf *g, const char *key, double *out, struct q_err *e);   /* f32, f64; must be finite */
int gguf_get_bool(const struct gguf *g, const char *key, int *out, struct q_err *e);
int gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *out, struct q_err *e);
/* An array key of element type `elem`, or of any integer type (bool included) for elem = -1. */
int gguf_get_array(const struct gguf *g, const char *key, int elem, const struct gguf_kv **out, struct q_err *e);

int gguf_is_int(int type);
/* Element i of an array of integers or bools, widened (a u64 above the i64 range reads as INT64_MAX). i < count. */
int64_t gguf_array_int(const struct gguf_kv *kv, uint64_t i);

/* The strings of an array one after the other: start with `at = kv->data`, stop after kv->count calls. */
struct gguf_str gguf_next_str(const unsigned char **at);
/* Random access to a string array, through an index of every eighth string made once. */
struct gguf_strings {
    const struct gguf_kv *kv;    /* borrowed */
    uint64_t *at;                /* owned: offset in kv->data of strings 0, 8, 16 ... */
};
int gguf_strings_open(struct gguf_strings *s, const struct gguf_kv *kv, struct q_err *e);
struct gguf_str gguf_strings_get(const struct gguf_strings *s, uint64_t i);   /* i < kv->count */
void gguf_strings_close(struct gguf_strings *s);

int gguf_n_tensors(const struct gguf *g);
const struct gguf_tensor *gguf_tensor(const struct gguf *g, int i);       /* shard by shard, in file order */
const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name);

int gguf_str_eq(struct gguf_str a, const char *b);
/* Copies a string for a message or a fixed field: NUL-terminated, cut at a character's end, bad bytes shown as '?'. */
char *gguf_str_copy(char *dst, size_t size, struct gguf_str s);

#endif
