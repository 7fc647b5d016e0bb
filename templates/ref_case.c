/* A case: the buffers of one trial, each between canaries, and the comparison of two cases.
 * Built with AddressSanitizer the canaries are poisoned instead, so that a read beyond a buffer shows as well. */
#define _GNU_SOURCE
#include "templates/ref_case_impl.h"
#include "templates/ref_pieces.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

enum { CANARY = 256, CANARY_BYTE = 0xA5, MOST_BUFFERS = 128 };

struct buffer {
    const char *name;
    enum ref_role role;
    enum ref_elem elem;
    size_t count, bytes;
    double tol, half;               /* half: absolute; 0: tol holds for every class */
    unsigned char *block, *data;    /* block: owned unless borrowed or an arena's, canary, data, canary; NULL in a copy */
    int borrowed;
    struct ref_pieces kept;         /* of a copy: what the data was; no pieces in a case that runs, nor of a shared buffer */
};

struct ref_case {
    int n;
    const struct ref_case *from;    /* may be borrowed from; NULL: nothing */
    struct ref_arena *arena;        /* where its buffers lie; NULL: in memory of their own */
    struct buffer buf[MOST_BUFFERS];
};

static const size_t elem_bytes[] = {[REF_F32] = 4, [REF_F16] = 2, [REF_I32] = 4, [REF_I8] = 1, [REF_BYTES] = 1, [REF_POINTERS] = 1};

struct ref_case *ref_case_open(void)
{
    struct ref_case *c = calloc(1, sizeof *c);
    if (!c) abort();
    return c;
}

struct ref_case *ref_case_open_in(struct ref_arena *a)
{
    struct ref_case *c = ref_case_open();
    c->arena = a;
    return c;
}

static size_t block_bytes(const struct buffer *b) { return (2 * CANARY + b->bytes + 63) / 64 * 64; }

static void guard(struct buffer *b)
{
    memset(b->block, CANARY_BYTE, CANARY);
    memset(b->data + b->bytes, CANARY_BYTE, CANARY);
#ifdef __SANITIZE_ADDRESS__
    __asan_poison_memory_region(b->block, CANARY);
    __asan_poison_memory_region(b->data + b->bytes, CANARY);
#endif
}

static void unguard(const struct buffer *b)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(b->block, 2 * CANARY + b->bytes);
#else
    (void)b;
#endif
}

void ref_case_close(struct ref_case *c)
{
    if (!c) return;
    for (int i = 0; i < c->n; i++) {
        ref_pieces_free(&c->buf[i].kept);
        if (c->buf[i].borrowed) continue;
        if (c->buf[i].block) unguard(&c->buf[i]);
        if (!c->arena) free(c->buf[i].block);
    }
    free(c);
}

static int is_bytes(const struct buffer *b) { return b->elem == REF_BYTES || b->elem == REF_POINTERS; }
static int is_shared(const struct buffer *b) { return b->role == REF_IN && is_bytes(b); }
/* Begins as 0xFF and is put back before each call: one memory serves two cases that do not run at once. */
static int is_scratch(const struct buffer *b) { return (b->role == REF_OUT || b->role == REF_WORK) && b->bytes >= (size_t)64 << 20; }

/* As a device's memory does (runtime/device_cpu.c): a weight is there sooner, and read as in a model. */
static void ask_huge_pages(unsigned char *block, size_t bytes)
{
    uintptr_t page = 4096, from = ((uintptr_t)block + page - 1) / page * page, to = ((uintptr_t)block + bytes) / page * page;
    if (bytes >= (size_t)4 << 20) madvise((void *)from, to - from, MADV_HUGEPAGE);
}

static unsigned char *borrow_scratch(const struct ref_case *from, const struct buffer *b)
{
    for (int i = 0; from && is_scratch(b) && i < from->n; i++) {
        const struct buffer *f = &from->buf[i];
        if (f->role == b->role && f->bytes == b->bytes && !strcmp(f->name, b->name)) return f->block;
    }
    return NULL;
}

static struct buffer *add_buffer(struct ref_case *c, const char *name, enum ref_role role, enum ref_elem elem, size_t count, double tol)
{
    if (c->n == MOST_BUFFERS) abort();
    c->buf[c->n] = (struct buffer){ .name = name, .role = role, .elem = elem, .count = count, .bytes = count * elem_bytes[elem], .tol = tol };
    return &c->buf[c->n++];
}

void *ref_buf(struct ref_case *c, const char *name, enum ref_role role, enum ref_elem elem, size_t count, double tol)
{
    struct buffer *b = add_buffer(c, name, role, elem, count, tol);
    b->block = borrow_scratch(c->from, b);
    b->borrowed = b->block != NULL;
    if (!b->block && !(b->block = c->arena ? ref_arena_take(c->arena, block_bytes(b)) : aligned_alloc(64, block_bytes(b)))) abort();
    if (!b->borrowed && !c->arena) ask_huge_pages(b->block, block_bytes(b));
    b->data = b->block + CANARY;
    if (!is_shared(b)) ref_blank(b->data, b->bytes);
    unguard(b);
    guard(b);
    return b->data;
}

void ref_case_borrow(struct ref_case *c, const struct ref_case *from) { c->from = from; }

void *ref_buf_borrowed(struct ref_case *c, const char *name, size_t bytes)
{
    for (int i = 0; c->from && i < c->from->n; i++) {
        const struct buffer *b = &c->from->buf[i];
        if (!is_shared(b) || strcmp(b->name, name) || b->bytes < bytes) continue;
        if (c->n == MOST_BUFFERS) abort();
        c->buf[c->n] = *b;
        c->buf[c->n++].borrowed = 1;
        return b->data;
    }
    return NULL;
}

void ref_buf_half(struct ref_case *c, const void *data, double most)
{
    for (int i = 0; i < c->n; i++)
        if (c->buf[i].data == data) c->buf[i].half = most;
}

struct ref_case *ref_case_copy(const struct ref_case *c)
{
    struct ref_case *copy = ref_case_open();
    for (int i = 0; i < c->n; i++) {
        struct buffer *b = &copy->buf[copy->n++];
        *b = c->buf[i];
        b->block = NULL;
        if (is_shared(b)) continue;
        ref_pieces_take(&b->kept, b->data, b->bytes);
        b->data = NULL;
    }
    return copy;
}

void ref_case_restore(struct ref_case *c, const struct ref_case *from)
{
    for (int i = 0; i < c->n; i++) {
        if (!is_shared(&c->buf[i])) ref_pieces_put(&from->buf[i].kept, c->buf[i].data);
        unguard(&c->buf[i]);
        guard(&c->buf[i]);
    }
}

static int canaries_intact(const struct buffer *b)
{
    unguard(b);
    for (int i = 0; i < CANARY; i++)
        if (b->block[i] != CANARY_BYTE || b->data[b->bytes + (size_t)i] != CANARY_BYTE) return 0;
    return 1;
}

/* Elements do not straddle pieces: REF_PIECE is a multiple of their sizes. */
static const void *element(const struct buffer *b, size_t i)
{
    size_t at = i * elem_bytes[b->elem];
    return b->kept.piece ? b->kept.piece[at / REF_PIECE] + at % REF_PIECE : b->data + at;
}

static double value(const struct buffer *b, size_t i)
{
    const void *x = element(b, i);
    switch (b->elem) {
    case REF_F32: return *(const f32 *)x;
    case REF_F16: return ref_half_to_f32(*(const u16 *)x);
    case REF_I32: return *(const i32 *)x;
    case REF_I8: return *(const i8 *)x;
    default: return *(const unsigned char *)x;
    }
}

static int same_bytes(const struct buffer *want, const struct buffer *got)
{
    return want->kept.piece ? ref_pieces_same(&want->kept, got->data) : ref_same(want->data, got->data, want->bytes);
}

static int is_float(const struct buffer *b) { return b->elem == REF_F32 || b->elem == REF_F16; }

static double largest(const struct buffer *b)
{
    double max = 0;
    for (size_t i = 0; i < b->count; i++) {
        double v = fabs(value(b, i));
        if (isfinite(v) && v > max) max = v;
    }
    return max;
}

/* NaN equals NaN, an infinity itself. */
static int within(double want, double got, double most)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    return want == got || fabs(got - want) <= most;
}

static double accepted(const struct buffer *want, const char *numerics)
{
    if (want->half > 0 && !strncmp(numerics, "half", 4)) return want->half;
    return is_float(want) ? want->tol * largest(want) : want->tol;
}

static int compare_values(const struct buffer *want, const struct buffer *got, const char *numerics, struct q_err *e)
{
    if (same_bytes(want, got)) return Q_OK;
    double most = accepted(want, numerics);
    for (size_t i = 0; i < want->count; i++) {
        double w = value(want, i), g = value(got, i);
        if (!within(w, g, most))
            return q_fail(e, Q_EINTERNAL, "%s[%zu] of %zu: expected %.9g within %.3g, found %.9g", want->name, i, want->count, w, most, g);
    }
    return Q_OK;
}

/* Buffers that the kernel may not write. Structures hold addresses, which differ between cases. */
static int is_input(const struct buffer *b) { return b->role == REF_IN && !is_bytes(b); }
static int is_output(const struct buffer *b) { return b->role == REF_OUT || b->role == REF_INOUT; }

int ref_case_compare(const struct ref_case *want, const struct ref_case *got, const char *numerics, struct q_err *e)
{
    if (want->n != got->n) return q_fail(e, Q_EINTERNAL, "cases of %d and %d buffers", want->n, got->n);
    for (int i = 0; i < want->n; i++) {
        const struct buffer *w = &want->buf[i], *g = &got->buf[i];
        if (!canaries_intact(g)) return q_fail(e, Q_EINTERNAL, "%s: written outside of its %zu bytes", g->name, g->bytes);
        if (is_input(w) && !same_bytes(w, g)) return q_fail(e, Q_EINTERNAL, "%s: an input was written", w->name);
        if (is_output(w) && w->bytes != g->bytes) return q_fail(e, Q_EINTERNAL, "%s: cases of different sizes", w->name);
        int rc = numerics && is_output(w) ? compare_values(w, g, numerics, e) : Q_OK;
        if (rc) return rc;
    }
    return Q_OK;
}

static unsigned long long hash_buffer(const struct buffer *b, unsigned long long h)
{
    return b->kept.piece ? ref_pieces_hash(&b->kept, h) : ref_hash(b->data, b->bytes, h);
}

unsigned long long ref_case_hash(const struct ref_case *c)
{
    unsigned long long h = 0xCBF29CE484222325ull;
    for (int i = 0; i < c->n; i++)
        if (is_output(&c->buf[i])) h = hash_buffer(&c->buf[i], h);
    return h;
}

size_t ref_case_written(const struct ref_case *c)
{
    size_t n = 0;
    for (int i = 0; i < c->n; i++) n += is_output(&c->buf[i]) ? c->buf[i].bytes : 0;
    return n;
}

size_t ref_case_bytes(const struct ref_case *c)
{
    size_t n = 0;
    for (int i = 0; i < c->n; i++) n += c->buf[i].bytes;
    return n;
}

int ref_case_blocks(const struct ref_case *c) { return c->n; }

struct ref_block ref_case_block(const struct ref_case *c, int i)
{
    const struct buffer *b = &c->buf[i];
    unguard(b);
    return (struct ref_block){b->block, block_bytes(b), CANARY, CANARY + b->bytes, b->role == REF_IN, b->elem == REF_POINTERS, is_shared(b)};
}

int ref_case_view(const struct ref_case *c, int i, struct ref_view *v)
{
    if (i < 0 || i >= c->n) return -1;
    *v = (struct ref_view){c->buf[i].name, c->buf[i].role, c->buf[i].data, c->buf[i].bytes};
    return 0;
}
