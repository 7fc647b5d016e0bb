/* Weight formats are a table: block size, bytes, how a row is dequantised, what activations it meets in a product.
 * The ids are GGUF's. A format that is not in the table is refused at load, by name. Source: GGUF, ggml block layouts. */
#ifndef Q_QUANT_H
#define Q_QUANT_H

#include <stddef.h>
#include <stdint.h>

enum q_type { Q_TYPE_F32 = 0, Q_TYPE_F16 = 1, Q_TYPE_Q8_0 = 8, Q_TYPE_BF16 = 30 };

/* Activations of a product: fp32, or int8 in blocks of 32 with an fp32 scale and an int32 sum a block. */
enum q_act { Q_ACT_F32, Q_ACT_Q8 };

struct q_format {
    enum q_type type;
    const char *name;        /* "q8_0": as in shapes and kernel names */
    int block;               /* elements a block */
    int bytes;               /* bytes a block */
    enum q_act act;          /* the activations its kernels take (numerics `reference` takes fp32 for all) */
    void (*dequantise)(float *dst, const void *src, int64_t n);           /* n a multiple of block */
    void (*quantise)(void *dst, const float *src, int64_t n);             /* the file format's reference rounding */
};

/* NULL when this version does not run the type. */
const struct q_format *q_format_find(int type);
const struct q_format *q_format_by_name(const char *name);
/* GGUF's name of any type id it defines ("Q4_K"), "?" for ids it does not; block and bytes 0 for removed or unknown ids. */
const char *q_type_name(int type);
int q_type_block(int type);
int q_type_bytes(int type);
/* Bytes of a row of n elements; n must be a multiple of the block. */
static inline int64_t q_row_bytes(const struct q_format *f, int64_t n) { return n / f->block * f->bytes; }

float q_half_to_float(uint16_t h);
uint16_t q_float_to_half(float x);       /* round to nearest even, IEEE */

#endif
