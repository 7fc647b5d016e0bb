/* Between ref_case.c and ref_arena.c. */
#ifndef REF_CASE_IMPL_H
#define REF_CASE_IMPL_H

#include "templates/ref.h"

/* Of 64-byte alignment, the arena's; aborts on exhausted memory, as ref_buf does. */
unsigned char *ref_arena_take(struct ref_arena *a, size_t bytes);

#endif
