/* Bytes of a case as they were at some time, in pieces: to put back, to compare with, to hash.
 *
 * A kernel that fills a part of a large output (a repacked output head has a gigabyte) leaves the rest as every buffer begins, 0xFF; such
 * pieces take no memory. Large buffers are worked on by all processors (ref_share). Results depend neither on the number of threads nor
 * on which pieces are kept. */
#ifndef REF_PIECES_H
#define REF_PIECES_H

#include <stddef.h>

enum { REF_PIECE = 1 << 16 };     /* bytes of a piece; the last of a buffer may be shorter */

struct ref_pieces {
    size_t bytes;
    unsigned char **piece;        /* [ref_pieces_count]; those not owned are the one blank piece, which nobody writes */
};

void ref_pieces_take(struct ref_pieces *p, const unsigned char *data, size_t bytes);
void ref_pieces_free(struct ref_pieces *p);
void ref_pieces_put(const struct ref_pieces *p, unsigned char *data);
/* Non-zero where the bytes are the same. */
int ref_pieces_same(const struct ref_pieces *p, const unsigned char *data);
/* Equal to ref_hash of the bytes taken. */
unsigned long long ref_pieces_hash(const struct ref_pieces *p, unsigned long long h);

/* Of plain memory: 0xFF everywhere; a copy, a comparison (non-zero: the same), a hash that goes on from h. */
void ref_blank(unsigned char *data, size_t bytes);
int ref_same(const unsigned char *a, const unsigned char *b, size_t bytes);
unsigned long long ref_hash(const unsigned char *data, size_t bytes, unsigned long long h);

#endif
