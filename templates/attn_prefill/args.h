/* attn_prefill, attn_decode: o[r][h] = sigmoid(gate[r][h]) * sum_t softmax_t(scale * q[r][h] . K[t][j]) V[t][j],  t = 0..kv[r],
 * j = h / (heads/kv_heads), causal by KV index, through page tables; written as fp32, as int8 blocks, or both.
 * Both ops take these arguments; prefill tiles rows, decode splits KV.
 * shape: heads, kv_heads, head_dim, fk, fv = f16 | f32, out = f32 | q8 | both   (q8 needs head_dim % 32 == 0: no block reaches into the next head)
 * canonical class: per KV_CHUNK of 256 tokens (aligned to KV index 0): scores by 32 strided partials and pairwise tree; max of the chunk
 * first, then exp and sums ascending in t; chunks merged in ascending order by (m, l, o). */
#ifndef ATTN_ARGS_H
#define ATTN_ARGS_H
struct attn_args {
    const struct step *step;
    const f32 *q;          /* [n_rows][heads][head_dim] */
    const f32 *qg;         /* [n_rows][heads][2*head_dim]: the gate is the second half of each head */
    const void *pages_k, *pages_v;  /* of this layer, see kv_append */
    f32 scale;
    f32 *o;                /* [n_rows][heads][head_dim] */
    struct act_q8 oq;      /* [n_rows][heads * head_dim] */
    void *work;            /* attn_work() bytes, 64-byte aligned, shared by the team */
};
/* Scratch that any candidate must do with: an upper bound that does not depend on the winner.
 * rows: most rows in one step (attn_decode: at most 64 rows are ever given); ctx: most KV tokens of a sequence. attn_decode leaves
 * (o, max, sum) for each row, head and chunk; a chunk has at least 64 tokens where the step has up to 16 rows, else at least KV_CHUNK. */
static inline i64 attn_work(i64 rows, i64 heads, i64 head_dim, i64 ctx, i64 parts)
{
    i64 few = rows < 16 ? rows : 16, more = rows < 64 ? rows : 64;
    i64 fine = few * ((ctx + 63) / 64), coarse = more * ((ctx + KV_CHUNK - 1) / KV_CHUNK);
    i64 decode = (fine > coarse ? fine : coarse) * heads * (head_dim + 16) * 4;
    i64 prefill = parts * (64 * 1024 + 64 * (2 * head_dim + KV_CHUNK + 64) * 4);
    return (decode > prefill ? decode : prefill) + 4096;
}
#endif
