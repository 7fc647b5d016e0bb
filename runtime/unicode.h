/* Unicode, as much as a tokenizer needs: UTF-8 checked and read, the classes of the split, and NFC.
 *
 * The classes come from one committed table (unicode_table.c), so that they do not change with a library or a machine. NFC
 * is utf8proc's, but called only on the stretches that need it: text without combining marks is never copied. All functions
 * take linear time, runs of half a million combining marks included. Text in and out is (pointer, length); NUL is a character.
 */
#ifndef Q_UNICODE_H
#define Q_UNICODE_H

#include <stddef.h>
#include <stdint.h>
#include "err.h"

enum { UC_OTHER, UC_LETTER, UC_MARK, UC_NUMBER, UC_SPACE, UC_CLASS = 7, UC_SLOW = 8, UC_LIMIT = 0x110000 };

struct uc_range {
    uint32_t first, last; /* code points, inclusive */
    uint8_t prop;         /* a class, and UC_SLOW where NFC may change, move or join the character */
};
extern const struct uc_range uc_ranges[]; /* ascending, disjoint; a gap means UC_OTHER | UC_SLOW */
extern const unsigned uc_range_count;

/* The table spread out: one byte a code point, so that a look-up is one load. */
struct uc_map {
    uint8_t prop[UC_LIMIT];
};
void uc_map_fill(struct uc_map *m);

/* Offset of the first byte of s[0..n) that is not UTF-8 (overlong forms and surrogates included), or n. */
size_t utf8_check(const char *s, size_t n);

/* Reads the character at p, which must be valid UTF-8; *cp is its code point. Returns its length, 1 to 4 bytes. */
static inline unsigned utf8_get(const unsigned char *p, uint32_t *cp)
{
    if (p[0] < 0x80) return *cp = p[0], 1;
    if (p[0] < 0xE0) return *cp = (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu), 2;
    if (p[0] < 0xF0) return *cp = (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu), 3;
    return *cp = (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu), 4;
}

/* What a decoder should do with the bytes at p. */
struct utf8_step {
    unsigned n;    /* bytes to take; 0: more bytes are needed to know */
    unsigned good; /* 1: they are one character; 0: they are the longest start of a broken one */
};
struct utf8_step utf8_next(const unsigned char *p, size_t n);

/* NFC of the valid UTF-8 text s[0..n). Where nothing changes *out stays NULL and *out_n is n: the caller goes on with s.
 * Otherwise *out is a new buffer (free it) of *out_n bytes. Errors: Q_EMEM. */
int uc_nfc(const struct uc_map *m, const char *s, size_t n, char **out, size_t *out_n, struct q_err *e);

#endif
