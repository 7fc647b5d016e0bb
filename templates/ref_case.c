/* A case: the buffers of one trial, each between canaries, and the comparison of two cases.
 * Built with AddressSanitizer the canaries are poisoned instead, so that a read beyond a buffer shows as well. */
#define _GNU_SOURCE
#include "templates/ref.h"
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
    unsigned char *block, *data;    /* block: owned unless borrowed, canary, data, canary */
    int borrowed;
};

struct ref_case {
    int n;
    const struct ref_case *from;    /* may be borrowed from; NULL: nothing */
    struct buffer buf[MOST_BUFFERS];
};

static const size_t elem_bytes[] = {[REF_F32] = 4, [REF_F16] = 2, [REF_I32] = 4, [REF_I8] = 1, [REF_BYTES] = 1, [REF_POINTERS] = 1};

struct ref_case *ref_case_open(void)
{
    struct ref_case *c = calloc(1, sizeof *c);
    if (!c) abort();
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
        if (c->buf[i].borrowed) continue;
        if (c->buf[i].block) unguard(&c->buf[i]);
        free(c->buf[i].block);
    }
    free(c);
}

static int is_bytes(const struct buffer *b) { return b->elem == REF_BYTES || b->elem == REF_POINTERS; }
static int is_shared(const struct buffer *b) { return b->role == REF_IN && is_bytes(b); }

/* As a device's memory does (runtime/device_cpu.c): a weight is there sooner, and read as in a model. */
static void ask_huge_pages(unsigned char *block, size_t bytes)
{
    uintptr_t page = 4096, from = ((uintptr_t)block + page - 1) / page * page, to = ((uintptr_t)block + bytes) / page * page;
    if (bytes >= (size_t)4 << 20) madvise((void *)from, to - from, MADV_HUGEPAGE);
}

void *ref_buf(struct ref_case *c, const char *name, enum ref_role role, enum ref_elem elem, size_t count, double tol)
{
    struct buffer *b = &c->buf[c->n++];
    if (c->n > MOST_BUFFERS) abort();
    *b = (struct buffer){name, role, elem, count, count * elem_bytes[elem], tol, 0, NULL, NULL, 0};
    b->block = aligned_alloc(64, block_bytes(b));
    if (!b->block) abort();
    ask_huge_pages(b->block, block_bytes(b));
    b->data = b->block + CANARY;
    if (!is_shared(b)) memset(b->data, 0xFF, b->bytes);
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
        const struct buffer *b = &c->buf[i];
        if (is_shared(b)) {
            copy->buf[copy->n] = *b;
            copy->buf[copy->n++].block = NULL;
        } else {
            memcpy(ref_buf(copy, b->name, b->role, b->elem, b->count, b->tol), b->data, b->bytes);
            copy->buf[copy->n - 1].half = b->half;
        }
    }
    return copy;
}

void ref_case_restore(struct ref_case *c, const struct ref_case *from)
{
    for (int i = 0; i < c->n; i++) {
        if (!is_shared(&c->buf[i])) memcpy(c->buf[i].data, from->buf[i].data, c->buf[i].bytes);
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

static double value(const struct buffer *b, size_t i)
{
    switch (b->elem) {
    case REF_F32: return ((const f32 *)b->data)[i];
    case REF_F16: return ref_half_to_f32(((const u16 *)b->data)[i]);
    case REF_I32: return ((const i32 *)b->data)[i];
    case REF_I8: return ((const i8 *)b->data)[i];
    default: return b->data[i];
    }
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
    double most = accepted(want, numerics);
    if (!memcmp(want->data, got->data, want->bytes)) return Q_OK;
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
        if (is_input(w) && memcmp(w->data, g->data, w->bytes)) return q_fail(e, Q_EINTERNAL, "%s: an input was written", w->name);
        if (is_output(w) && w->bytes != g->bytes) return q_fail(e, Q_EINTERNAL, "%s: cases of different sizes", w->name);
        int rc = numerics && is_output(w) ? compare_values(w, g, numerics, e) : Q_OK;
        if (rc) return rc;
    }
    return Q_OK;
}

static unsigned long long mix(unsigned long long h, unsigned long long word)
{
    h = (h ^ word) * 0x9E3779B97F4A7C15ull;      /* odd: no two words of a step become one */
    return h ^ h >> 29;
}

/* Four chains of words, since outputs of large shapes are hashed often and one chain waits for each product. */
static unsigned long long hash_buffer(const struct buffer *b, unsigned long long h)
{
    unsigned long long lane[4] = { h, ~h, h ^ 1, ~h ^ 1 }, word[4] = { 0 };
    size_t at = 0;
    for (; at + sizeof word <= b->bytes; at += sizeof word) {
        memcpy(word, b->data + at, sizeof word);
        for (int i = 0; i < 4; i++) lane[i] = mix(lane[i], word[i]);
    }
    memset(word, 0, sizeof word);
    memcpy(word, b->data + at, b->bytes - at);
    for (int i = 0; i < 4; i++) h = mix(h, mix(lane[i], word[i]));
    return mix(h, b->bytes);
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
