/* What a loaded kernel is, and how one is launched on a GPU: what its candidate fixes (threads, shared memory) and how its grid follows
 * the extent of a step.
 *
 * An op's candidate is one kernel or a few run one after the other with the same arguments (phases: partial sums, then their merge).
 * Blocks along an axis = mul * ceil(rows / per_rows) * ceil(seqs / per_seqs) * ceil(ctx / per_ctx); a `per_` of 0 leaves its factor out.
 * Extents are buckets, not lengths, so that one captured graph serves every step of a bucket: blocks beyond the step's real rows,
 * which lie in device memory, end at once.
 */
#ifndef Q_LAUNCH_H
#define Q_LAUNCH_H

/* Upper bounds of what a list's kernels will find: rows they see, sequences of the step, KV tokens of a sequence with this step's. */
struct q_extent {
    int rows, seqs, ctx;
};

struct q_axis {
    int mul, per_rows, per_seqs, per_ctx;
};

enum { Q_PHASES = 4 };

struct q_phase {
    int threads;           /* a block, one-dimensional */
    int smem;              /* bytes of dynamic shared memory a block */
    struct q_axis grid[3];
};

/* n = 0: a CPU kernel. Phase i's symbol is the kernel's name, with _2, _3, _4 behind it from the second on. */
struct q_phases {
    int n;
    struct q_phase phase[Q_PHASES];
};

/* Kernels of a CPU take only this from outside: see kernel.h. */
struct team;
typedef void (*q_kernel_fn)(const void *args, struct team *team);

/* A loaded kernel. Where a problem was tuned for steps of several sizes, it is the first of a chain, smallest first. */
struct q_kernel {
    void *library;         /* owned: what its object became on the device; NULL for a function of the program itself */
    q_kernel_fn fn;        /* CPU */
    void *function[Q_PHASES];   /* CUDA: a CUfunction a phase */
    struct q_phases phases;
    int most_rows, most_ctx;    /* of the steps that it is for, buckets; 0: any */
    const struct q_kernel *larger;   /* borrowed: for larger steps; NULL: this one serves them */
};

/* The one of a chain that serves an extent. */
static inline const struct q_kernel *q_kernel_for(const struct q_kernel *k, const struct q_extent *x)
{
    while (k->larger && ((k->most_rows && x->rows > k->most_rows) || (k->most_ctx && x->ctx > k->most_ctx))) k = k->larger;
    return k;
}

/* Blocks along one axis, at least 1. */
static inline long q_axis_blocks(const struct q_axis *a, const struct q_extent *x)
{
    long n = a->mul;
    if (a->per_rows) n *= (x->rows + a->per_rows - 1) / a->per_rows;
    if (a->per_seqs) n *= (x->seqs + a->per_seqs - 1) / a->per_seqs;
    if (a->per_ctx) n *= (x->ctx + a->per_ctx - 1) / a->per_ctx;
    return n < 1 ? 1 : n;
}

static inline int q_bucket(int n, int least, int factor)
{
    while (least < n) least *= factor;
    return least;
}

/* The bucket that an extent falls into: rows and sequences to powers of two, KV tokens to 1024 times a power of four. */
static inline struct q_extent q_extent_bucket(const struct q_extent *x)
{
    return (struct q_extent){q_bucket(x->rows, 1, 2), q_bucket(x->seqs, 1, 2), q_bucket(x->ctx, 1024, 4)};
}

#endif
