/* kv_append: writes each row's K and V into its sequence's pages at kv[r].
 * A page of one layer is [kv_heads][KV_PAGE][head_dim] in the format; page p starts at p * kv_heads * KV_PAGE * (bytes of head_dim values).
 * shape: kv_heads, head_dim, fk, fv = f16 | f32 (formats of K and V) */
#ifndef KV_APPEND_ARGS_H
#define KV_APPEND_ARGS_H
struct kv_append_args {
    const struct step *step;
    const f32 *k, *v;      /* [n_rows][kv_heads][head_dim] */
    void *pages_k, *pages_v;
};
#endif
