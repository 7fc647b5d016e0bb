/* The table of weight layouts: for each, which matrices fit, how large it is, how file rows are packed, how a row is read back.
 *
 * A group of r16 is contiguous: 16 rows by all of k, one 544-byte cell a block of 32, so that a kernel whose lanes are rows reads
 * the matrix as one stream. Cell: [16] half scales, then [8][16][4] int8: word q of row r holds elements 4q..4q+3 of the block.
 */
#include "layout.h"

#include <string.h>

enum { GROUP = 16, WORDS = 8, BLOCK = 32, FILE_BLOCK = 34, CELL = GROUP * FILE_BLOCK, CELL_WORDS = GROUP * 2 };

static int rows_fits(const struct q_format *f, int64_t n, int64_t k)
{
    return n > 0 && k > 0 && k % f->block == 0;
}

static int64_t rows_bytes(const struct q_format *f, int64_t n, int64_t k)
{
    return n * q_row_bytes(f, k);
}

static void rows_row(const struct q_format *f, float *dst, const void *w, int64_t n, int64_t k, int64_t row)
{
    f->dequantise(dst, (const char *)w + row * q_row_bytes(f, k), k);
}

static int r16_fits(const struct q_format *f, int64_t n, int64_t k)
{
    return f->type == Q_TYPE_Q8_0 && n > 0 && n % GROUP == 0 && k > 0 && k % BLOCK == 0;
}

/* One file block of one row into lane r of a cell. flip: 0, or 0x80 in every byte. */
static inline void pack_block(unsigned char *cell, const unsigned char *block, int r, uint32_t flip)
{
    uint32_t word[WORDS];
    memcpy(word, block + 2, sizeof word);
    memcpy(cell + 2 * r, block, 2);
    for (int q = 0; q < WORDS; q++) {
        word[q] ^= flip;
        memcpy(cell + CELL_WORDS + (q * GROUP + r) * 4, &word[q], 4);
    }
}

static void pack_cells(void *dst, const void *src, int64_t k, int64_t row0, int64_t row1, uint32_t flip)
{
    int64_t blocks = k / BLOCK, row_bytes = blocks * FILE_BLOCK;
    for (int64_t row = row0; row < row1; row += GROUP) {
        unsigned char *cell = (unsigned char *)dst + row * row_bytes;
        const unsigned char *from = (const unsigned char *)src + row * row_bytes;
        for (int64_t b = 0; b < blocks; b++, cell += CELL, from += FILE_BLOCK)
            for (int r = 0; r < GROUP; r++) pack_block(cell, from + r * row_bytes, r, flip);
    }
}

static void r16_pack(const struct q_format *f, void *dst, const void *src, int64_t n, int64_t k, int64_t row0, int64_t row1)
{
    pack_cells(dst, src, k, row0, row1, 0);
}

static void r16u_pack(const struct q_format *f, void *dst, const void *src, int64_t n, int64_t k, int64_t row0, int64_t row1)
{
    pack_cells(dst, src, k, row0, row1, 0x80808080u);
}

static inline void unpack_block(int8_t *q, const unsigned char *cell, int r, uint32_t flip)
{
    uint32_t word[WORDS];
    for (int i = 0; i < WORDS; i++) {
        memcpy(&word[i], cell + CELL_WORDS + (i * GROUP + r) * 4, 4);
        word[i] ^= flip;
    }
    memcpy(q, word, sizeof word);
}

static void cells_row(float *dst, const void *w, int64_t k, int64_t row, uint32_t flip)
{
    int64_t blocks = k / BLOCK;
    int r = (int)(row % GROUP);
    const unsigned char *cell = (const unsigned char *)w + row / GROUP * blocks * CELL;
    for (int64_t b = 0; b < blocks; b++, cell += CELL, dst += BLOCK) {
        uint16_t half;
        memcpy(&half, cell + 2 * r, 2);
        float d = q_half_to_float(half);
        int8_t q[BLOCK];
        unpack_block(q, cell, r, flip);
        for (int i = 0; i < BLOCK; i++) dst[i] = d * (float)q[i];
    }
}

static void r16_row(const struct q_format *f, float *dst, const void *w, int64_t n, int64_t k, int64_t row)
{
    cells_row(dst, w, k, row, 0);
}

static void r16u_row(const struct q_format *f, float *dst, const void *w, int64_t n, int64_t k, int64_t row)
{
    cells_row(dst, w, k, row, 0x80808080u);
}

/* q8_0: a plane of int8 [n][k], behind it a plane of half scales [n][k / 32], so that whole aligned words of both are read. */
static int planes_fits(const struct q_format *f, int64_t n, int64_t k)
{
    return f->type == Q_TYPE_Q8_0 && n > 0 && k > 0 && k % BLOCK == 0;
}

static void planes_pack(const struct q_format *f, void *dst, const void *src, int64_t n, int64_t k, int64_t row0, int64_t row1)
{
    int64_t blocks = k / BLOCK;
    const unsigned char *from = (const unsigned char *)src + row0 * blocks * FILE_BLOCK;
    unsigned char *q = dst, *d = q + n * k;
    for (int64_t b = row0 * blocks; b < row1 * blocks; b++, from += FILE_BLOCK) {
        memcpy(d + 2 * b, from, 2);
        memcpy(q + BLOCK * b, from + 2, BLOCK);
    }
}

static void planes_row(const struct q_format *f, float *dst, const void *w, int64_t n, int64_t k, int64_t row)
{
    const int8_t *q = (const int8_t *)w + row * k;
    const unsigned char *scales = (const unsigned char *)w + n * k + row * (k / BLOCK) * 2;
    for (int64_t b = 0; b < k / BLOCK; b++, q += BLOCK, dst += BLOCK) {
        uint16_t half;
        memcpy(&half, scales + 2 * b, 2);
        float d = q_half_to_float(half);
        for (int i = 0; i < BLOCK; i++) dst[i] = d * (float)q[i];
    }
}

static const struct q_layout layouts[] = {
    { "rows", rows_fits, rows_bytes, NULL, rows_row },
    { "r16", r16_fits, rows_bytes, r16_pack, r16_row },
    { "r16u", r16_fits, rows_bytes, r16u_pack, r16u_row },
    { "planes", planes_fits, rows_bytes, planes_pack, planes_row },
};

const struct q_layout *q_layout_find(const char *name)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (!strcmp(layouts[i].name, name)) return &layouts[i];
    return NULL;
}
