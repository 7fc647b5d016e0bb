/* What an address is, and who touched it since when: bounds, inputs, races.
 *
 * Every word of shared memory and of writable buffers has a shade: its last write, its last reads; a word of which parts are accessed
 * has one for each byte from then on. Two accesses by different threads
 * of a block are ordered if a block barrier lies between (another epoch), or if both are of one warp and the later one knows of the
 * earlier by the warp's clocks. Accesses of different blocks of one launch are never ordered, unless the writer published them (a
 * __threadfence and an atomic) and the reader, after an atomic at the same place, reads them with load_fresh. */
#define _GNU_SOURCE
#include "impl.h"
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DYNAMIC_MOST = 256 << 10, MOST_REGIONS = 160, MOST_ACQUIRED = 8 };
enum region_kind { SHARED, BUFFER, CONSTANT };

struct shade {
    u32 write_epoch, write_clock, read_epoch, read_clock;
    u32 read_lanes;              /* of read_warp, all with read_clock; or with clocks of their own in list[read_list - 1] */
    u32 read_list;
    u32 foreign_epoch;           /* the last read of another block of this launch */
    u32 write_pc, read_pc;       /* offsets in the object */
    u32 atomic_epoch, atomic_clock, atomic_pc;   /* the last atomic */
    u16 write_thread, read_warp, read_other;   /* read_other: 1 + a reader of yet another warp */
    u16 atomic_thread, atomic_other;           /* atomic_other: 1 + another thread that changed it in the same epoch */
    u8 in_flight;                /* a copy to it has been issued and not waited for */
    u8 split;                    /* a word's: its bytes have shades of their own */
};

struct region {
    unsigned char *lo, *hi;
    enum region_kind kind;
    const struct simt_buffer *buffer;
    struct shade *word, *byte;   /* NULL: read only */
};

/* A block of this launch: its first epoch, and what it published at `place`: all that it wrote before `released`, in which also `thread`'s
 * own, and its warp's up to the clock `known`. */
struct begun {
    u32 at[3], epoch;
    const void *place;
    u32 released, known;
    int thread;
};

static struct memory {
    struct region region[MOST_REGIONS];
    int n;
    unsigned char *object_base;
    u32 (*list)[WARP];           /* clocks of single lanes, of this epoch only */
    int n_lists, cap_lists;
    u32 list_epoch;
    struct begun *block;         /* [blocks begun in this launch] */
    long cap_blocks;
    const void *acquired[MOST_ACQUIRED];
    int n_acquired;
} mem;

/* --- regions ----------------------------------------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const struct region *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void add_region(void *lo, size_t bytes, enum region_kind kind, const struct simt_buffer *b)
{
    if (!bytes) return;
    struct region *r = &mem.region[mem.n++];
    if (mem.n > MOST_REGIONS) abort();
    *r = (struct region){lo, (unsigned char *)lo + bytes, kind, b, NULL, NULL};
    if (kind != SHARED && (!b || !b->writable)) return;
    r->word = calloc(bytes / 4 + 1, sizeof *r->word);
    r->byte = calloc(bytes + 4, sizeof *r->byte);
    if (!r->word || !r->byte) abort();
}

int memory_open(const struct simt_call *c, struct q_err *e)
{
    memset(&mem, 0, sizeof mem);
    if (!m.dynamic) m.dynamic = mmap(NULL, DYNAMIC_MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m.dynamic == MAP_FAILED) return q_fail(e, Q_EMEM, "no memory for shared memory");
    for (int i = 0; i < c->n_buffers; i++) add_region(c->buffer[i].data, c->buffer[i].bytes, BUFFER, &c->buffer[i]);
    add_region(m.dynamic, DYNAMIC_MOST, SHARED, NULL);
    m.shared_bytes = 0;
    return Q_OK;
}

/* The segments of the object whose base is m.base: what it may read but never write. */
static int add_segments(struct dl_phdr_info *info, size_t size, void *arg)
{
    if ((unsigned char *)info->dlpi_addr != arg) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        unsigned char *lo = (unsigned char *)info->dlpi_addr + p->p_vaddr, *hi = lo + p->p_memsz;
        if (p->p_type != PT_LOAD) continue;
        if (m.shared_bytes && m.shared >= lo && m.shared < hi) {     /* static shared memory lies within */
            add_region(lo, (size_t)(m.shared - lo), CONSTANT, NULL);
            lo = m.shared + m.shared_bytes;
        }
        add_region(lo, (size_t)(hi - lo), CONSTANT, NULL);
    }
    return 1;
}

int memory_find_shared(void *object, struct q_err *e)
{
    union { void *p; void (*f)(unsigned char **, unsigned char **); } s = {dlsym(object, "simt_shared_range")};
    unsigned char *lo = NULL, *hi = NULL;
    Dl_info info;
    if (!s.p || !dladdr(s.p, &info)) return q_fail(e, Q_EINTERNAL, "no object of tests/simt");
    s.f(&lo, &hi);
    m.shared = lo;
    m.shared_bytes = lo ? (size_t)(hi - lo) : 0;
    mem.object_base = info.dli_fbase;
    if (m.shared_bytes) add_region(m.shared, m.shared_bytes, SHARED, NULL);
    dl_iterate_phdr(add_segments, mem.object_base);
    qsort(mem.region, (size_t)mem.n, sizeof *mem.region, by_address);
    return Q_OK;
}

void memory_close(void)
{
    for (int i = 0; i < mem.n; i++) free(mem.region[i].word), free(mem.region[i].byte);
    free(mem.list);
    free(mem.block);
    memset(&mem, 0, sizeof mem);
}

void memory_begin_phase(void)
{
    for (int i = 0; i < mem.n; i++)
        if (mem.region[i].lo == m.dynamic) mem.region[i].hi = m.dynamic + m.dynamic_bytes;
}

/* --- begin ------------------------------------------------------------------------------------------------------------------- */

/* A card leaves in shared memory what was there: here other bytes for each seed, NaN as floats for the first. */
void memory_begin_block(void)
{
    int fill = m.seed ? (int)(0x3D + 17 * m.seed) & 0xFF : 0xFF;
    if (m.block_number > mem.cap_blocks) {
        mem.cap_blocks = 2 * mem.cap_blocks + 64;
        mem.block = realloc(mem.block, (size_t)mem.cap_blocks * sizeof *mem.block);
        if (!mem.block) abort();
    }
    mem.block[m.block_number - 1] = (struct begun){{m.block[0], m.block[1], m.block[2]}, m.block_epoch, NULL, 0, 0, 0};
    mem.n_acquired = 0;
    if (m.shared_bytes) memset(m.shared, fill, m.shared_bytes);
    if (m.dynamic_bytes) memset(m.dynamic, fill, m.dynamic_bytes);
}

static struct region *find(const unsigned char *p)
{
    static int last, before;
    int lo = 0, hi = mem.n;
    if (last < mem.n && p >= mem.region[last].lo && p < mem.region[last].hi) return &mem.region[last];
    if (before < mem.n && p >= mem.region[before].lo && p < mem.region[before].hi) {
        int swap = last;
        last = before;
        before = swap;
        return &mem.region[last];
    }
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (mem.region[mid].lo <= p) lo = mid;
        else hi = mid;
    }
    before = last;
    last = lo;
    return p >= mem.region[lo].lo && p < mem.region[lo].hi ? &mem.region[lo] : NULL;
}

/* --- words for reports ----------------------------------------------------------------------------------------------------- */

static const char *verb(int access) { return access & ATOMIC ? "changes" : access & WRITE ? "writes" : "reads"; }

static void place(char *out, size_t cap, const struct region *r, const unsigned char *p)
{
    if (r->kind == SHARED) report_shared(out, cap, p);
    else if (r->kind == CONSTANT) snprintf(out, cap, "a constant of the program");
    else snprintf(out, cap, "%s, byte %zd of %zu", r->buffer->name, p - r->lo, r->buffer->bytes);
}

static _Noreturn void outside(const unsigned char *p, size_t bytes, int access, const void *pc)
{
    const struct region *near = NULL;
    size_t best = (size_t)-1;
    char where[160];
    for (int i = 0; i < mem.n; i++) {
        const struct region *r = &mem.region[i];
        size_t away = p < r->lo ? (size_t)(r->lo - p) : p >= r->hi ? (size_t)(p - r->hi) : 0;
        if (r->kind == CONSTANT || r->hi == r->lo || away >= best) continue;
        best = away;
        near = r;
    }
    if (!near || best > 1 << 20) snprintf(where, sizeof where, "address %p, far from any buffer", (const void *)p);
    else {
        size_t size = (size_t)(near->hi - near->lo);
        const char *name = near->kind != SHARED ? near->buffer->name : near->lo == m.dynamic ? "the dynamic shared memory" : "the static shared memory";
        snprintf(where, sizeof where, "at byte %td of the %zu of %s", p - near->lo, size, name);
    }
    thread_fail(pc, "out of bounds: %s %zu bytes %s", verb(access), bytes, where);
}

/* Block of an epoch of this launch. */
static const struct begun *block_of(u32 epoch)
{
    long lo = 0, hi = m.block_number;
    while (hi - lo > 1) {
        long mid = (lo + hi) / 2;
        if (mem.block[mid].epoch <= epoch) lo = mid;
        else hi = mid;
    }
    return &mem.block[lo];
}

static _Noreturn void race(const struct region *r, const unsigned char *p, int access, const char *did, int thread, u32 epoch, u32 pc, const void *now)
{
    char what[160], line[200], block[60] = "";
    int other = epoch < m.block_epoch;
    place(what, sizeof what, r, p);
    report_where(line, sizeof line, mem.object_base + pc);
    if (other) report_block(block, sizeof block, " of block ", block_of(epoch)->at);
    thread_fail(now, "race: %s %s, which thread %d%s %s at %s, %s", verb(access), what, thread, block, did, line,
                other ? "in the same launch" : thread / WARP == m.now->id / WARP ? "no warp operation of both between" : "no barrier between");
}

/* --- order ------------------------------------------------------------------------------------------------------------------- */

static int is_before(int thread, u32 epoch, u32 clock)
{
    const struct thread *t = m.now;
    return epoch != m.epoch || thread == t->id || (thread / WARP == t->id / WARP && clock <= clock_known(t, thread % WARP));
}

/* Of another block of this launch. Shared memory is a new one for each block. */
static int is_foreign(const struct region *r, u32 epoch) { return r->kind != SHARED && epoch >= m.phase_epoch && epoch < m.block_epoch; }

/* Whether the block that wrote in `epoch` published it before this one asked. */
static int is_published(const struct shade *s)
{
    const struct begun *b = block_of(s->write_epoch);
    int known = 0;
    for (int i = 0; i < mem.n_acquired; i++) known |= b->place && mem.acquired[i] == b->place;
    if (!known || s->write_epoch > b->released) return 0;
    return s->write_epoch < b->released || s->write_thread == b->thread || (s->write_thread / WARP == b->thread / WARP && s->write_clock <= b->known);
}

/* The lane of the reads so far that the present thread does not know to have ended, -1: none. */
static int reading_lane(const struct shade *s)
{
    if (s->read_warp != m.now->id / WARP) return __builtin_ctz(s->read_lanes);
    u32 others = s->read_lanes & ~(1u << lane_of(m.now));
    const struct clocks *c = &m.clocks[s->read_warp];
    if (!others || (c->equal && !s->read_list && s->read_clock <= c->n)) return -1;
    for (; others; others &= others - 1) {
        int l = __builtin_ctz(others);
        if ((s->read_list ? mem.list[s->read_list - 1][l] : s->read_clock) > clock_known(m.now, l)) return l;
    }
    return -1;
}

/* A list of clocks for s, equal ones at first, or those of another list. */
static void take_list(struct shade *s, u32 from)
{
    if (mem.list_epoch != m.epoch) mem.n_lists = 0, mem.list_epoch = m.epoch;
    if (mem.n_lists == mem.cap_lists) {
        mem.cap_lists = 2 * mem.cap_lists + 256;
        mem.list = realloc(mem.list, (size_t)mem.cap_lists * sizeof *mem.list);
        if (!mem.list) abort();
    }
    for (int l = 0; l < WARP; l++) mem.list[mem.n_lists][l] = from ? mem.list[from - 1][l] : s->read_clock;
    s->read_list = (u32)++mem.n_lists;
}

static void note_read(const struct region *r, struct shade *s, u32 pc)
{
    int warp = m.now->id / WARP, lane = lane_of(m.now);
    u32 clock = clock_known(m.now, lane);
    if (s->read_epoch != m.epoch) {
        if (is_foreign(r, s->read_epoch)) s->foreign_epoch = s->read_epoch;
        s->read_epoch = m.epoch;
        s->read_warp = (u16)warp;
        s->read_lanes = s->read_list = s->read_other = 0;
    }
    s->read_pc = pc;
    if (s->read_warp != warp) {
        s->read_other = (u16)(m.now->id + 1);
        return;
    }
    if (s->read_clock == clock && !s->read_list) {
        s->read_lanes |= 1u << lane;
        return;
    }
    if (s->read_lanes && reading_lane(s) < 0) s->read_lanes = s->read_list = 0;   /* all known: this read stands for them */
    if (s->read_lanes && !s->read_list && s->read_clock != clock) take_list(s, 0);
    if (s->read_list) mem.list[s->read_list - 1][lane] = clock;
    else s->read_clock = clock;
    s->read_lanes |= 1u << lane;
}

static void check_write(const struct region *r, const struct shade *s, const unsigned char *p, int access, const void *pc)
{
    int ok = is_foreign(r, s->write_epoch) ? (access & FRESH && is_published(s)) : is_before(s->write_thread, s->write_epoch, s->write_clock);
    if (!ok) race(r, p, access, "wrote", s->write_thread, s->write_epoch, s->write_pc, pc);
}

/* Atomics do not race with each other. A block that has had its own turn at a counter may read or reset it. */
static void check_atomics(const struct region *r, const struct shade *s, const unsigned char *p, int access, const void *pc)
{
    int ok = is_before(s->atomic_thread, s->atomic_epoch, s->atomic_clock) && (s->atomic_epoch != m.epoch || !s->atomic_other);
    int other = s->atomic_thread == m.now->id && s->atomic_other ? s->atomic_other - 1 : s->atomic_thread;
    if (access & ATOMIC || !s->atomic_epoch) return;
    if (is_foreign(r, s->atomic_epoch)) {
        ok = 0;
        for (int i = 0; i < mem.n_acquired; i++) ok |= mem.acquired[i] == p;
    }
    if (!ok) race(r, p, access, "changed", other, s->atomic_epoch, s->atomic_pc, pc);
}

static void note_atomic(struct shade *s, u32 pc)
{
    if (s->atomic_epoch != m.epoch) s->atomic_other = 0;
    else if (s->atomic_thread != m.now->id) s->atomic_other = (u16)(s->atomic_thread + 1);
    s->atomic_epoch = m.epoch;
    s->atomic_clock = clock_known(m.now, lane_of(m.now));
    s->atomic_thread = (u16)m.now->id;
    s->atomic_pc = pc;
}

static void check_reads(const struct region *r, const struct shade *s, const unsigned char *p, int access, const void *pc)
{
    u32 foreign = is_foreign(r, s->read_epoch) ? s->read_epoch : is_foreign(r, s->foreign_epoch) ? s->foreign_epoch : 0;
    if (foreign) race(r, p, access, "read", __builtin_ctz(s->read_lanes | 1u << 31) + s->read_warp * WARP, foreign, s->read_pc, pc);
    if (s->read_epoch != m.epoch) return;
    int lane = reading_lane(s);
    if (s->read_lanes && lane >= 0) race(r, p, access, "read", lane + s->read_warp * WARP, m.epoch, s->read_pc, pc);
    if (s->read_other) race(r, p, access, "read", s->read_other - 1, m.epoch, s->read_pc, pc);
}

static void shade_access(const struct region *r, struct shade *s, const unsigned char *p, int access, const void *pc)
{
    u32 offset = (u32)((const unsigned char *)pc - mem.object_base);
    if (s->in_flight && !(access & ISSUE)) {
        char what[160];
        place(what, sizeof what, r, p);
        thread_fail(pc, "%s %s, to which a cp_async that nobody has waited for is copying", verb(access), what);
    }
    check_write(r, s, p, access, pc);
    check_atomics(r, s, p, access, pc);
    if (!(access & (WRITE | ATOMIC))) return note_read(r, s, offset);
    check_reads(r, s, p, access, pc);
    if (access & ATOMIC) return note_atomic(s, offset);
    s->write_epoch = m.epoch;
    s->write_clock = clock_known(m.now, lane_of(m.now));
    s->write_thread = (u16)m.now->id;
    s->write_pc = offset;
    s->read_epoch = s->foreign_epoch = 0;
}

static void split(const struct region *r, size_t word)
{
    for (int i = 0; i < 4; i++) {
        struct shade *s = &r->byte[4 * word + (size_t)i];
        *s = r->word[word];
        if (s->read_list && s->read_epoch == m.epoch) take_list(s, s->read_list);
    }
    r->word[word].split = 1;
}

/* Word by word where whole words are accessed, so that most accesses are one. */
static void shade_range(const struct region *r, size_t first, size_t bytes, int access, const void *pc)
{
    for (size_t i = first, end = first + bytes; i < end;) {
        struct shade *w = &r->word[i / 4];
        int whole = i % 4 == 0 && end - i >= 4;
        if (!whole && !w->split) split(r, i / 4);
        if (w->split) {
            shade_access(r, &r->byte[i], r->lo + i, access, pc);
            i++;
        } else {
            shade_access(r, w, r->lo + i, access, pc);
            i += 4;
        }
    }
}

/* --- entry --------------------------------------------------------------------------------------------------------------------- */

void memory_access(const void *at, size_t bytes, int access, const void *pc)
{
    const unsigned char *p = at;
    const struct region *r = find(p);
    if (!r || p + bytes > r->hi) outside(p, bytes, access, pc);
    if (r->kind == BUFFER && !r->buffer->early && !m.now->has_waited) thread_fail(pc, "%s %s before pdl_wait()", verb(access), r->buffer->name);
    if (r->kind == CONSTANT && !(access & (WRITE | ATOMIC))) return;
    if (!r->word) {
        char what[160];
        if (!(access & (WRITE | ATOMIC))) return;
        place(what, sizeof what, r, p);
        thread_fail(pc, "%s %s, which is only to be read", verb(access), what);
    }
    shade_range(r, (size_t)(p - r->lo), bytes, access, pc);
}

void memory_flight(const void *at, int bytes, int in_flight)
{
    const struct region *r = find(at);
    size_t first = (size_t)((const unsigned char *)at - r->lo);
    for (size_t i = first; i < first + (size_t)bytes; i++) r->byte[i].in_flight = r->word[i / 4].in_flight = (u8)in_flight;
}

/* Fences count if the releasing thread's came in this epoch, after the barrier that gathered what the block wrote; or if all threads had
 * fenced when they came to that barrier. */
void memory_release(const void *p)
{
    int all = 1;
    for (int i = 0; i < m.threads; i++) all &= m.thread[i].wait == ENDED || m.thread[i].fenced + 1 >= m.epoch;
    if (m.now->fenced == m.epoch || all) {
        struct begun *b = &mem.block[m.block_number - 1];
        b->place = p;
        b->released = m.epoch;
        b->thread = m.now->id;
        b->known = ~0u;
        for (int l = 0; l < WARP; l++) b->known = clock_known(m.now, l) < b->known ? clock_known(m.now, l) : b->known;
    }
    for (int i = 0; i < mem.n_acquired; i++)
        if (mem.acquired[i] == p) return;
    if (mem.n_acquired < MOST_ACQUIRED) mem.acquired[mem.n_acquired++] = p;
}
