/* All that an emitted C kernel may see, besides its op's args.h. Header-free, so that a kernel compiles in a third of the time.
 *
 * A kernel is `void NAME(const struct OP_args *a, struct team *t)`. Every member of a team calls it with its own `part`;
 * the kernel divides its work by part and parts (any parts >= 1), and may meet the others at `team_wait`. The caller puts a
 * barrier between kernels. Sizes fixed by the model are compiled in; sizes that change from step to step are read from
 * `struct step`, which lies in device memory, so that one launch list serves every step.
 *
 * The generator copies this file's text and args.h into the unit it hands to the compiler, so a change here is a new object.
 */
#ifndef Q_KERNEL_H
#define Q_KERNEL_H

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

/* Granules of the reduction trees (templates/README.md, Numerics) and of KV memory. KV_CHUNK is a multiple of KV_PAGE. */
enum { KV_PAGE = 64, KV_CHUNK = 256, K_CHUNK = 1024, Q8_BLOCK = 32 };

struct team {
    int part, parts;
    void (*wait)(struct team *);   /* all parts arrive before any goes on */
};

static inline void team_wait(struct team *t)
{
    if (t->parts > 1) t->wait(t);
}

/* This part's share of n items in grains of `grain`: [*begin, *end). Contiguous, ascending with part. */
static inline void team_share(const struct team *t, i64 n, i64 grain, i64 *begin, i64 *end)
{
    i64 grains = (n + grain - 1) / grain;
    i64 b = grains * t->part / t->parts * grain, e = grains * (t->part + 1) / t->parts * grain;
    *begin = b < n ? b : n;
    *end = e < n ? e : n;
}

/* Quantised activations, row-major: q [rows][K], d and s [rows][K/32]; x ~ q*d, s = sum of q over the block.
 * d = max|x| / 127 in fp32, q = round-half-even(x / d), computed as x * (127 / max|x|); max|x| up to 2^-120 counts as zero: d = 0, q = 0. */
struct act_q8 {
    i8 *q;
    f32 *d;
    i32 *s;
};

/* One recurrent segment: `rows` consecutive rows of a sequence from `row`. The state is read from slot `load` (-1: zeros) and
 * written to slot `store` and, if it is not -1, to `copy` too. A sequence's segments are consecutive and run in order. */
struct segment {
    i32 row, rows, load, store, copy;
};

/* How one output row is sampled. temp <= 0: the largest logit (lowest id on a tie). Sampling: penalties, bias, mask, then
 * top_k (<= 0: all), top_p (>= 1: all), min_p (<= 0: all) on the softmax at `temp`, then one draw by Philox4x32-10 keyed by
 * (seed, position). history: ids that count for the penalties, with how often each occurred. */
struct sampling {
    f32 temp, top_p, min_p;
    i32 top_k;
    f32 repeat, frequency, presence;   /* 1, 0, 0: off */
    u64 seed;
    i64 position;
    i32 n_history, n_bias;
    const i32 *history;                /* [n_history][2]: id, count */
    const i32 *bias_id;                /* [n_bias] */
    const f32 *bias;                   /* [n_bias], added to the logit */
    const u32 *mask;                   /* [ceil(vocab/32)], bit set: id allowed; NULL: all */
};

/* What one step is about; written by the engine before the step, read by kernels. Rows of a sequence are contiguous and in order. */
struct step {
    i32 n_rows, n_seqs, n_segments, n_out;
    const i32 *token;      /* [n_rows] id, or -1: the row is taken from `embd` */
    const f32 *embd;       /* [n_rows][n_embd], rows of images; may be NULL when no token is -1 */
    const i32 *pos;        /* [n_rows][3] rope positions t, h, w */
    const i32 *seq;        /* [n_rows] index among the step's sequences */
    const i32 *kv;         /* [n_rows] index in the sequence's KV where the row's own K and V go */
    const i32 *seq_row;    /* [n_seqs] first row */
    const i32 *seq_rows;   /* [n_seqs] rows of it in this step; its kv indices are kv[seq_row] + 0.. */
    const i32 *pages;      /* [n_seqs][page_stride] page ids, page j holds kv indices [64j, 64j+64) */
    i32 page_stride;
    const i32 *seq_segment;          /* [n_seqs + 1] first segment of each sequence, then n_segments */
    const struct segment *segments;  /* [n_segments] */
    const i32 *out;        /* [n_out] rows whose logits are wanted, ascending */
    const struct sampling *sampling; /* [n_out] */
};

#endif
