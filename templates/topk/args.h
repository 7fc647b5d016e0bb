/* topk: the k largest logits of each row in descending order (lower id first on a tie), and logsumexp of the row.
 * shape: n = vocab, k (<= 64) */
#ifndef TOPK_ARGS_H
#define TOPK_ARGS_H
struct topk_args {
    const i32 *n_rows;
    const f32 *logits;     /* [n_rows][n] */
    i32 *id;               /* [n_rows][k] */
    f32 *value;            /* [n_rows][k] */
    f32 *lse;              /* [n_rows] */
    void *work;            /* topk_work() bytes, 64-byte aligned; CUDA only */
};
/* rows: most rows. A row is cut into at most 256 parts of at most 64 candidates. */
static inline i64 topk_work(i64 rows) { return rows * 256 * (64 * 8 + 16); }
#endif
