/* What a warp does together. A lane that comes to such an operation waits until every lane that its mask names has come to the
 * same one; then the results of all are filled in, and the lanes know that what the others read before is read. What they wrote
 * is seen after __syncwarp alone: as CUDA has it, other warp operations are no barrier of memory. */
#include "impl.h"
#include <string.h>

void simt_syncwarp(u32 mask, int line);
u32 simt_ballot(u32 mask, int predicate, int line);
u64 simt_shuffle(int op, u32 mask, u64 value, int arg, int width, int line);
void simt_mma(int op, const u32 *in, int n_in, u32 *out, int n_out, int line);
void simt_ldmatrix(int op, const void *row, u32 *out, int n_out, int line);

const char *warp_op_name(const struct thread *t)
{
    static const char *const name[] = {"__syncwarp",       "a vote",          "__shfl_sync", "__shfl_up_sync",
                                       "__shfl_down_sync", "__shfl_xor_sync", "ldmatrix",    "mma"};
    return t->wait == AT_BARRIER ? "__syncthreads" : name[t->op];
}

/* --- clocks ------------------------------------------------------------------------------------------------------ */

void warp_reset(void)
{
    for (int w = 0; w * WARP < m.threads; w++) {
        m.synced[w].equal = m.met[w].equal = 1;
        m.synced[w].n = m.met[w].n = 1;
        memset(m.lanes[w], 0, sizeof m.lanes[w]);
    }
}

/* Lanes that no longer run take part in the join as those that do: what they did is done. */
static void clocks_join(struct clocks *c, u32 mask, u32 all)
{
    u32 most[WARP] = {0};
    if ((mask & all) == all) {
        for (int l = 0; !c->equal && l < WARP; l++)
            if (c->at[l][l] > c->n) c->n = c->at[l][l];
        c->n++;
        c->equal = 1;
        return;
    }
    for (int l = 0; c->equal && l < WARP; l++)
        for (int o = 0; o < WARP; o++) c->at[l][o] = c->n + (l == o);
    c->equal = 0;
    for (int l = 0; l < WARP; l++)
        for (int o = 0; mask >> l & 1 && o < WARP; o++)
            if (c->at[l][o] > most[o]) most[o] = c->at[l][o];
    for (int l = 0; l < WARP; l++) {
        if (!(mask >> l & 1)) continue;
        memcpy(c->at[l], most, sizeof most);
        c->at[l][l]++;
    }
}

/* --- results ----------------------------------------------------------------------------------------------------- */

enum { POISON = 0x7FBADBAD };   /* what a shuffle gets from a lane that is not there: a NaN */

static int source_lane(const struct thread *t)
{
    int lane = lane_of(t), first = lane & ~(t->width - 1), last = first + t->width - 1, from = lane;
    switch (t->op) {
    case SHFL_IDX: return first + (t->arg & (t->width - 1));
    case SHFL_UP: from = lane - t->arg; return from < first ? lane : from;
    case SHFL_DOWN: from = lane + t->arg; return from > last ? lane : from;
    default: from = lane ^ t->arg; return from > last ? lane : from;
    }
}

static void compute(struct thread *warp, const struct thread *t)
{
    u32 here = t->mask & m.lanes[t->id / WARP][AT_WARP], votes = 0;
    if (t->op == LDMATRIX || t->op == MMA) return matrix_compute(warp);
    for (u32 left = here; t->op == BALLOT && left; left &= left - 1)
        if (warp[__builtin_ctz(left)].in[0]) votes |= 1u << __builtin_ctz(left);
    for (u32 left = here; t->op != SYNCWARP && left; left &= left - 1) {
        struct thread *o = &warp[__builtin_ctz(left)];
        if (o->op == BALLOT) {
            o->out[0] = votes;
            continue;
        }
        int from = source_lane(o);
        for (int i = 0; i < 2; i++) o->out[i] = here >> from & 1 ? warp[from].in[i] : POISON;
    }
}

/* --- meeting ----------------------------------------------------------------------------------------------------- */

/* Whether every lane that t's mask names has come; those that have ended are not waited for, except by matrix instructions. */
static int is_complete(const struct thread *warp, const struct thread *t)
{
    const u32 *lanes = m.lanes[t->id / WARP];
    u32 left = t->mask & ~(t->op < LDMATRIX ? lanes[ENDED] : 0);
    if (left & ~lanes[AT_WARP]) return 0;
    for (; left; left &= left - 1) {
        const struct thread *o = &warp[__builtin_ctz(left)];
        if (o->op != t->op || o->mask != t->mask || o->line != t->line) return 0;
    }
    return 1;
}

static void finish(struct thread *warp, const struct thread *t)
{
    const u32 *lanes = m.lanes[t->id / WARP];
    u32 mask = t->mask, here = mask & lanes[AT_WARP],
        all = lanes_of(t->id / WARP) == WARP ? ~0u : (1u << lanes_of(t->id / WARP)) - 1;
    compute(warp, t);
    for (u32 left = here; left; left &= left - 1) set_wait(&warp[__builtin_ctz(left)], RUNS);
    clocks_join(&m.met[t->id / WARP], mask | lanes[ENDED], all);
    if (t->op == SYNCWARP) clocks_join(&m.synced[t->id / WARP], mask | lanes[ENDED], all);
}

void warp_settle(int warp)
{
    struct thread *w = &m.thread[warp * WARP];
    int lanes = lanes_of(warp);
    for (int l = 0; l < lanes; l++)
        if (w[l].wait == AT_WARP && is_complete(w, &w[l])) finish(w, &w[l]);
}

static void meet(struct thread *t, enum warp_op op, u32 mask, int line, const void *pc)
{
    struct thread *w = &m.thread[t->id / WARP * WARP];
    t->op = op;
    t->mask = mask;
    t->line = line;
    t->pc = pc;
    if (!(mask >> lane_of(t) & 1))
        thread_fail(pc, "%s with mask %08x, which does not name lane %d", warp_op_name(t), mask, lane_of(t));
    set_wait(t, AT_WARP);
    if (is_complete(w, t)) finish(w, t);
    else thread_yield();
}

/* --- called by the kernel ---------------------------------------------------------------------------------------- */

/* A mask of ~0 in a last warp of fewer lanes names those that exist. */
static u32 existing(u32 mask)
{
    int lanes = lanes_of(m.now->id / WARP);
    return mask == ~0u && lanes < WARP ? (1u << lanes) - 1 : mask;
}

void simt_syncwarp(u32 mask, int line) { meet(m.now, SYNCWARP, existing(mask), line, __builtin_return_address(0)); }

u32 simt_ballot(u32 mask, int predicate, int line)
{
    m.now->in[0] = predicate != 0;
    meet(m.now, BALLOT, existing(mask), line, __builtin_return_address(0));
    return m.now->out[0];
}

u64 simt_shuffle(int op, u32 mask, u64 value, int arg, int width, int line)
{
    struct thread *t = m.now;
    t->in[0] = (u32)value;
    t->in[1] = (u32)(value >> 32);
    t->arg = arg;
    t->width = width;
    if (width < 1 || width > WARP || width & (width - 1))
        thread_fail(__builtin_return_address(0), "a shuffle of width %d", width);
    meet(t, (enum warp_op)(SHFL_IDX + op), existing(mask), line, __builtin_return_address(0));
    return t->out[0] | (u64)t->out[1] << 32;
}

void simt_mma(int op, const u32 *in, int n_in, u32 *out, int n_out, int line)
{
    struct thread *t = m.now;
    memcpy(t->in, in, (size_t)n_in * sizeof *in);
    t->arg = op;
    meet(t, MMA, ~0u, line, __builtin_return_address(0));
    memcpy(out, t->out, (size_t)n_out * sizeof *out);
}

/* A lane whose address the form does not use may pass any. */
void simt_ldmatrix(int op, const void *row, u32 *out, int n_out, int line)
{
    struct thread *t = m.now;
    const void *pc = __builtin_return_address(0);
    t->arg = op;
    t->row = row;
    if (lane_of(t) < 8 * n_out) {
        if ((size_t)row % 16) thread_fail(pc, "ldmatrix from a row at %zu bytes beyond a multiple of 16", (size_t)row % 16);
        memory_access(row, 16, READ, pc);
    }
    meet(t, LDMATRIX, ~0u, line, pc);
    memcpy(out, t->out, (size_t)n_out * sizeof *out);
}
