/* How K and V are stored: the formats by name, and the bytes that they take. What the bits mean is said by templates/kv_append.
 *
 * A page of one layer is one piece a KV head; a piece is KV_PAGE tokens of that head, first the codes of all of them, then their scales:
 *   f16, f32   the numbers themselves
 *   q8         int8 codes, an f16 scale for 32 of them
 *   r4, r3     codes of 4 and 3 bits of values that were rotated in runs of kv_run() numbers, an f16 scale a run
 */
#ifndef Q_KV_FORMAT_H
#define Q_KV_FORMAT_H

#include <stddef.h>

/* By falling size: "f32", "f16", "q8", "r4", "r3"; NULL ends them. */
extern const char *const kv_formats[];
/* For messages: "f32, f16, q8, r4, r3". */
extern const char kv_format_names[];

int kv_format_known(const char *format);
/* Numbers that r3 and r4 rotate together: the largest power of two that divides head_dim, at most 256; 0 where that is below 32. */
int kv_run(int head_dim);
/* Bytes of one piece, of 16-byte multiples for every shape that a format takes; 0: the format is unknown or cannot hold heads of this size. */
size_t kv_piece_bytes(const char *format, int head_dim);

#endif
