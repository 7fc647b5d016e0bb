#include "templates/ref_pieces.h"
#include "templates/ref.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 64 };     /* pieces for a thread of their own: what a thread costs is copied meanwhile */

static const unsigned char blank[REF_PIECE] = { [0 ... REF_PIECE - 1] = 0xFF };

/* What one pass over a buffer needs: of pieces kept, of plain memory, or of both. */
struct pass {
    unsigned char **piece;
    const unsigned char *from;
    unsigned char *to;
    size_t bytes;
    unsigned long long *hash;
    atomic_int differs;
};

static i64 count(size_t bytes) { return (i64)((bytes + REF_PIECE - 1) / REF_PIECE); }

static size_t length(size_t bytes, i64 i)
{
    size_t left = bytes - (size_t)i * REF_PIECE;
    return left < REF_PIECE ? left : REF_PIECE;
}

static size_t offset(i64 i) { return (size_t)i * REF_PIECE; }

static const unsigned char *source(const struct pass *p, i64 i) { return p->piece ? p->piece[i] : p->from + offset(i); }

static void share(struct pass *p, void (*part)(void *arg, i64 begin, i64 end)) { ref_share(count(p->bytes), LEAST, part, p); }

/* --- what is done with a piece ---------------------------------------------------------------------------------------- */

static void take_part(void *arg, i64 begin, i64 end)
{
    const struct pass *p = arg;
    for (i64 i = begin; i < end; i++) {
        size_t n = length(p->bytes, i);
        p->piece[i] = (unsigned char *)blank;
        if (!memcmp(p->from + offset(i), blank, n)) continue;
        if (!(p->piece[i] = malloc(n))) abort();
        memcpy(p->piece[i], p->from + offset(i), n);
    }
}

static void put_part(void *arg, i64 begin, i64 end)
{
    const struct pass *p = arg;
    for (i64 i = begin; i < end; i++) memcpy(p->to + offset(i), source(p, i), length(p->bytes, i));
}

static void blank_part(void *arg, i64 begin, i64 end)
{
    const struct pass *p = arg;
    for (i64 i = begin; i < end; i++) memset(p->to + offset(i), 0xFF, length(p->bytes, i));
}

static void same_part(void *arg, i64 begin, i64 end)
{
    struct pass *p = arg;
    for (i64 i = begin; i < end && !p->differs; i++)
        if (memcmp(p->to + offset(i), source(p, i), length(p->bytes, i))) p->differs = 1;
}

static unsigned long long mix(unsigned long long h, unsigned long long word)
{
    h = (h ^ word) * 0x9E3779B97F4A7C15ull;      /* odd: no two words of a step become one */
    return h ^ h >> 29;
}

/* Four chains of words: one would wait for each product. */
static unsigned long long hash_piece(const unsigned char *data, size_t bytes, unsigned long long h)
{
    unsigned long long lane[4] = { h, ~h, h ^ 1, ~h ^ 1 }, word[4] = { 0 };
    size_t at = 0;
    for (; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(word, data + at, sizeof word);
        for (int i = 0; i < 4; i++) lane[i] = mix(lane[i], word[i]);
    }
    memset(word, 0, sizeof word);
    memcpy(word, data + at, bytes - at);
    for (int i = 0; i < 4; i++) h = mix(h, mix(lane[i], word[i]));
    return mix(h, bytes);
}

static void hash_part(void *arg, i64 begin, i64 end)
{
    const struct pass *p = arg;
    for (i64 i = begin; i < end; i++) p->hash[i] = hash_piece(source(p, i), length(p->bytes, i), (unsigned long long)i);
}

static unsigned long long hash_all(struct pass *p, unsigned long long h)
{
    size_t n = (size_t)count(p->bytes);
    if (!(p->hash = malloc(n * sizeof *p->hash + 1))) abort();
    share(p, hash_part);
    h = hash_piece((const unsigned char *)p->hash, n * sizeof *p->hash, h);
    free(p->hash);
    return h;
}

/* --- buffers ------------------------------------------------------------------------------------------------------------ */

void ref_pieces_take(struct ref_pieces *p, const unsigned char *data, size_t bytes)
{
    p->bytes = bytes;
    if (!(p->piece = malloc((size_t)count(bytes) * sizeof *p->piece + 1))) abort();
    share(&(struct pass){ .piece = p->piece, .from = data, .bytes = bytes }, take_part);
}

void ref_pieces_free(struct ref_pieces *p)
{
    for (i64 i = 0; p->piece && i < count(p->bytes); i++)
        if (p->piece[i] != blank) free(p->piece[i]);
    free(p->piece);
    p->piece = NULL;
}

void ref_pieces_put(const struct ref_pieces *p, unsigned char *data)
{
    share(&(struct pass){ .piece = p->piece, .to = data, .bytes = p->bytes }, put_part);
}

int ref_pieces_same(const struct ref_pieces *p, const unsigned char *data)
{
    struct pass pass = { .piece = p->piece, .to = (unsigned char *)data, .bytes = p->bytes };
    share(&pass, same_part);
    return !pass.differs;
}

unsigned long long ref_pieces_hash(const struct ref_pieces *p, unsigned long long h)
{
    return hash_all(&(struct pass){ .piece = p->piece, .bytes = p->bytes }, h);
}

void ref_blank(unsigned char *data, size_t bytes) { share(&(struct pass){ .to = data, .bytes = bytes }, blank_part); }

int ref_same(const unsigned char *a, const unsigned char *b, size_t bytes)
{
    struct pass pass = { .from = a, .to = (unsigned char *)b, .bytes = bytes };
    share(&pass, same_part);
    return !pass.differs;
}

unsigned long long ref_hash(const unsigned char *data, size_t bytes, unsigned long long h)
{
    return hash_all(&(struct pass){ .from = data, .bytes = bytes }, h);
}
