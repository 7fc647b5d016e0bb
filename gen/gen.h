/* The generator: op + shape + params -> the text of one kernel. Lua decides (gen/, templates/<op>/space.lua), C calls.
 *
 * A generator is opened once a thread; its scripts and templates are embedded in the program, or read from a source tree for work
 * on them. The same inputs give the same bytes, always: no clock, no path, no order of a hash table. It compiles nothing and
 * touches no device; the card it is given is data.
 */
#ifndef Q_GEN_H
#define Q_GEN_H

#include "runtime/err.h"
#include "runtime/launch.h"

struct gen;

/* dir: a source tree with gen/ and templates/; NULL: the embedded copies. */
int gen_open(struct gen **g, const char *dir, struct q_err *e);
void gen_close(struct gen *g);

struct gen_kernel {
    char name[160];        /* symbol and file stem: op, shape, params; [a-z0-9_], at most 150 characters */
    char params[256];      /* full params text, in the order of the space */
    char isa[24];          /* instruction path: scalar sse42 avx2 avxvnni avx512vnni; on CUDA the param `path`, "" without one */
    char kind[8];          /* of the object that is built from it: "so" or "cubin" */
    char arch[16];         /* "sm_70"; "" for a CPU */
    char cflags[160];      /* what the C compiler needs for it: cc CFLAGS -o OBJECT UNIT.c -lm; or NVRTC's options */
    struct q_phases launch;   /* CUDA: how it is launched; n = 0 for a CPU */
    char numerics[24];     /* class of its reductions: "canonical" or another name */
    char layout[24];       /* weight layout it reads, "" if it reads no weights */
    char *source;          /* owned: readable text, includes kernel.h and args.h by name */
    char *unit;            /* owned: the same with the two headers' text in place: what is compiled and hashed */
};

/* card: a card key (runtime/card.h). params: NULL or "" for the card's default; missing params take their default.
 * numerics: "strict" restricts defaults to the canonical class; otherwise "pinned". A refused candidate: Q_EUNSUP with the reason. */
int gen_emit(struct gen *g, const char *op, const char *shape, const char *params, const char *card, const char *numerics,
             struct gen_kernel *out, struct q_err *e);
void gen_kernel_free(struct gen_kernel *k);

/* Every candidate of the space in order: `legal` is 1, or 0 with the reason that dropped it. Return non-zero from `visit` to stop. */
int gen_space(struct gen *g, const char *op, const char *shape, const char *card, const char *numerics,
              int (*visit)(void *arg, const char *params, int legal, const char *reason), void *arg, struct q_err *e);

/* Bytes moved and operations done by one call with these rows and past tokens (for percent of roof). */
int gen_cost(struct gen *g, const char *op, const char *shape, long rows, long past, double *bytes, double *ops, struct q_err *e);

/* SHA-256 (hex) over an op's template, space, args.h and the shared parts: the generator key of its records. */
int gen_hash(struct gen *g, const char *op, char hex[65], struct q_err *e);
/* The op whose ref.c checks this one: itself, or the first of its pair; "" for an op that is a choice without a kernel. */
int gen_ref(struct gen *g, const char *op, char name[24], struct q_err *e);
/* Names of all ops, sorted, NULL-terminated; borrowed. */
const char *const *gen_ops(struct gen *g);

#endif
