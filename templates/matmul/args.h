/* matmul: y[r][j] (+)= sum_k w[j][k] * x[row][k], row = list[r] or r.
 * shape: type (f32 f16 bf16 q8_0), act (f32 | q8), layout (rows, or one the candidate asks for), n, k, epi = none | add
 *   (add: into y; the residual stream).  Ops `matvec` (1 to 8 rows) and `matmul` (any number) share these arguments and ref.c.
 * canonical class, act q8: acc = fma((float)idot(32 int8) * dw, da, acc) over ascending 32-blocks inside a K_CHUNK, chunk sums added
 *   ascending. act f32: 32 strided partials p[k % 32] = fma(w, x, p) over ascending k inside a K_CHUNK, pairwise tree (fold halves), chunk
 *   sums ascending. */
#ifndef MATMUL_ARGS_H
#define MATMUL_ARGS_H
struct matmul_args {
    const i32 *n_rows;     /* device count of rows of y */
    const i32 *list;       /* row of x for each row of y; NULL: the same */
    const void *w;         /* [n][k] in `layout` */
    const i64 *w_offset;   /* device-side byte offset added to w (experts), a multiple of 64 but in layout rows; NULL: 0 */
    const f32 *x;          /* act f32: [.][k] */
    struct act_q8 a;       /* act q8: [.][k] */
    f32 *y;                /* [n_rows] rows of n, `y_stride` elements apart */
    i64 y_stride;
    void *work;            /* matmul_work() bytes, 64-byte aligned; CUDA only, for the partial sums of a split k */
};
/* Splits times n is at most MATMUL_SPLIT_COLUMNS wherever k is split over blocks. rows: most rows of y. */
enum { MATMUL_SPLIT_COLUMNS = 16384 };
static inline i64 matmul_work(i64 rows) { return rows * MATMUL_SPLIT_COLUMNS * 4; }
#endif
