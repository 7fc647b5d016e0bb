/* Where the compiled kernel tells of what it does: the functions that g++ -fsanitize=thread and -fsanitize=alignment,bounds call,
 * and atomics, fences and fresh loads. Accesses to the thread's own stack are its registers. */
#include "impl.h"
#include <stdio.h>
#include <string.h>

#define PC __builtin_return_address(0)

static inline int is_own(const void *p) { return !m.now || (size_t)((const char *)p - m.now->stack) < STACK_BYTES; }

static void told(const void *p, size_t bytes, int access, const void *pc)
{
    if (!is_own(p)) memory_access(p, bytes, access, pc);
}

static void told_aligned(const void *p, size_t bytes, int access, const void *pc)
{
    if (is_own(p)) return;
    if ((size_t)p % bytes)
        thread_fail(pc, "%s of %zu bytes at an address %zu beyond a multiple of that", access == READ ? "read" : "write", bytes,
                    (size_t)p % bytes);
    memory_access(p, bytes, access, pc);
}

#define SIZE(n) \
    void __tsan_read##n(const void *p); \
    void __tsan_write##n(const void *p); \
    void __tsan_unaligned_read##n(const void *p); \
    void __tsan_unaligned_write##n(const void *p); \
    void __tsan_volatile_read##n(const void *p); \
    void __tsan_volatile_write##n(const void *p); \
    void __tsan_read##n(const void *p) { told_aligned(p, n, READ, PC); } \
    void __tsan_write##n(const void *p) { told_aligned(p, n, WRITE, PC); } \
    void __tsan_unaligned_read##n(const void *p) { told(p, n, READ, PC); } \
    void __tsan_unaligned_write##n(const void *p) { told(p, n, WRITE, PC); } \
    void __tsan_volatile_read##n(const void *p) { told_aligned(p, n, READ, PC); } \
    void __tsan_volatile_write##n(const void *p) { told_aligned(p, n, WRITE, PC); }
SIZE(1)
SIZE(2)
SIZE(4)
SIZE(8)
SIZE(16)

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_vptr_update(void *p, void *q);
void __tsan_vptr_read(void *p);
void __tsan_read_range(const void *p, size_t bytes);
void __tsan_write_range(const void *p, size_t bytes);
void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}
void __tsan_vptr_update(void *p, void *q) { (void)p, (void)q; }
void __tsan_vptr_read(void *p) { (void)p; }
void __tsan_read_range(const void *p, size_t bytes) { told(p, bytes, READ, PC); }
void __tsan_write_range(const void *p, size_t bytes) { told(p, bytes, WRITE, PC); }

/* --- alignment and bounds ---------------------------------------------------------------------------------------- */

struct location {
    const char *file;
    u32 line, column;
};
struct mismatch {
    struct location at;
    const void *type;
    unsigned char log_align, kind;
};

void __ubsan_handle_type_mismatch_v1(const struct mismatch *d, size_t p);
void __ubsan_handle_out_of_bounds(const struct location *at, size_t index);

void __ubsan_handle_type_mismatch_v1(const struct mismatch *d, size_t p)
{
    if (m.now && p % (1u << d->log_align))
        thread_fail(PC, "misaligned: an object of alignment %d at an address %zu beyond a multiple of it", 1 << d->log_align,
                    p % (1u << d->log_align));
}

void __ubsan_handle_out_of_bounds(const struct location *at, size_t index)
{
    if (m.now) thread_fail(PC, "out of bounds: index %lld of an array", (long long)index);
}

/* --- atomics and fences ------------------------------------------------------------------------------------------ */

enum atomic_op { ADD, MAX, MIN, EXCH, CAS, AND, OR, UMAX, UMIN, INC };

u32 simt_atomic(int op, u32 *p, u32 value, u32 compare);
u64 simt_atomic64(int op, u64 *p, u64 value, u64 compare);
void simt_threadfence(void);
f32 simt_fresh(const f32 *p);

static void begin_atomic(const void *p, size_t bytes, const void *pc)
{
    if (is_own(p)) thread_fail(pc, "an atomic on a local variable");
    if ((size_t)p % bytes) thread_fail(pc, "an atomic at an address %zu beyond a multiple of %zu", (size_t)p % bytes, bytes);
    memory_access(p, bytes, ATOMIC, pc);
    memory_release(p);
}

/* What is there afterwards, unsigned. */
static u64 after(enum atomic_op op, u64 old, u64 value, u64 compare)
{
    switch (op) {
    case ADD: return old + value;
    case UMAX: return old > value ? old : value;
    case UMIN: return old < value ? old : value;
    case CAS: return old == compare ? value : old;
    case AND: return old & value;
    case OR: return old | value;
    case INC: return old >= value ? 0 : old + 1;
    default: return value;
    }
}

/* Returns what was there. */
u32 simt_atomic(int op, u32 *p, u32 value, u32 compare)
{
    begin_atomic(p, 4, PC);
    u32 old = *p;
    if (op == MAX) *p = (i32)old > (i32)value ? old : value;
    else if (op == MIN) *p = (i32)old < (i32)value ? old : value;
    else *p = (u32)after((enum atomic_op)op, old, value, compare);
    return old;
}

u64 simt_atomic64(int op, u64 *p, u64 value, u64 compare)
{
    begin_atomic(p, 8, PC);
    u64 old = *p;
    *p = after((enum atomic_op)op, old, value, compare);
    return old;
}

void simt_threadfence(void) { m.now->fenced = m.epoch; }

f32 simt_fresh(const f32 *p)
{
    if (!is_own(p)) memory_access(p, sizeof *p, READ | FRESH, PC);
    return *p;
}
