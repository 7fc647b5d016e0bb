/* What an address is: the buffers of the case, shared memory, the program's constants. Anything else is out of bounds. */
#define _GNU_SOURCE
#include "memory.h"
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DYNAMIC_MOST = 256 << 10, MOST_REGIONS = 160 };

static struct {
    struct region region[MOST_REGIONS];      /* by address */
    int n;
    unsigned char *object_base;
} mem;

struct shades shades;

unsigned char *memory_object_base(void) { return mem.object_base; }

/* --- regions ----------------------------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const struct region *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static size_t words_of(size_t bytes) { return bytes / 4 + 1; }

/* Shades for every region that may be written, from one piece of memory that later runs use again as it is: epochs never return,
 * so old shades say nothing. */
static int make_shades(struct q_err *e)
{
    enum { BOTH = sizeof(struct shade) + sizeof(struct rare) };
    size_t n = 0;
    for (int i = 0; i < mem.n; i++)
        if (mem.region[i].shaded) n += 5 * words_of(mem.region[i].bytes);
    if (n > shades.cap) {
        if (shades.all) munmap(shades.all, shades.cap * BOTH);
        void *room = mmap(NULL, 2 * n * BOTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED) return shades = (struct shades){0}, q_fail(e, Q_EMEM, "no memory to watch %zu words", n / 5);
        shades = (struct shades){room, (struct rare *)((struct shade *)room + 2 * n), 2 * n};
    }
    struct shade *next = shades.all;
    for (int i = 0; i < mem.n; i++) {
        struct region *r = &mem.region[i];
        if (!r->shaded) continue;
        r->word = next;
        r->byte = next + words_of(r->bytes);
        next += 5 * words_of(r->bytes);
    }
    return Q_OK;
}

static void add_region(void *lo, size_t bytes, enum region_kind kind, const struct simt_buffer *b)
{
    if (!bytes) return;
    struct region *r = &mem.region[mem.n++];
    if (mem.n > MOST_REGIONS) abort();
    *r = (struct region){lo, (unsigned char *)lo + bytes, bytes, kind, b, kind == SHARED || (b && b->writable), NULL, NULL};
}

int memory_open(const struct simt_call *c, struct q_err *e)
{
    memset(&mem, 0, sizeof mem);
    if (!m.dynamic)
        m.dynamic = mmap(NULL, DYNAMIC_MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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
    return make_shades(e);
}

void memory_close(void)
{
    shade_close();
    memset(&mem, 0, sizeof mem);
}

void memory_begin_phase(void)
{
    for (int i = 0; i < mem.n; i++)
        if (mem.region[i].lo == m.dynamic) mem.region[i].hi = m.dynamic + m.dynamic_bytes;
}

/* A card leaves in shared memory what was there: here other bytes for each seed, NaN as floats for the first. */
void memory_begin_block(void)
{
    int fill = m.seed ? (int)(0x3D + 17 * m.seed) & 0xFF : 0xFF;
    shade_begin_block();
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

/* --- words for reports ------------------------------------------------------------------------------------------- */

const char *access_verb(int access) { return access & ATOMIC ? "changes" : access & WRITE ? "writes" : "reads"; }

void region_place(char *out, size_t cap, const struct region *r, const unsigned char *p)
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
        const char *shared = near->lo == m.dynamic ? "the dynamic shared memory" : "the static shared memory";
        const char *name = near->kind == SHARED ? shared : near->buffer->name;
        snprintf(where, sizeof where, "at byte %td of the %zu of %s", p - near->lo, size, name);
    }
    thread_fail(pc, "out of bounds: %s %zu bytes %s", access_verb(access), bytes, where);
}

/* --- accesses ---------------------------------------------------------------------------------------------------- */

void memory_access(const void *at, size_t bytes, int access, const void *pc)
{
    const unsigned char *p = at;
    const struct region *r = find(p);
    if (!r || p + bytes > r->hi) outside(p, bytes, access, pc);
    int early = r->kind == BUFFER && r->buffer->early && !(access & (WRITE | ATOMIC));
    if (r->kind == BUFFER && !early && !m.now->has_waited)
        thread_fail(pc, "%s %s before pdl_wait()", access_verb(access), r->buffer->name);
    if (r->kind == CONSTANT && !(access & (WRITE | ATOMIC))) return;
    if (!r->word) {
        char what[160];
        if (!(access & (WRITE | ATOMIC))) return;
        region_place(what, sizeof what, r, p);
        thread_fail(pc, "%s %s, which is only to be read", access_verb(access), what);
    }
    shade_range(r, (size_t)(p - r->lo), bytes, access, pc);
}

static void set_flight(struct shade *s, int in_flight) { s->has = (u8)(in_flight ? s->has | IN_FLIGHT : s->has & ~IN_FLIGHT); }

void memory_flight(const void *at, int bytes, int in_flight)
{
    const struct region *r = find(at);
    size_t first = (size_t)((const unsigned char *)at - r->lo);
    for (size_t i = first; i < first + (size_t)bytes; i++) {
        set_flight(&r->byte[i], in_flight);
        set_flight(&r->word[i / 4], in_flight);
    }
}
