/* Memory that is freed as a whole, and lists numbered once each. */
#include "constrain_pda.h"
#include <stdlib.h>
#include <string.h>

struct chunk {
    struct chunk *next;
    size_t n, used;
    _Alignas(16) char at[];
};

void *pda_arena_take(struct arena *a, size_t n)
{
    n = (n + 15) & ~(size_t)15;
    if (!a->chunks || a->chunks->n - a->chunks->used < n) {
        size_t size = n > 32 << 10 ? n : 64 << 10;
        struct chunk *c = malloc(sizeof *c + size);
        if (!c) return NULL;
        c->next = a->chunks;
        c->n = size;
        c->used = 0;
        a->chunks = c;
        a->used += size;
    }
    a->chunks->used += n;
    return a->chunks->at + a->chunks->used - n;
}

void pda_arena_free(struct arena *a)
{
    for (struct chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *a = (struct arena){0};
}

void pda_pool_free(struct pool *p)
{
    free(p->item);
    free(p->slot);
    *p = (struct pool){0};
}

static unsigned hash_list(const int *list, int n)
{
    uint64_t h = (uint64_t)n * 0x9E3779B97F4A7C15u + 1;
    for (int i = 0; i < n; i++) {
        h = (h ^ (unsigned)list[i]) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    return (unsigned)h;
}

/* Slots are twice the items. */
static int grow(struct pool *p)
{
    int cap = p->cap ? p->cap * 2 : 256;
    struct pool_item *item = realloc(p->item, sizeof *item * (size_t)cap);
    if (item) p->item = item;
    int *slot = item ? calloc((size_t)cap * 2, sizeof *slot) : NULL;
    if (!slot) return 0;
    free(p->slot);
    p->slot = slot;
    p->cap = cap;
    unsigned mask = (unsigned)cap * 2 - 1;
    for (int i = 0; i < p->n; i++) {
        unsigned h = p->item[i].hash & mask;
        while (p->slot[h]) h = (h + 1) & mask;
        p->slot[h] = i + 1;
    }
    return 1;
}

int pda_pool_number(struct pool *p, struct arena *a, const int *list, int n, int *fresh)
{
    if (p->n == p->cap && !grow(p)) return -1;
    unsigned full = hash_list(list, n), mask = (unsigned)p->cap * 2 - 1, h = full & mask;
    *fresh = 0;
    for (; p->slot[h]; h = (h + 1) & mask) {
        const struct pool_item *have = p->item + p->slot[h] - 1;
        if (have->hash == full && have->n == n && !memcmp(have->at, list, sizeof *list * (size_t)n)) return p->slot[h] - 1;
    }
    int *own = pda_arena_take(a, sizeof *own * (size_t)(n + 1));
    if (!own) return -1;
    memcpy(own, list, sizeof *list * (size_t)n);
    p->item[p->n] = (struct pool_item){own, n, full};
    p->slot[h] = ++p->n;
    *fresh = 1;
    return p->n - 1;
}
