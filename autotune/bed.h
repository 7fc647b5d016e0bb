/* Where trials run: on a team of this machine's CPU, or on a card, to whose memory a case goes and from which it comes back. The cases and
 * the truth are the same (trial.h). */
#ifndef Q_BED_H
#define Q_BED_H

#include "runtime/device.h"
#include "runtime/nvml.h"
#include "trial.h"

struct bed_span;
struct bed {
    struct q_team *team;       /* owned; NULL on a card */
    struct bed_span *span;     /* owned: [parts] */
    struct q_device *card;     /* owned; NULL on a CPU */
    struct nvml *nvml;         /* owned; NULL where nothing is told of the card */
    int parts;                 /* most members of a kernel's team, each with scratch of its own; 1 on a card, where scratch goes by rows */
};

/* where: a number of threads, or a card as device_open takes it ("cuda:0"). */
int bed_open(struct bed *b, const char *where, struct q_err *e);
void bed_close(struct bed *b);
int bed_load(struct bed *b, const char *object, const char *symbol, const struct q_phases *phases, struct q_kernel *k, struct q_err *e);
void bed_unload(struct bed *b, struct q_kernel *k);

/* A case in a card's memory: all buffers with their canaries one behind the other, addresses in them and in the arguments moved along. */
struct placed {
    void *base;                /* owned: of the card */
    size_t bytes;
    struct q_extent extent;
    size_t arg_bytes;
    _Alignas(16) unsigned char args[TRIAL_ARG_BYTES];
};

/* size: of the case. */
int placed_open(struct placed *p, struct q_device *d, const struct trial_case *t, const struct op_ref *ref, const struct ref_size *size,
                struct q_err *e);
void placed_close(struct placed *p, struct q_device *d);
/* Host to card; fixed ones (weights, structures) only where asked for. And back: of fixed ones the canaries alone. */
int placed_write(const struct placed *p, struct q_device *d, const struct ref_case *c, int fixed_too, struct q_err *e);
int placed_read(const struct placed *p, struct q_device *d, const struct ref_case *c, struct q_err *e);

/* A truth where the bed's kernels can reach it. */
struct bed_truth {
    struct trial_truth truth;
    struct placed placed;
};
/* beside: as trial_truth_make takes it. */
int bed_truth_make(struct bed *b, struct bed_truth *t, const struct bed_truth *beside, const struct op_ref *ref, const struct q_shape *s,
                   const struct ref_size *size, unsigned long long seed, struct q_err *e);
void bed_truth_free(struct bed *b, struct bed_truth *t);
/* Whether the truth is still what was computed. */
int bed_truth_intact(const struct bed_truth *t);
/* As trial_truth_check; numerics NULL: as ref_case_compare. *fault: set when the card refused or broke: whatever runs there next cannot be
 * believed. */
int bed_truth_check(struct bed *b, struct bed_truth *t, const struct q_kernel *k, const char *numerics, unsigned long long *hash, int *fault,
                    struct q_err *e);

/* Cases of one size that calls walk in turn, so that weights are cold as in a model: of a CPU with contents of their own, on a card copies. */
struct bed_ring {
    struct trial_case *t;      /* owned: [n], NULL on a card */
    struct ref_arena *arena;   /* owned: of t */
    struct placed *p;          /* owned: [n], NULL on a CPU */
    int n, next;
};
/* As many as fill `cold` bytes; one where a case alone is larger. */
int bed_ring_make(struct bed *b, struct bed_ring *r, const struct op_ref *ref, const struct q_shape *s, const struct ref_size *size, double cold,
                  struct q_err *e);
void bed_ring_free(struct bed *b, struct bed_ring *r);

/* --- bed_time.c --- */

/* Microseconds a call, of at least `calls` calls one after the other. *disturbed: the machine was busy with something else meanwhile; 0 on a card. */
int bed_time(struct bed *b, struct bed_ring *r, const struct q_kernel *k, int calls, double *us, int *disturbed, int *fault, struct q_err *e);
/* n samples (sample.h) after some calls that warm up. */
int bed_samples(struct bed *b, struct bed_ring *r, const struct q_kernel *k, int n, double *us, int *fault, struct q_err *e);

#endif
