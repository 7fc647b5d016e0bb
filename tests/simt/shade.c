/* Who touched a byte since when: races. Every word of shared memory and of writable buffers has a shade: its last write, its
 * last reads; a word of which parts are accessed has one for each byte from then on. Two accesses by different threads of a
 * block are ordered if a block barrier lies between (another epoch), or if both are of one warp and the later one knows of the
 * earlier by the warp's clocks (of a write by __syncwarp, of a read by any warp operation). Accesses of different blocks of one
 * launch are never ordered, unless the writer published them (a __threadfence and an atomic) and the reader, after an atomic at
 * the same place, reads them with load_fresh. */
#include "memory.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_ACQUIRED = 8 };

/* A block of this launch: its first epoch, and what it published at `place`: all that it wrote before `released`, in which also
 * `thread`'s own, and its warp's up to the clock `known`. */
struct begun {
    u32 at[3], epoch;
    const void *place;
    u32 released, known;
    int thread;
};

static struct {
    u32 (*list)[WARP];           /* clocks of single lanes, of this epoch only */
    int n_lists, cap_lists;
    u32 list_epoch;
    struct begun *block;         /* [blocks begun in this launch] */
    long cap_blocks;
    const void *acquired[MOST_ACQUIRED];
    int n_acquired;
} past;

void shade_begin_block(void)
{
    if (m.block_number > past.cap_blocks) {
        past.cap_blocks = 2 * past.cap_blocks + 64;
        past.block = realloc(past.block, (size_t)past.cap_blocks * sizeof *past.block);
        if (!past.block) abort();
    }
    past.block[m.block_number - 1] = (struct begun){{m.block[0], m.block[1], m.block[2]}, m.block_epoch, NULL, 0, 0, 0};
    past.n_acquired = 0;
}

void shade_close(void)
{
    free(past.list);
    free(past.block);
    memset(&past, 0, sizeof past);
}

/* Block of an epoch of this launch. */
static const struct begun *block_of(u32 epoch)
{
    long lo = 0, hi = m.block_number;
    while (hi - lo > 1) {
        long mid = (lo + hi) / 2;
        if (past.block[mid].epoch <= epoch) lo = mid;
        else hi = mid;
    }
    return &past.block[lo];
}

static _Noreturn void race(const struct region *r, const unsigned char *p, int access, const char *did, int thread, u32 epoch,
                           u32 pc, const void *now)
{
    char what[160], line[200], block[60] = "";
    int other = epoch < m.block_epoch;
    region_place(what, sizeof what, r, p);
    report_where(line, sizeof line, memory_object_base() + pc);
    const char *without = thread / WARP == m.now->id / WARP ? "no __syncwarp of both between" : "no barrier between";
    if (other) report_block(block, sizeof block, " of block ", block_of(epoch)->at);
    thread_fail(now, "race: %s %s, which thread %d%s %s at %s, %s", access_verb(access), what, thread, block, did, line,
                other ? "in the same launch" : without);
}

/* --- what is rare -------------------------------------------------------------------------------------------------- */

static u32 list_of(const struct shade *s) { return s->has & HAS_LIST ? rare_of(s)->read_list : 0; }

static u32 foreign_of(const struct shade *s) { return s->has & HAS_FOREIGN ? rare_of(s)->foreign_epoch : 0; }

static int other_of(const struct shade *s) { return s->has & HAS_OTHER ? rare_of(s)->read_other : 0; }

static inline int is_split(const struct shade *s) { return s->has & HAS_SPLIT && rare_of(s)->split == m.run; }

static void set_list(struct shade *s, u32 list)
{
    s->has |= HAS_LIST;
    rare_of(s)->read_list = list;
}

static void forget(struct shade *s, int has) { s->has &= (u8)~has; }

/* --- order ------------------------------------------------------------------------------------------------------- */

static int is_before(int thread, u32 epoch, u32 clock)
{
    const struct thread *t = m.now;
    return epoch != m.epoch || thread == t->id || (thread / WARP == t->id / WARP && clock <= clock_seen(t, thread % WARP));
}

/* Of another block of this launch. Shared memory is a new one for each block. */
static int is_foreign(const struct region *r, u32 epoch)
{
    return r->kind != SHARED && epoch >= m.phase_epoch && epoch < m.block_epoch;
}

/* Whether the block that wrote in `epoch` published it before this one asked. */
static int is_published(const struct shade *s)
{
    const struct begun *b = block_of(s->write_epoch);
    int known = 0;
    for (int i = 0; i < past.n_acquired; i++) known |= b->place && past.acquired[i] == b->place;
    if (!known || s->write_epoch > b->released) return 0;
    return s->write_epoch < b->released || s->write_thread == b->thread ||
        (s->write_thread / WARP == b->thread / WARP && s->write_clock <= b->known);
}

/* The lane of the reads so far that the present thread does not know to have ended, -1: none. */
static int reading_lane(const struct shade *s)
{
    if (s->read_warp != m.now->id / WARP) return __builtin_ctz(s->read_lanes);
    u32 others = s->read_lanes & ~(1u << lane_of(m.now));
    const struct clocks *c = &m.met[s->read_warp];
    u32 list = list_of(s);
    if (!others || (c->equal && !list && s->read_clock <= c->n)) return -1;
    for (; others; others &= others - 1) {
        int l = __builtin_ctz(others);
        if ((list ? past.list[list - 1][l] : s->read_clock) > clock_met(m.now, l)) return l;
    }
    return -1;
}

/* A list of clocks for s, equal ones at first, or those of another list. */
static void take_list(struct shade *s, u32 from)
{
    if (past.list_epoch != m.epoch) past.n_lists = 0, past.list_epoch = m.epoch;
    if (past.n_lists == past.cap_lists) {
        past.cap_lists = 2 * past.cap_lists + 256;
        past.list = realloc(past.list, (size_t)past.cap_lists * sizeof *past.list);
        if (!past.list) abort();
    }
    for (int l = 0; l < WARP; l++) past.list[past.n_lists][l] = from ? past.list[from - 1][l] : s->read_clock;
    set_list(s, (u32)++past.n_lists);
}

static void note_read(const struct region *r, struct shade *s, u32 pc)
{
    int warp = m.now->id / WARP, lane = lane_of(m.now);
    u32 clock = clock_met(m.now, lane);
    if (s->read_epoch != m.epoch) {
        if (is_foreign(r, s->read_epoch)) {
            s->has |= HAS_FOREIGN;
            rare_of(s)->foreign_epoch = s->read_epoch;
        }
        s->read_epoch = m.epoch;
        s->read_warp = (u8)warp;
        s->read_lanes = 0;
        forget(s, HAS_LIST | HAS_OTHER);
    }
    s->read_pc = pc;
    if (s->read_warp != warp) {
        s->has |= HAS_OTHER;
        rare_of(s)->read_other = (u16)(m.now->id + 1);
        return;
    }
    if (s->read_clock == clock && !list_of(s)) {
        s->read_lanes |= 1u << lane;
        return;
    }
    if (s->read_lanes && reading_lane(s) < 0) {   /* all known: this read stands for them */
        s->read_lanes = 0;
        forget(s, HAS_LIST);
    }
    if (s->read_lanes && !list_of(s) && s->read_clock != clock) take_list(s, 0);
    if (list_of(s)) past.list[list_of(s) - 1][lane] = clock;
    else s->read_clock = clock;
    s->read_lanes |= 1u << lane;
}

static void check_write(const struct region *r, const struct shade *s, const unsigned char *p, int access, const void *pc)
{
    int ok = is_foreign(r, s->write_epoch) ? (access & FRESH && is_published(s))
                                           : is_before(s->write_thread, s->write_epoch, s->write_clock);
    if (!ok) race(r, p, access, "wrote", s->write_thread, s->write_epoch, s->write_pc, pc);
}

/* Atomics do not race with each other. A block that has had its own turn at a counter may read or reset it. */
static void check_atomics(const struct region *r, const struct shade *s, const unsigned char *p, int access, const void *pc)
{
    if (access & ATOMIC || !(s->has & HAS_ATOMIC)) return;
    const struct rare *a = rare_of(s);
    int ok = is_before(a->atomic_thread, a->atomic_epoch, a->atomic_clock) && (a->atomic_epoch != m.epoch || !a->atomic_other);
    int other = a->atomic_thread == m.now->id && a->atomic_other ? a->atomic_other - 1 : a->atomic_thread;
    if (is_foreign(r, a->atomic_epoch)) {
        ok = 0;
        for (int i = 0; i < past.n_acquired; i++) ok |= past.acquired[i] == p;
    }
    if (!ok) race(r, p, access, "changed", other, a->atomic_epoch, a->atomic_pc, pc);
}

static void note_atomic(struct shade *s, u32 pc)
{
    struct rare *a = rare_of(s);
    if (!(s->has & HAS_ATOMIC) || a->atomic_epoch != m.epoch) a->atomic_other = 0;
    else if (a->atomic_thread != m.now->id) a->atomic_other = (u16)(a->atomic_thread + 1);
    s->has |= HAS_ATOMIC;
    a->atomic_epoch = m.epoch;
    a->atomic_clock = clock_seen(m.now, lane_of(m.now));
    a->atomic_thread = (u16)m.now->id;
    a->atomic_pc = pc;
}

static void check_reads(const struct region *r, const struct shade *s, const unsigned char *p, int access, const void *pc)
{
    u32 foreign = is_foreign(r, s->read_epoch) ? s->read_epoch : is_foreign(r, foreign_of(s)) ? foreign_of(s) : 0;
    if (foreign)
        race(r, p, access, "read", __builtin_ctz(s->read_lanes | 1u << 31) + s->read_warp * WARP, foreign, s->read_pc, pc);
    if (s->read_epoch != m.epoch) return;
    int lane = reading_lane(s);
    if (s->read_lanes && lane >= 0) race(r, p, access, "read", lane + s->read_warp * WARP, m.epoch, s->read_pc, pc);
    if (other_of(s)) race(r, p, access, "read", other_of(s) - 1, m.epoch, s->read_pc, pc);
}

/* What an access of the present thread has in common for all its words. */
struct visit {
    u32 epoch, seen, met, pc, me;  /* its own clocks; me: the lane's bit */
    u32 foreign_from;              /* epochs from here to before block_epoch are of other blocks */
    u16 thread;
    u8 warp;
};

static struct visit visit_begin(const struct region *r, const void *pc)
{
    const struct thread *t = m.now;
    u32 offset = (u32)((const unsigned char *)pc - memory_object_base());
    return (struct visit){m.epoch, clock_seen(t, lane_of(t)), clock_met(t, lane_of(t)), offset, 1u << lane_of(t),
                          r->kind == SHARED ? ~0u : m.phase_epoch, (u16)t->id, (u8)(t->id / WARP)};
}

static inline int is_of_others(const struct visit *v, u32 epoch) { return epoch >= v->foreign_from && epoch < m.block_epoch; }

/* Most accesses have nothing to be held against: these two note what they can and leave the rest (0) to shade_access.
 * A read: no write in this epoch, and no reads but of this warp at this clock. */
static inline int quick_read(const struct visit *v, struct shade *s)
{
    if (s->has & (IN_FLIGHT | HAS_ATOMIC) || s->write_epoch == v->epoch || is_of_others(v, s->write_epoch)) return 0;
    if (s->read_epoch == v->epoch) {
        if (s->has & HAS_LIST || s->read_warp != v->warp || s->read_clock != v->met) return 0;
        s->read_lanes |= v->me;
        return 1;
    }
    if (is_of_others(v, s->read_epoch)) return 0;
    s->read_epoch = v->epoch;
    s->read_clock = v->met;
    s->read_warp = v->warp;
    s->read_lanes = v->me;
    s->has &= HAS_FOREIGN | HAS_SPLIT;
    s->read_pc = v->pc;
    return 1;
}

/* A write: nobody else in this epoch. */
static inline int quick_write(const struct visit *v, struct shade *s)
{
    if (s->has & (IN_FLIGHT | HAS_ATOMIC | HAS_FOREIGN) || s->read_epoch == v->epoch) return 0;
    if (s->write_epoch == v->epoch && s->write_thread != v->thread) return 0;
    if (is_of_others(v, s->write_epoch) || is_of_others(v, s->read_epoch)) return 0;
    s->write_epoch = v->epoch;
    s->write_clock = v->seen;
    s->write_thread = v->thread;
    s->write_pc = v->pc;
    s->read_epoch = 0;
    return 1;
}

static void shade_access(const struct region *r, struct shade *s, const unsigned char *p, int access, const void *pc)
{
    u32 offset = (u32)((const unsigned char *)pc - memory_object_base());
    if (s->has & IN_FLIGHT && !(access & ISSUE)) {
        char what[160];
        region_place(what, sizeof what, r, p);
        thread_fail(pc, "%s %s, to which a cp_async that nobody has waited for is copying", access_verb(access), what);
    }
    check_write(r, s, p, access, pc);
    check_atomics(r, s, p, access, pc);
    if (!(access & (WRITE | ATOMIC))) return note_read(r, s, offset);
    check_reads(r, s, p, access, pc);
    if (access & ATOMIC) return note_atomic(s, offset);
    s->write_epoch = m.epoch;
    s->write_clock = clock_seen(m.now, lane_of(m.now));
    s->write_thread = (u16)m.now->id;
    s->write_pc = offset;
    s->read_epoch = 0;
    forget(s, HAS_FOREIGN);
}

static void split(const struct region *r, size_t word)
{
    for (int i = 0; i < 4; i++) {
        struct shade *s = &r->byte[4 * word + (size_t)i];
        *s = r->word[word];
        *rare_of(s) = *rare_of(&r->word[word]);
        if (list_of(s) && s->read_epoch == m.epoch) take_list(s, list_of(s));
    }
    r->word[word].has |= HAS_SPLIT;
    rare_of(&r->word[word])->split = m.run;
}

/* Word by word where whole words are accessed, so that most accesses are one. */
void shade_range(const struct region *r, size_t first, size_t bytes, int access, const void *pc)
{
    struct visit v = visit_begin(r, pc);
    for (size_t i = first, end = first + bytes, step; i < end; i += step) {
        struct shade *s = &r->word[i / 4];
        int whole = i % 4 == 0 && end - i >= 4;
        if (!whole && !is_split(s)) split(r, i / 4);
        step = is_split(s) ? 1 : 4;
        if (step == 1) s = &r->byte[i];
        if (access == READ ? quick_read(&v, s) : access == WRITE && quick_write(&v, s)) continue;
        shade_access(r, s, r->lo + i, access, pc);
    }
}

/* Fences count if the releasing thread's came in this epoch, after the barrier that gathered what the block wrote; or if all
 * threads had fenced when they came to that barrier. */
void memory_release(const void *p)
{
    int all = 1;
    for (int i = 0; i < m.threads; i++) all &= m.thread[i].wait == ENDED || m.thread[i].fenced + 1 >= m.epoch;
    if (m.now->fenced == m.epoch || all) {
        struct begun *b = &past.block[m.block_number - 1];
        b->place = p;
        b->released = m.epoch;
        b->thread = m.now->id;
        b->known = ~0u;
        for (int l = 0; l < WARP; l++) b->known = clock_seen(m.now, l) < b->known ? clock_seen(m.now, l) : b->known;
    }
    for (int i = 0; i < past.n_acquired; i++)
        if (past.acquired[i] == p) return;
    if (past.n_acquired < MOST_ACQUIRED) past.acquired[past.n_acquired++] = p;
}
