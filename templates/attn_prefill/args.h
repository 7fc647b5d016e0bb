/* attn_prefill, attn_decode: o[r][h] = sigmoid(gate[r][h]) * sum_t softmax_t(scale * q[r][h] . K[t][j]) V[t][j],  t = 0..kv[r],
 * j = h / (heads/kv_heads), causal by KV index, through page tables; written as fp32, as int8 blocks, or both.
 * Both ops take these arguments; prefill tiles rows, decode splits KV.
 * shape: heads, kv_heads, head_dim, fk, fv = f16 | f32 | q8 | r4 | r3 as kv_append has them, out = f32 | q8 | both
 * (q8 needs head_dim % 32 == 0: no block reaches into the next head)
 * Rotated K: q is rotated in the same way and order (kv_append), which leaves the scores as they are. Rotated V: the sum o of all weighed
 * values is rotated back, sign * (H o) / sqrt(W) in stages as kv_append has them, before it is divided by the sum of weights and gated.
 * canonical class: per KV_CHUNK of 256 tokens (aligned to KV index 0): scores by 32 strided partials and pairwise tree, of keys as fp32
 * (scale * code is exact); max of the chunk first, then exp and sums ascending in t; chunks merged in ascending order by (m, l, o) within
 * groups of attn_group() consecutive chunks, then groups in ascending order in the same way. */
#ifndef ATTN_ARGS_H
#define ATTN_ARGS_H
/* Rows of a block that `pick` has a list for; of partial results of attn_prefill at most: rows times parts. */
enum { ATTN_PICK_ROWS = 64, ATTN_PARTIALS = 1024 };

struct attn_args {
    const struct step *step;
    const f32 *q;          /* [n_rows][heads][head_dim] */
    const f32 *qg;         /* [n_rows][heads][2*head_dim]: the gate is the second half of each head */
    const void *pages_k, *pages_v;  /* of this layer, see kv_append */
    f32 scale;
    f32 *o;                /* [n_rows][heads][head_dim] */
    struct act_q8 oq;      /* [n_rows][heads * head_dim] */
    void *work;            /* attn_work() bytes, 64-byte aligned, shared by the team */
    /* attn_prefill, NULL: all pages. [blocks of ATTN_PICK_ROWS rows][kv_heads][1 + step->page_stride]: a count, then that many indexes of
     * pages of the row's sequence, ascending: a row of the block sees those of its tokens that lie in them. Each sequence's rows of the
     * step are cut into blocks from its first row on, sequences in order. */
    const i32 *pick;
};

/* Results (o, max, sum) that attn_decode leaves for a row and head at most: fewer rows may have more. */
static inline int attn_splits(i64 rows) { return rows <= 16 ? 256 : 64; }

/* Tokens of a span of a row that sees `tokens`, where spans are of `chunk` and their multiples: a function of the row's own length,
 * given the step's kind of rows. */
static inline i64 attn_span(i64 tokens, i64 chunk, i64 rows)
{
    i64 most = chunk * attn_splits(rows);
    return (tokens + most - 1) / most * chunk;
}

/* Chunks that the canonical class merges before groups are merged: 64 groups at most; 1 up to 16384 tokens. */
static inline i64 attn_group(i64 tokens) { return (tokens + 64 * KV_CHUNK - 1) / (64 * KV_CHUNK); }

/* Scratch that any candidate must do with: an upper bound that does not depend on the winner and does not grow with a long context.
 * rows: most rows in one step (attn_decode: at most 64 rows are ever given); ctx: most KV tokens of a sequence. attn_decode leaves
 * (o, max, sum) for each row, head and span, attn_prefill for each row, head and part: at most
 * 8 parts, and ATTN_PARTIALS rows times parts; a span has at least 64 tokens where the step has up to 16 rows, else at least KV_CHUNK. */
static inline i64 attn_work(i64 rows, i64 heads, i64 head_dim, i64 ctx, i64 parts)
{
    i64 few = rows < 16 ? rows : 16, more = rows < 64 ? rows : 64, fine = (ctx + 63) / 64, coarse = (ctx + KV_CHUNK - 1) / KV_CHUNK;
    few *= fine < 256 ? fine : 256;
    more *= coarse < 64 ? coarse : 64;
    i64 decode = (few > more ? few : more) * heads * (head_dim + 16) * 4;
    i64 partial = 8 * rows < ATTN_PARTIALS ? 8 * rows : ATTN_PARTIALS;
    i64 cut = partial * heads * (head_dim + 16) * 4;
    i64 prefill = parts * (64 * 1024 + 64 * (4 * head_dim + KV_CHUNK + 64) * 4);
    prefill = prefill > cut ? prefill : cut;
    return (decode > prefill ? decode : prefill) + 4096;
}
#endif
