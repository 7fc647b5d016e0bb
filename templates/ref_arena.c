/* Memory of cases that are timed: see ref.h. */
#define _GNU_SOURCE
#include "templates/ref_case_impl.h"
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64 };
static const size_t HUGE = (size_t)2 << 20, CHUNK = (size_t)32 << 20;

struct chunk {
    struct chunk *next;
    void *map;
    size_t map_bytes;
    unsigned char *at, *end;     /* what is still free */
};

struct ref_arena {
    struct chunk *first;         /* owned, the newest first */
};

struct ref_arena *ref_arena_open(void)
{
    struct ref_arena *a = calloc(1, sizeof *a);
    if (!a) abort();
    return a;
}

void ref_arena_close(struct ref_arena *a)
{
    for (struct chunk *c = a ? a->first : NULL, *next; c; c = next) {
        next = c->next;
        munmap(c->map, c->map_bytes);
        free(c);
    }
    free(a);
}

/* From a huge page's border on; that they are huge is a wish, as it is where a model's memory is mapped (runtime/device_cpu.c). */
static struct chunk *add_chunk(struct ref_arena *a, size_t bytes)
{
    struct chunk *c = calloc(1, sizeof *c);
    size_t room = (bytes > CHUNK ? bytes + HUGE - 1 : CHUNK) / HUGE * HUGE;
    if (!c) abort();
    c->map_bytes = room + HUGE;
    c->map = mmap(NULL, c->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->map == MAP_FAILED) abort();
    c->at = (unsigned char *)(((uintptr_t)c->map + HUGE - 1) / HUGE * HUGE);
    c->end = c->at + room;
    madvise(c->at, room, MADV_HUGEPAGE);
    c->next = a->first;
    return a->first = c;
}

unsigned char *ref_arena_take(struct ref_arena *a, size_t bytes)
{
    struct chunk *c = a->first;
    bytes = (bytes + LINE - 1) / LINE * LINE;
    if (!c || (size_t)(c->end - c->at) < bytes) c = add_chunk(a, bytes);
    c->at += bytes;
    return c->at - bytes;
}
