/* matmul: y[r][j] (+)= sum_k w[j][k] * x[row][k], row = list[r] or r.
 * shape: type (f32 f16 bf16 q8_0), act (f32 | q8), layout (rows, or one the candidate asks for), n, k, epi = none | add
 *   (add: into y; the residual stream) | parts (w is up to four matrices one behind another, each with a y of its own).  Ops `matvec` (1 to 8 rows) and `matmul` (any number) share these arguments and ref.c.
 * canonical class, act q8: acc = fma((float)idot(32 int8) * dw, da, acc) over ascending 32-blocks inside a K_CHUNK, chunk sums added
 *   ascending. act f32: 32 strided partials p[k % 32] = fma(w, x, p) over ascending k inside a K_CHUNK, pairwise tree (fold halves), chunk
 *   sums ascending. */
#ifndef MATMUL_ARGS_H
#define MATMUL_ARGS_H
enum { MATMUL_PARTS = 4 };
struct matmul_args {
    const i32 *n_rows;     /* device count of rows of y */
    const i32 *list;       /* row of x for each row of y; NULL: the same */
    const void *w;         /* [n][k] in `layout` */
    const i64 *w_offset;   /* device-side byte offset added to w (experts), a multiple of 64 but in layout rows; NULL: 0 */
    const f32 *x;          /* act f32: [.][k] */
    struct act_q8 a;       /* act q8: [.][k] */
    f32 *y;                /* [n_rows] rows of n, `y_stride` elements apart */
    i64 y_stride;
    /* epi parts: row j of w, first[i] <= j < first[i + 1], gives column j - first[i] of part[i]; unused parts begin at n */
    f32 *part[MATMUL_PARTS];       /* [n_rows][first[i + 1] - first[i]] */
    i32 first[MATMUL_PARTS + 1];   /* from 0 to n */
    void *work;            /* matmul_work() bytes, 64-byte aligned; CUDA only, for the partial sums of a split k */
};
/* Where the product of row r and row j of w goes, with epi parts. Selects and no index: an array of arguments stays where it is. */
static inline f32 *matmul_part(const struct matmul_args *a, i64 r, i32 j)
{
    f32 *y = a->part[0];
    i32 from = 0, to = a->first[1];
    if (j >= a->first[1]) y = a->part[1], from = a->first[1], to = a->first[2];
    if (j >= a->first[2]) y = a->part[2], from = a->first[2], to = a->first[3];
    if (j >= a->first[3]) y = a->part[3], from = a->first[3], to = a->first[4];
    return y + r * (to - from) + (j - from);
}
/* Splits times n is at most MATMUL_SPLIT_COLUMNS wherever k is split over blocks. rows: most rows of y. */
enum { MATMUL_SPLIT_COLUMNS = 16384 };
static inline i64 matmul_work(i64 rows) { return rows * MATMUL_SPLIT_COLUMNS * 4; }
#endif
