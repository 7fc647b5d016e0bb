/* The formats of stored K and V by name, as options and plans have them. What their bits mean is said by templates/kv_append/args.h. */
#ifndef Q_KV_FORMAT_H
#define Q_KV_FORMAT_H

#include <stddef.h>

/* By falling size: "f32", "f16", "q8", "r4", "r3"; NULL ends them. */
extern const char *const kv_formats[];
/* For messages: "f32, f16, q8, r4, r3". */
extern const char kv_format_names[];

int kv_format_known(const char *format);
/* Bytes of one piece: KV_PAGE tokens of one KV head, codes and scales; 0: the format is unknown or does not take heads of this size. */
size_t kv_format_piece_bytes(const char *format, int head_dim);

#endif
