/* K and V in pages, plainly, for the refs of kv_append and of attention: what kv_append/args.h says, one token of one KV head at a time.
 * Encoding is done in fp32 and in the order that args.h defines, so it is exact; reading and rotating back are done in double. */
#ifndef REF_KV_H
#define REF_KV_H

#include "templates/ref.h"
#include "templates/kv_append/args.h"

enum { REF_KV_WIDEST = 1024 };    /* head_dim of a format with scales */

/* Of the shape's `fk` or `fv`. */
enum kv_format ref_kv_format(const struct q_shape *s, const char *key);
int ref_kv_rotated(enum kv_format f);
/* Pages of a case: f16 and f32 as such, others as bytes. All bytes are 0xFF. */
void *ref_kv_pages(struct ref_case *c, const char *name, enum ref_role role, enum kv_format f, int kv_heads, int dim, int pages);
/* x [dim] to its place in a piece, `token` within the page. */
void ref_kv_put(enum kv_format f, int dim, void *piece, int token, const f32 *x);
/* As ref_kv_put, of values that are rotated already (rotated formats alone). */
void ref_kv_put_rotated(enum kv_format f, int dim, void *piece, int token, const f32 *y);
/* What the piece says: rotated where the format is. */
void ref_kv_get(enum kv_format f, int dim, const void *piece, int token, double *y);
/* In place, each run of kv_run(dim) values: y = H (sign * x) / sqrt(run), and back. */
void ref_kv_rotate(int dim, double *x);
void ref_kv_rotate_back(int dim, double *y);

#endif
