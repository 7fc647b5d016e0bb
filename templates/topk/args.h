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
};
#endif
