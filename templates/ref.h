/* What an op's ref.c offers to the tests and to the tuner: a case (buffers filled from a seed, for one shape), the truth on it.
 *
 * `make` fills the op's argument struct and takes every buffer from ref_buf, which puts canaries around it and remembers its role; two
 * calls with one seed give equal cases. `run` computes the outputs of the case in plain C with double accumulation, reading only what
 * the op may read. Both take all processors where they have much to do (ref_share): nothing may be timed meanwhile. A checker makes
 * two cases, runs the truth on one and the candidate on the other, and compares every OUT and INOUT buffer within its tolerance.
 * Buffers start as NaN (0xFF bytes), but for inputs of bytes, which `make` fills whole.
 */
#ifndef REF_H
#define REF_H

#include "runtime/kernel.h"
#include "runtime/layout.h"
#include "runtime/shape.h"
#include <stddef.h>

enum ref_role { REF_IN, REF_OUT, REF_INOUT, REF_WORK };
/* REF_POINTERS: structures that hold addresses of other buffers of the case, in bytes. */
enum ref_elem { REF_F32, REF_F16, REF_I32, REF_I8, REF_BYTES, REF_POINTERS };

/* For a loop of sums that much time goes to: built for wide vectors too, and chosen by the processor. */
#if defined(__x86_64__)
#define REF_WIDE __attribute__((target_clones("default", "avx2")))
#else
#define REF_WIDE
#endif

struct ref_case;
/* A buffer of `count` elements, 64-byte aligned, canaries on both sides. tol: largest |got - want| accepted, relative to the largest
 * |want| of the buffer (ints: absolute). Aborts only on exhausted memory (tests and tuner workers are allowed to). */
void *ref_buf(struct ref_case *c, const char *name, enum ref_role role, enum ref_elem elem, size_t count, double tol);
/* A buffer's tolerance for candidates whose numerics class rounds sums to halves (half, half_splitN): `most`, absolute, instead of tol. */
void ref_buf_half(struct ref_case *c, const void *data, double most);

/* Cases, for the checkers (templates/ref_case.c). */
struct ref_case *ref_case_open(void);
void ref_case_close(struct ref_case *c);
/* Memory of cases that are timed: their buffers lie one behind the other in huge pages, as a model's do. In single pages, each wherever it was free,
 * the caches' sets and the page tables make a kernel faster or slower by up to a fifth, as chance has it. Its cases are closed before it. */
struct ref_arena;
struct ref_arena *ref_arena_open(void);
void ref_arena_close(struct ref_arena *a);
struct ref_case *ref_case_open_in(struct ref_arena *a);
/* Weights that `from` has and `c` is still to make are taken from there: the same bytes for both, written by neither. `from` outlives
 * c's use. */
void ref_case_borrow(struct ref_case *c, const struct ref_case *from);
/* For those who fill such buffers: the data of that name in the case borrowed from, where it has at least so many bytes, now c's as well;
 * else NULL. */
void *ref_buf_borrowed(struct ref_case *c, const char *name, size_t bytes);
/* Canaries intact, inputs as in `want`, outputs within their tolerance of `want` for that numerics class (struct gen_kernel). The line names
 * buffer, index and both values. numerics NULL: values are not compared (a repeat, which ref_case_hash judges faster). */
int ref_case_compare(const struct ref_case *want, const struct ref_case *got, const char *numerics, struct q_err *e);
/* A case as it is now: its own buffers, but for REF_BYTES and REF_POINTERS inputs (weights, tables), which it shares with `c` and must not outlive. */
struct ref_case *ref_case_copy(const struct ref_case *c);
/* Puts all but shared buffers, and all canaries, of `c` back to what its copy `from` holds, so that one case serves many candidates. */
void ref_case_restore(struct ref_case *c, const struct ref_case *from);
/* Over the bytes of all OUT and INOUT buffers: equal for equal results. */
unsigned long long ref_case_hash(const struct ref_case *c);
/* Of its OUT and INOUT buffers; of all. */
size_t ref_case_written(const struct ref_case *c);
size_t ref_case_bytes(const struct ref_case *c);

/* A case's buffers one by one, for those who move it to another memory and back. */
struct ref_block {
    unsigned char *begin;         /* a canary of `canary` bytes, the data, a canary */
    size_t bytes, canary;         /* in all, a multiple of 64; of the canary in front */
    size_t data_end;              /* where the canary behind begins */
    int input, pointers, fixed;   /* may not be written; holds addresses; is not compared (weights, structures) */
};
int ref_case_blocks(const struct ref_case *c);
/* Its canaries may be read from now on, also under AddressSanitizer. */
struct ref_block ref_case_block(const struct ref_case *c, int i);

/* Buffer i of a case, from 0; non-zero beyond the last. For checkers that watch what a kernel touches. */
struct ref_view {
    const char *name;
    enum ref_role role;
    void *data;
    size_t bytes;
};
int ref_case_view(const struct ref_case *c, int i, struct ref_view *v);

/* The sizes of one trial: rows in the step, spread over `seqs` sequences with at most `past` KV tokens each before the step.
 * parts: team size the candidate will run with (scratch is sized by it). plain: what a usual step has and no more (no copies of states,
 * no image rows, one matrix and no row list), so that its time is a usual step's. */
struct ref_size {
    int rows, seqs, past, parts, plain;
};

struct op_ref {
    const char *op;
    size_t args_bytes;
    int (*make)(struct ref_case *c, void *args, const struct q_shape *s, const struct ref_size *size, unsigned long long seed);
    void (*run)(const void *args, const struct q_shape *s);
};

/* Helpers shared by the refs (templates/ref.c, ref_share.c, ref_step.c, ref_weights.c). An op's ref.c defines `const struct op_ref ref_OP`. */
unsigned long long ref_next(unsigned long long *seed);             /* splitmix64 */
/* As `draws` numbers drawn: threads begin in the middle. */
void ref_skip(unsigned long long *seed, unsigned long long draws);
double ref_uniform(unsigned long long *seed, double lo, double hi);    /* one draw */
enum { REF_NORMAL_DRAWS = 2 };
double ref_normal(unsigned long long *seed);
void ref_fill_f32(f32 *p, size_t n, unsigned long long *seed, double scale);      /* normal(0, scale) */
/* Calls part for pieces of [0, n) of at least `least`, on all processors where there are two or more; returns when all are done. Pieces must not
 * depend on each other. */
void ref_share(i64 n, i64 least, void (*part)(void *arg, i64 begin, i64 end), void *arg);
/* A weight of n rows of k in a layout that fits. block: draws one q8_0 block, by `draws` numbers; other formats are normal numbers. */
struct ref_weights {
    const struct q_format *format;
    const struct q_layout *layout;
    i64 n, k;
    void (*block)(unsigned char *block, unsigned long long *seed);
    int draws;
};
/* `copies` of them with contents of their own, ref_weights_bytes apart: whole 64-byte lines, but for rows as in the file, which experts keep.
 * Or those of the case that c borrows from. */
void *ref_weights(struct ref_case *c, const struct ref_weights *w, int copies, unsigned long long *seed);
i64 ref_weights_bytes(const struct ref_weights *w);
f32 ref_half_to_f32(u16 h);
u16 ref_f32_to_half(f32 x);
/* A step of `size`: sequences of uneven row counts, pages handed out in shuffled order, one or two segments a sequence (load -1 for
 * some new sequences, copy slots for some), every buffer taken through ref_buf as REF_IN. n_embd: width of embd rows (0: none).
 * *slots: how many state slots exist, *pages: how many KV pages exist. */
struct step *ref_step(struct ref_case *c, const struct ref_size *size, int n_embd, int vocab, int *slots, int *pages,
                      unsigned long long *seed);
/* Fills quantised activations as kernel.h defines them. */
struct act_q8 ref_act_q8(struct ref_case *c, int rows, int k, unsigned long long *seed);
/* Outputs of that form. exact: the values that are quantised are exact, so every bit is; otherwise a tie may fall either way. */
struct act_q8 ref_out_q8(struct ref_case *c, int rows, int k, int exact);
/* Quantises 32 values to block `block` of a, in fp32 as kernel.h defines it; 127 / max overflowing counts as all zero. */
void ref_quant_block(const f32 *v, const struct act_q8 *a, size_t block);

/* Every op's ref, by name; NULL if unknown. */
const struct op_ref *ref_find(const char *op);

#endif
