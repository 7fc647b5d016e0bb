/* gdn_step, gdn_chunk: the gated delta rule. Per value head h with key head kh, along each segment's rows in order, S [dim k][dim v]:
 *   S <- exp(g) S;  d = b (v - S^T k);  S <- S + k d^T;  o = S^T q
 * gdn_step is the token recurrence (canonical); gdn_chunk the same in chunks of rows (another class). Source: arXiv 2412.06464.
 * shape: k_heads, v_heads, dim, group = tiled (kh = h % k_heads) | grouped (kh = h / (v_heads/k_heads)) */
#ifndef GDN_ARGS_H
#define GDN_ARGS_H
struct gdn_args {
    const struct step *step;
    const f32 *c;          /* [n_rows][2*k_heads*dim + v_heads*dim]: q, k (after gdn_prep), v */
    const f32 *g, *b;      /* [n_rows][v_heads] */
    f32 *state;            /* [slots][v_heads][dim k][dim v] */
    f32 *o;                /* [n_rows][v_heads][dim] */
    void *work;            /* gdn_work() or gdn_work_cuda() bytes, 64-byte aligned, shared by the team */
};
/* Scratch that any candidate must do with; chunks are at most 128 rows. On a card: two chunk's rows for each row and head, chunks of 64. */
static inline i64 gdn_work(i64 dim, i64 parts) { return parts * (8 * 128 * (dim + 128) * 4 + 2 * dim * dim * 4); }
static inline i64 gdn_work_cuda(i64 rows, i64 v_heads) { return rows * v_heads * (2 * 64 + 4) * 4; }
#endif
