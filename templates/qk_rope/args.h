/* qk_rope: per head rmsnorm of queries and keys, then rotation of pairs (i, i + pairs) of the first 2*pairs dimensions by `cs`.
 * shape: heads, kv_heads, head_dim, pairs */
#ifndef QK_ROPE_ARGS_H
#define QK_ROPE_ARGS_H
struct qk_rope_args {
    const struct step *step;
    const f32 *qg;         /* [n_rows][heads][2*head_dim]: a head's query, then its gate (untouched) */
    f32 *q;                /* [n_rows][heads][head_dim] */
    f32 *k;                /* [n_rows][kv_heads][head_dim], in place */
    const f32 *wq, *wk;    /* [head_dim] */
    f32 eps;
    const f32 *cs;         /* [n_rows][pairs][2] from rope_table */
};
#endif
