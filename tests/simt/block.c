/* A grid: phases in order, blocks one after another in an order that the seed chooses, threads as fibers until all have ended. */
#include "impl.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct machine m;

struct simt_dim3 {
    u32 x, y, z;
};

struct simt_dim3 simt_thread_idx(void);
struct simt_dim3 simt_block_idx(void);
struct simt_dim3 simt_block_dim(void);
struct simt_dim3 simt_grid_dim(void);
void simt_syncthreads(int line);
void simt_pdl_wait(void);
u8 *simt_shared_dynamic(void);

struct simt_dim3 simt_thread_idx(void) { return (struct simt_dim3){(u32)m.now->id, 0, 0}; }
struct simt_dim3 simt_block_idx(void) { return (struct simt_dim3){m.block[0], m.block[1], m.block[2]}; }
struct simt_dim3 simt_block_dim(void) { return (struct simt_dim3){(u32)m.threads, 1, 1}; }
struct simt_dim3 simt_grid_dim(void) { return (struct simt_dim3){m.grid[0], m.grid[1], m.grid[2]}; }
u8 *simt_shared_dynamic(void) { return m.dynamic; }
void simt_pdl_wait(void) { m.now->has_waited = 1; }

/* --- the block barrier ------------------------------------------------------------------------------------------- */

/* Once every live thread has arrived, all go on in a new epoch. Threads that have ended count as arrived. */
void block_settle(void)
{
    struct thread *first = NULL;
    if (!m.live || m.at_barrier < m.live) return;
    for (int i = 0; i < m.threads; i++) {
        struct thread *t = &m.thread[i];
        if (t->wait != AT_BARRIER) continue;
        if (first && t->line != first->line) {
            char a[200], b[200];
            report_where(a, sizeof a, first->pc);
            report_where(b, sizeof b, t->pc);
            host_fail("divergent barrier: thread %d is at %s, thread %d at %s", first->id, a, t->id, b);
            return;
        }
        first = first ? first : t;
    }
    for (int i = 0; i < m.threads; i++)
        if (m.thread[i].wait == AT_BARRIER) set_wait(&m.thread[i], RUNS);
    m.at_barrier = 0;
    m.epoch++;
}

void simt_syncthreads(int line)
{
    struct thread *t = m.now;
    t->line = line;
    t->pc = __builtin_return_address(0);
    set_wait(t, AT_BARRIER);
    m.at_barrier++;
    block_settle();
    if (t->wait != RUNS || m.failed) thread_yield();
}

/* --- threads ----------------------------------------------------------------------------------------------------- */

/* The next lane of the warp that can run, upwards and round, for odd seeds downwards; NULL if there is none. */
static struct thread *next_lane(const struct thread *t)
{
    u32 runs = m.lanes[t->id / WARP][RUNS], above = lane_of(t) < WARP - 1 ? runs >> (lane_of(t) + 1) << (lane_of(t) + 1) : 0;
    u32 below = runs & ((1u << lane_of(t)) - 1);
    struct thread *w = &m.thread[t->id / WARP * WARP];
    if (!(above | below)) return NULL;
    if (m.seed & 1) return &w[31 - __builtin_clz(below ? below : above)];
    return &w[__builtin_ctz(above ? above : below)];
}

/* To the next lane straight away, to the host only for another warp. */
void thread_yield(void)
{
    struct thread *t = m.now, *next = m.failed ? NULL : next_lane(t);
    if (next) m.now = next;
    fiber_switch(&t->fiber, next ? &next->fiber : &m.host);
}

static void thread_main(void)
{
    struct thread *t = m.now;
    m.entry(m.call->args);
    if (!t->has_waited) thread_fail(NULL, "a thread ends without pdl_wait()");
    set_wait(t, ENDED);
    m.live--;
    block_settle();
    warp_settle(t->id / WARP);
    thread_yield();
    abort();
}

static int threads_open(struct q_err *e)
{
    if (m.thread) return Q_OK;
    matrix_open();
    m.thread = calloc(MOST_THREADS, sizeof *m.thread);
    char *stacks = mmap(NULL, (size_t)MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!m.thread || stacks == MAP_FAILED) return q_fail(e, Q_EMEM, "no memory for %d threads", MOST_THREADS);
    for (int i = 0; i < MOST_THREADS; i++) {
        m.thread[i].stack = stacks + (size_t)i * STACK_BYTES;
        mprotect(m.thread[i].stack, 4096, PROT_NONE);     /* an overflow ends in a signal */
    }
    return Q_OK;
}

static void thread_begin(int i)
{
    struct thread *t = &m.thread[i];
    t->wait = RUNS;
    t->id = i;
    m.lanes[i / WARP][RUNS] |= 1u << i % WARP;
    t->has_waited = 0;
    t->fenced = 0;
    t->n_async = t->group = 0;
    fiber_make(&t->fiber, t->stack, STACK_BYTES - (size_t)(i % 61) * 64, thread_main); /* frames in different sets of the cache */
}

/* Nobody can go on and somebody waits: with a block barrier complete once all live threads are there, it is one for a warp. */
static void report_stall(void)
{
    const struct thread *t = NULL, *missing = NULL;
    char at[200], there[240] = "has ended";
    for (int i = 0; i < m.threads && !t; i++)
        if (m.thread[i].wait == AT_WARP) t = &m.thread[i];
    if (!t) return host_fail("no thread can go on");
    for (int l = 0; l < WARP && !missing; l++) {
        const struct thread *o = &m.thread[t->id / WARP * WARP + l];
        if (t->mask >> l & 1 &&
            (l >= lanes_of(t->id / WARP) || o->wait != AT_WARP || o->line != t->line || o->op != t->op || o->mask != t->mask))
            missing = o;
    }
    report_where(at, sizeof at, t->pc);
    if (!missing) return host_fail("thread %d waits for ever at %s, %s", t->id, warp_op_name(t), at);
    if (missing - m.thread >= m.threads) snprintf(there, sizeof there, "does not exist");
    else if (missing->wait != ENDED) {
        char where[200];
        report_where(where, sizeof where, missing->pc);
        snprintf(there, sizeof there, "is at %s, %s", missing->wait == AT_BARRIER ? "__syncthreads" : warp_op_name(missing),
                 where);
    }
    host_fail("thread %d waits at %s with mask %08x, %s, for lane %d, which %s", t->id, warp_op_name(t), t->mask, at,
              (int)(missing - m.thread) % WARP, there);
}

/* --- blocks ------------------------------------------------------------------------------------------------------ */

/* i-th of n in the order of the seed: ascending, descending, or from some other on. */
static long in_order(long i, long n, unsigned long long seed)
{
    if (seed < 2) return seed ? n - 1 - i : i;
    return (long)((i + (long)(seed % (unsigned long long)n)) % n);
}

static void run_thread(struct thread *t)
{
    m.now = t;
    fiber_switch(&m.host, &t->fiber);
    m.now = NULL;
}

static void run_block(void)
{
    int warps = (m.threads + WARP - 1) / WARP, ran = 1;
    m.live = m.threads;
    m.at_barrier = 0;
    m.block_epoch = ++m.epoch;
    m.block_number++;
    warp_reset();
    memory_begin_block();
    for (int i = 0; i < m.threads; i++) thread_begin(i);
    while (m.live && !m.failed && ran) {
        ran = 0;
        for (int w = 0; w < warps && !m.failed; w++) {
            int warp = (int)in_order(w, warps, m.seed);
            for (int l = 0; l < lanes_of(warp) && !m.failed; l++) {
                struct thread *t = &m.thread[warp * WARP + (m.seed & 1 ? lanes_of(warp) - 1 - l : l)];
                if (t->wait != RUNS) continue;
                run_thread(t);
                ran = 1;
            }
        }
    }
    if (m.live && !m.failed) report_stall();
    async_drop();
}

/* A permutation of 0 .. n-1. */
static long *block_order(long n)
{
    long *order = malloc((size_t)n * sizeof *order);
    unsigned long long x = m.seed * 0x9E3779B97F4A7C15ull + 1;
    if (!order) abort();
    for (long i = 0; i < n; i++) order[i] = in_order(i, n, m.seed < 2 ? m.seed : 0);
    for (long i = n - 1; m.seed >= 2 && i > 0; i--) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        long j = (long)((x >> 33) % (unsigned long long)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    return order;
}

static void run_grid(void)
{
    long n = m.n_blocks = (long)m.grid[0] * m.grid[1] * m.grid[2];
    long *order = block_order(n);
    m.block_number = 0;
    m.phase_epoch = m.epoch + 1;
    for (long i = 0; i < n && !m.failed; i++) {
        long b = order[i];
        m.block[0] = (u32)(b % m.grid[0]);
        m.block[1] = (u32)(b / m.grid[0] % m.grid[1]);
        m.block[2] = (u32)(b / m.grid[0] / m.grid[1]);
        run_block();
    }
    free(order);
}

/* --- phases ------------------------------------------------------------------------------------------------------ */

/* The first number in __launch_bounds__( of the kernel. */
static int bound_of(const char *source, const char *kernel)
{
    char call[200];
    int bound = MOST_THREADS;
    snprintf(call, sizeof call, " %s(", kernel);
    const char *at = source ? strstr(source, call) : NULL, *p = at;
    while (p && p > source && strncmp(p, "__launch_bounds__(", 18) && p[-1] != '\n') p--;
    if (p) sscanf(p, "__launch_bounds__(%d", &bound);
    return bound;
}

static int find_entry(struct q_err *e)
{
    char symbol[200];
    snprintf(symbol, sizeof symbol, "SIMT_%s", m.kernel);
    union { void *p; void (*f)(const void *); } s = {dlsym(m.object, symbol)};
    m.entry = s.f;
    return s.p ? Q_OK : q_fail(e, Q_EINTERNAL, "%s has no kernel of that name", m.kernel);
}

/* Dynamic shared memory by compute capability, as gen/card.lua has it. */
static size_t most_shared(int cc)
{
    static const struct {
        int cc, kib;
    } most[] = {{70, 96},  {72, 96},   {75, 64},   {80, 163},  {86, 99},  {87, 163}, {89, 99},
                {90, 227}, {100, 227}, {103, 227}, {110, 227}, {120, 99}, {121, 99}};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++)
        if (most[i].cc == cc) return (size_t)most[i].kib << 10;
    return 48 << 10;
}

static int begin_phase(int i, struct q_err *e)
{
    const struct simt_call *c = m.call;
    m.phase = &c->launch->phase[i];
    m.threads = m.phase->threads;
    m.dynamic_bytes = (size_t)m.phase->smem;
    snprintf(m.kernel, sizeof m.kernel, i ? "%.160s_%d" : "%.160s", c->name, i + 1);
    int bound = bound_of(c->source, m.kernel);
    for (int a = 0; a < 3; a++) m.grid[a] = (u32)q_axis_blocks(&m.phase->grid[a], &c->extent);
    if (m.threads < 1 || m.threads > bound)
        return q_fail(e, Q_EINTERNAL, "%s: launched with %d threads, bound to %d", m.kernel, m.threads, bound);
    if (m.grid[1] > 65535 || m.grid[2] > 65535)
        return q_fail(e, Q_EINTERNAL, "%s: a grid of %u x %u x %u", m.kernel, m.grid[0], m.grid[1], m.grid[2]);
    size_t fixed = shared_bytes_of_kernel();
    if (fixed > 48 << 10) return q_fail(e, Q_EINTERNAL, "%s: %zu bytes of static shared memory", m.kernel, fixed);
    if (fixed + m.dynamic_bytes > most_shared(c->cc))
        return q_fail(e, Q_EINTERNAL, "%s: %zu bytes of shared memory on sm_%d", m.kernel, fixed + m.dynamic_bytes, c->cc);
    memory_begin_phase();
    return find_entry(e);
}

int simt_run(const struct simt_call *c, struct q_err *e)
{
    int rc = threads_open(e);
    m.object = NULL;
    m.call = c;
    m.seed = c->seed;
    m.failed = 0;
    m.run++;
    if (!rc) rc = memory_open(c, e);
    if (!rc && !(m.object = dlopen(c->object, RTLD_NOW | RTLD_LOCAL))) rc = q_fail(e, Q_EINTERNAL, "%s", dlerror());
    if (!rc) rc = memory_find_shared(m.object, e);
    for (int i = 0; !rc && i < c->launch->n; i++) {
        rc = begin_phase(i, e);
        if (!rc) run_grid();
        if (m.failed) rc = q_fail(e, m.error.code, "%s", m.error.text);
    }
    if (m.object) dlclose(m.object);
    memory_close();
    return rc;
}
