/* attn_pick: which pages of KV each block of 64 rows reads, for each KV head, when a long prompt's attention is made sparse.
 *
 * Attention of a row is concentrated: some pages have nearly all of its mass, and which ones differs from head to head: the first tokens of
 * all (sinks), the nearest, single tokens that every row looks at (vertical lines), fixed distances (slashes). This op estimates the mass of each
 * page and keeps the fewest pages that hold the share `mass` of it.
 *
 * Four rows of a block, the probes (rows 0, 21, 42, 63), stand for it: their scores with every key that they see are exact, since means of
 * queries and keys hide single tokens. That is a sixteenth of the scores and no values. First and last row are among them, so that a slash
 * meets both pages that it crosses.
 * A row that chose its pages keeps more of its own mass in them than others do of theirs. So probes 0 and 2 (A) and 1 and 3 (B) judge each
 * other: let a page's weight for A be the mean of its mass in A's rows, the most that any head of the group has. Pages of a weight of at least w
 * for A, and those that are always kept, have a mass in B's rows; likewise the other way round; each head takes the mean of the two, and the worst head
 * counts. w is the largest step (eight an octave, down to 2^-31) at which that reaches `mass`; pages of weight w for A or for B are kept. Where the two disagree or
 * attention is flat, no w will do until nearly all pages are kept; if none does, all are: heads that are not sparse fall back by themselves.
 * Always kept: the first page, the block's own and PICK_NEAR before them.
 * All pages are kept for a block that is not whole, one whose last row sees up to `dense` tokens, and one with a wanted row of its
 * sequence among its rows or the 64 after them: what is asked stands at the end of a prompt.
 *
 * Promises: ascending lists that hold every row's own page; the same lists for the same inputs, whatever the team, in the canonical class the same on
 * a CPU and a card. Does not promise the mass of rows that are no probes: it is estimated (README has what was measured). Lists depend on how
 * a prompt is cut into steps, whose first rows blocks begin with.
 *
 * In fp32. Mass of a page in a probe's row: exp(L - Z), L the logsumexp of the page's scores that it sees, Z that of all L. Sums over a page's tokens
 * or a sequence's pages, and dot products: 32 strided partials, folded by halves. Logarithm and exponential as in the kernels. Rotated K: q is
 * rotated as attention does it.
 * shape: heads, kv_heads, head_dim, fk as kv_append has it */
#ifndef ATTN_PICK_ARGS_H
#define ATTN_PICK_ARGS_H
enum { PICK_ROWS = 64, PICK_PROBES = 4, PICK_NEAR = 4 };

struct attn_pick_args {
    const struct step *step;
    const f32 *q;          /* [n_rows][heads][head_dim] */
    const void *pages_k;   /* of this layer, see kv_append */
    f32 scale, mass;       /* of q . K; the share to keep, above 0 and below 1 */
    i32 dense;
    f32 share;             /* above 0: not by mass, but this share of the pages, by chance (to time attention at a known share) */
    i32 *pick;             /* lists as attn_prefill takes them: [blocks][kv_heads][1 + step->page_stride] */
    void *work;            /* attn_pick_work() bytes, 64-byte aligned, shared by the team */
};

/* Blocks of PICK_ROWS rows of the sequences before `seq`. */
static inline int pick_first_block(const struct step *st, int seq)
{
    int n = 0;
    for (int i = 0; i < seq; i++) n += (st->seq_rows[i] + PICK_ROWS - 1) / PICK_ROWS;
    return n;
}

/* The step's row that is probe i of the block that begins with `row`. */
static inline int pick_probe(int row, int i) { return row + 21 * i; }

/* Whether the block that begins with the step's row `row`, of a sequence whose rows end before `end`, keeps all pages. */
static inline int pick_is_dense(const struct step *st, int row, int end, int dense)
{
    if (end - row < PICK_ROWS || st->kv[row + PICK_ROWS - 1] < dense) return 1;
    int last = row + 2 * PICK_ROWS < end ? row + 2 * PICK_ROWS : end;
    for (int i = 0; i < st->n_out; i++)
        if (st->out[i] >= row && st->out[i] < last) return 1;
    return 0;
}

/* Whether a block whose first row goes to KV index `kv` keeps the page whatever its mass. */
static inline int pick_is_kept(int page, int kv) { return page == 0 || page >= kv / KV_PAGE - PICK_NEAR; }

/* By chance: whether page `page` is among a share of all. */
static inline int pick_by_chance(f32 share, int block, int page)
{
    u32 x = ((u32)block * 0x9E3779B1u ^ (u32)page) * 0x85EBCA6Bu;
    x = (x ^ x >> 15) * 0xC2B2AE35u;
    return (f32)(x >> 8) < share * 16777216.0f;
}

/* A weight's step, 0 to 255: eight an octave, 0 below 2^-31. */
static inline int pick_step(i32 bits)
{
    i32 step = (bits >> 20) - (96 << 3);
    return step < 0 ? 0 : step > 255 ? 255 : step;
}

/* Of a block and KV head in work: f32 [PICK_PROBES * group][pitch] logsumexps and then masses, u8 [2][pitch] steps for A and B. */
static inline i64 pick_pitch(i64 pages) { return (pages + 31) / 32 * 32; }
static inline i64 pick_record(i64 group, i64 pages) { return pick_pitch(pages) * (PICK_PROBES * group * 4 + 2); }

/* Most blocks of a step. */
static inline i64 pick_blocks(i64 rows, i64 seqs) { return rows / PICK_ROWS + seqs; }
/* pages: of a full context. */
static inline i64 attn_pick_work(i64 rows, i64 seqs, i64 heads, i64 kv_heads, i64 pages)
{
    return pick_blocks(rows, seqs) * kv_heads * pick_record(heads / kv_heads, pages);
}
#endif
