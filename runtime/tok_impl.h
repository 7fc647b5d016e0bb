/* The tokenizer's own data model; only runtime/tok*.c include this. tokenizer.h is the page for everyone else. */
#ifndef Q_TOK_IMPL_H
#define Q_TOK_IMPL_H

#include "tok_queue.h"
#include "tokenizer.h"
#include "unicode.h"
#include <pthread.h>

/* Open-addressed map from bytes to id, filled once. Slots hold id + 1; 0 is empty. Keys live in `texts`. */
struct tok_map {
    uint32_t *slot; /* owned; [mask + 1] */
    uint32_t mask;
};

/* One merge, found by its pair: `rank` orders merges, `id` is the token that left and right become. */
struct tok_merge {
    uint32_t left, right, rank, id;
};
#define TOK_NO_MERGE UINT32_MAX

struct tok_merges {
    struct tok_merge *slot; /* owned; [mask + 1], rank TOK_NO_MERGE is empty */
    uint32_t mask;
    size_t n; /* ranks are below it */
};

/* Special tokens, ordered so that those with one first byte are together, longest first. */
struct tok_specials {
    int32_t *id; /* owned; [n] */
    uint32_t n;
    uint32_t first[257]; /* first[b]..first[b + 1]: those that start with byte b */
};

enum tok_rules { TOK_QWEN35, TOK_QWEN2 };

/* tok_attach: the only part that changes after opening, under its own lock. */
struct tok_attached {
    pthread_mutex_t lock;
    void *at;
    void (*drop)(void *at);
};

struct tokenizer {
    struct tok_str *text;  /* owned; [n]: as in the file */
    struct tok_str *piece; /* owned; [n]: the bytes that decoding gives */
    char *arena;           /* owned; what text and piece point into */
    uint8_t *type;         /* owned; [n]: enum tok_type */
    uint8_t *end;          /* owned; [n]: 1 for ids that end generation */
    int32_t n, eos, bos;
    int32_t byte_id[256];
    enum tok_rules rules;
    struct tok_map map;
    struct tok_merges merges;
    struct tok_specials specials;
    struct uc_map unicode;
    struct tok_attached *attached; /* owned */
};

static inline uint64_t tok_hash(const char *s, size_t n)
{
    uint64_t h = n * 0x9E3779B97F4A7C15u, w;
    for (; n >= 8; s += 8, n -= 8) {
        __builtin_memcpy(&w, s, 8);
        h = (h ^ w) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    w = 0;
    for (size_t i = 0; i < n; i++) w |= (uint64_t)(unsigned char)s[i] << (8 * i);
    h = (h ^ w) * 0xD6E8FEB86659FD93u;
    return h ^ h >> 32;
}

/* tok_bpe.c */
int tok_merges_init(struct tok_merges *m, size_t n, struct q_err *e);
/* Adds a merge; returns the rank of an earlier merge of the same pair, or TOK_NO_MERGE (added). */
uint32_t tok_merges_add(struct tok_merges *m, struct tok_merge merge);
/* Work space of one call; zero-initialise, tok_bpe_free at the end. */
struct tok_bpe {
    struct bpe_node *node; /* owned; [cap] */
    size_t cap;
    struct tok_queue queue;
};
/* Writes the ids of the n bytes at s to ids[0..n), which has room for n. Returns their count, 0 if memory ran out. n > 0.
 * After a failure the work space can only be freed. */
size_t tok_bpe_run(const struct tokenizer *t, const char *s, size_t n, struct tok_bpe *work, int32_t *ids);
void tok_bpe_free(struct tok_bpe *work);

/* tok_split.c: length of the pre-token at s[0..n), n > 0. */
size_t tok_split(const struct tokenizer *t, const unsigned char *s, size_t n);

/* tok_special.c */
int tok_specials_init(struct tokenizer *t, const char *where, struct q_err *e);
/* The special token that s[0..n) starts with, the longest if several, or -1. */
int32_t tok_special_at(const struct tokenizer *t, const char *s, size_t n);
/* Offset of the next byte of s[at..n) that some special token starts with, or n. */
size_t tok_special_scan(const struct tokenizer *t, const char *s, size_t n, size_t at);
int tok_is_control(const struct tokenizer *t, int32_t id);

/* Places of dropped marks, ascending: offsets into the text without marks. */
struct tok_marks {
    size_t *at; /* owned */
    size_t n, cap;
};
/* Drops the marks of s[0..n). *out is new; *marks is filled. */
int tok_unguard(const char *s, size_t n, char **out, size_t *out_n, struct tok_marks *marks, struct q_err *e);

/* tok_bytes.c: the byte-mapped form. */
/* Turns mapped text into bytes at dst (room n); returns their count, or -1 where a character maps to no byte. */
ptrdiff_t tok_unmap(const char *s, size_t n, char *dst);
/* The mapped form of one byte, 1 or 2 bytes at dst; returns the length. */
size_t tok_map_byte(unsigned char b, char *dst);

/* tok_stream.c */
int tok_text_reserve(struct tok_text *out, size_t more, struct q_err *e);

#endif
