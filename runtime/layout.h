/* Weight layouts are a table: how the rows of a matrix lie in device memory. One layout a weight on a device, read by every op.
 *
 *   rows   as in the file: n rows of q_row_bytes(format, k)
 *   r16    q8_0 only, n % 16 == 0: groups of 16 rows; per 32-block of k: 16 half scales, then 8 x [16 rows][4 k] int8 (544 bytes a block)
 *   r16u   r16 with every weight byte xor 0x80 (unsigned, +128), for instructions that multiply unsigned by signed
 *   planes q8_0 only: [n][k] int8, then [n][k / 32] half scales (CUDA)
 */
#ifndef Q_LAYOUT_H
#define Q_LAYOUT_H

#include "quant.h"

struct q_layout {
    const char *name;
    /* 1 when a matrix of this format and size can have the layout. */
    int (*fits)(const struct q_format *f, int64_t n, int64_t k);
    int64_t (*bytes)(const struct q_format *f, int64_t n, int64_t k);
    /* File rows [row0, row1) to the layout; NULL for `rows`. row0 and row1 are multiples of 16 (or row1 == n). */
    void (*pack)(const struct q_format *f, void *dst, const void *src, int64_t n, int64_t k, int64_t row0, int64_t row1);
    /* One row back to fp32 (tests, refs). */
    void (*row)(const struct q_format *f, float *dst, const void *w, int64_t n, int64_t k, int64_t row);
};

/* NULL if unknown. */
const struct q_layout *q_layout_find(const char *name);

#endif
