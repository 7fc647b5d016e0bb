/* The machine that runs a kernel's text: one block at a time, a fiber a thread, all in one host thread. Shared by its own files.
 *
 * block.c runs a grid and the block barrier, warp.c what a warp does together, matrix.c the matrix instructions, memory.c knows
 * what an address is and shade.c who touched it, tsan.c is where the compiled kernel reports its accesses, async.c copies beside
 * the thread, report.c and symbols.c word a failure. */
#ifndef SIMT_IMPL_H
#define SIMT_IMPL_H

#include "simt.h"
#include <stddef.h>

enum { WARP = 32, MOST_THREADS = 1024, STACK_BYTES = 128 << 10, MOST_IN = 20, MOST_OUT = 8, MOST_ASYNC = 256 };

/* --- fibers (fiber.c) -------------------------------------------------------------------------------------------- */

#if !defined __x86_64__
#include <ucontext.h>
#endif
struct fiber {
#if defined __x86_64__
    void *sp;
#else
    ucontext_t context;
#endif
};
/* A fiber that begins with `entry` (which never returns) on the given stack. */
void fiber_make(struct fiber *f, char *stack, size_t bytes, void (*entry)(void));
void fiber_switch(struct fiber *from, struct fiber *to);

/* --- threads ----------------------------------------------------------------------------------------------------- */

enum wait { RUNS, AT_BARRIER, AT_WARP, ENDED, WAITS };
enum warp_op { SYNCWARP, BALLOT, SHFL_IDX, SHFL_UP, SHFL_DOWN, SHFL_XOR, LDMATRIX, MMA };
enum matrix_op { S8_8816, S8_16832, F16_1688, F16_16816, F16_884, LD_X2, LD_X4, LD_X2_TRANS, LD_X4_TRANS };

/* A copy in flight: cp.async between its issue and the wait of its thread. */
struct async {
    unsigned char *to;
    const unsigned char *from;      /* NULL: zeros */
    int bytes, group;
};

struct thread {
    struct fiber fiber;
    char *stack;
    enum wait wait;
    int id, has_waited;              /* pdl_wait */
    u32 fenced;                      /* the epoch of its last __threadfence */
    /* where it waits: the source line tells call sites apart, the address is for the report */
    int line;
    const void *pc;
    enum warp_op op;
    int arg, width;                  /* a shuffle's; arg of LDMATRIX and MMA: which */
    u32 mask, in[MOST_IN], out[MOST_OUT];
    const unsigned char *row;        /* ldmatrix */
    struct async async[MOST_ASYNC];
    int n_async, group;              /* group: of the copies issued now */
};

/* Clocks of a warp's lanes: `at[l][m]` is the clock of lane m up to which lane l knows what it did. While every sync names all
 * lanes they are equal, at[l][l] = n + 1 and the others n, and `at` is not kept. */
struct clocks {
    int equal;
    u32 n, at[WARP][WARP];
};

struct machine {
    struct fiber host;
    struct thread *thread;           /* [MOST_THREADS] */
    struct thread *now;              /* NULL: the host */
    struct clocks synced[MOST_THREADS / WARP];   /* of each warp, by __syncwarp */
    struct clocks met[MOST_THREADS / WARP];      /* by any warp operation */
    int threads, live, at_barrier;
    u32 lanes[MOST_THREADS / WARP][WAITS];   /* which lanes of a warp are in each state of `enum wait` */
    const struct simt_call *call;
    const struct q_phase *phase;
    void *object;                    /* of dlopen */
    char kernel[176];                /* name of the phase's kernel */
    void (*entry)(const void *);
    unsigned long long seed;
    u32 block[3], grid[3];
    unsigned char *shared, *dynamic; /* static and dynamic shared memory */
    size_t shared_bytes, dynamic_bytes;
    u32 epoch;                       /* the interval between two block barriers; never the same twice */
    u32 block_epoch, phase_epoch;    /* the first of this block, of this launch */
    long n_blocks, block_number;     /* blocks begun in this launch */
    u32 run;                         /* counts calls of simt_run */
    int failed;
    struct q_err error;
};
extern struct machine m;

static inline int lane_of(const struct thread *t) { return t->id % WARP; }
static inline int lanes_of(int warp) { return m.threads - warp * WARP < WARP ? m.threads - warp * WARP : WARP; }

static inline void set_wait(struct thread *t, enum wait wait)
{
    u32 *lanes = m.lanes[t->id / WARP], me = 1u << lane_of(t);
    lanes[t->wait] &= ~me;
    lanes[wait] |= me;
    t->wait = wait;
}

/* Gives the processor back until somebody sets `wait` to RUNS. */
void thread_yield(void);
/* Tries every rendezvous of the warp. */
void warp_settle(int warp);
void warp_reset(void);
void block_settle(void);
static inline u32 clock_of(const struct clocks *c, int lane, int of) { return c->equal ? c->n + (lane == of) : c->at[lane][of]; }
/* The clock of lane `of` up to which `t`, of the same warp, sees what it wrote; and up to which it knows its reads to be over. */
static inline u32 clock_seen(const struct thread *t, int of) { return clock_of(&m.synced[t->id / WARP], lane_of(t), of); }
static inline u32 clock_met(const struct thread *t, int of) { return clock_of(&m.met[t->id / WARP], lane_of(t), of); }
void matrix_open(void);
/* Fills the outputs of the lanes of a complete matrix operation. */
void matrix_compute(struct thread *warp);

/* --- memory ------------------------------------------------------------------------------------------------------ */

enum access { READ = 1, WRITE = 2, ATOMIC = 4, FRESH = 8, ISSUE = 16 };

int memory_open(const struct simt_call *c, struct q_err *e);
/* Where the loaded object has its static shared memory and its constants. */
int memory_find_shared(void *object, struct q_err *e);
void memory_close(void);
void memory_begin_phase(void);
void memory_begin_block(void);
/* Everything that a thread does to memory comes here. Does not return if it is wrong. */
void memory_access(const void *p, size_t bytes, int access, const void *pc);
/* A copy was issued to p (1) or has landed (0). */
void memory_flight(const void *p, int bytes, int in_flight);
/* Publishes what the block has written so far, and takes what others have published, through an atomic at p. */
void memory_release(const void *p);
void async_drop(void);

/* --- reports ----------------------------------------------------------------------------------------------------- */

/* The line in a thread: it and its machine stop for good. `pc` (or NULL) adds the source line. */
_Noreturn void thread_fail(const void *pc, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same from the host. */
void host_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "line 31 'row[i] = x[i];'" for a return address in the kernel. */
void report_where(char *out, size_t cap, const void *pc);
/* " of block 3", " of block (3, 1, 0)" in a grid of more dimensions. */
void report_block(char *out, size_t cap, const char *before, const u32 block[3]);
/* "shared row, byte 48 of 128", and the static shared memory of the phase's kernel (symbols.c). */
void report_shared(char *out, size_t cap, const void *p);
size_t shared_bytes_of_kernel(void);
unsigned char *memory_object_base(void);
const char *warp_op_name(const struct thread *t);

#endif
