/* Regions of memory and the shades of their bytes: shared by memory.c, which knows what an address is, and shade.c, which knows
 * who was there. */
#ifndef SIMT_MEMORY_H
#define SIMT_MEMORY_H

#include "impl.h"

enum region_kind { SHARED, BUFFER, CONSTANT };

/* What most accesses look at: half a line of the cache. The rest is struct rare, of which `has` says whether it holds anything. */
struct shade {
    _Alignas(32)
    u32 write_epoch, write_clock, read_epoch, read_clock;
    u32 read_lanes;              /* of read_warp, all with read_clock; or with clocks of their own in list[read_list - 1] */
    u32 write_pc, read_pc;       /* offsets in the object */
    u16 write_thread;
    u8 read_warp;
    u8 has;
};

/* Of `has`. IN_FLIGHT alone has no more to say: a copy to it has been issued and not waited for. */
enum { IN_FLIGHT = 1, HAS_ATOMIC = 2, HAS_FOREIGN = 4, HAS_LIST = 8, HAS_OTHER = 16, HAS_SPLIT = 32 };

/* A field counts only where its bit is set. */
struct rare {
    u32 read_list;
    u32 foreign_epoch;           /* the last read of another block of this launch */
    u32 split;                   /* a word's: the run in which its bytes have shades of their own */
    u32 atomic_epoch, atomic_clock, atomic_pc;   /* the last atomic */
    u16 read_other;              /* 1 + a reader of yet another warp */
    u16 atomic_thread, atomic_other;             /* atomic_other: 1 + another thread that changed it in the same epoch */
};

/* All shades, and what is rare about each. */
struct shades {
    struct shade *all;
    struct rare *rare;
    size_t cap;
};
extern struct shades shades;

static inline struct rare *rare_of(const struct shade *s) { return shades.rare + (s - shades.all); }

struct region {
    unsigned char *lo, *hi;
    size_t bytes;                /* that it was made for: hi of dynamic shared memory changes with the launch */
    enum region_kind kind;
    const struct simt_buffer *buffer;
    int shaded;                  /* 0: read only */
    struct shade *word, *byte;   /* NULL then */
};

/* Begins a block, forgets a run. */
void shade_begin_block(void);
void shade_close(void);
/* An access to bytes [first, first + bytes) of a region that has shades. Does not return if it races. */
void shade_range(const struct region *r, size_t first, size_t bytes, int access, const void *pc);
/* "reads", "writes", "changes", and "shared row, byte 48 of 128" or "x, byte 0 of 1024". */
const char *access_verb(int access);
void region_place(char *out, size_t cap, const struct region *r, const unsigned char *p);

#endif
