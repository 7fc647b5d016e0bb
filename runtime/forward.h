/* The model as lists of launches: one function a layer kind, no arithmetic.
 *
 * A forward covers layers [a, b) of a model on one device: hidden rows in scratch.x to hidden rows in scratch.x. The embedding and the
 * head are its ends, in lists of their own. Each list exists in forms: for few rows (matvec, recurrent step, decode attention), for
 * many (matmul, chunks, prefill attention), and for a row of each of many sequences (matmul, recurrent step, decode attention: a chunk of
 * one row costs several steps). All read their row counts from the step in device memory.
 */
#ifndef Q_FORWARD_H
#define Q_FORWARD_H

#include "engine.h"
#include "kv.h"
#include "scratch.h"
#include "weights.h"

enum { Q_FEW_ROWS = 8, Q_WIDE_ROWS = 64 };

/* What the lists are made of; all borrowed, and alive as long as the forward. */
struct q_parts {
    const struct q_model *model;
    const struct kset *kernels;
    const struct q_weights *weights;
    const struct q_kv *kv;
    const struct q_states *states;
    const struct q_scratch *scratch;
    const struct step *step;       /* device memory: the host may take addresses in it, not read it */
    const i32 *out;                /* device memory: step->out, which never moves */
    enum q_numerics numerics;
    const char *kv_k, *kv_v;
    struct q_sparse sparse;        /* of steps of many rows */
};

enum q_form { Q_FEW, Q_MANY, Q_WIDE, Q_FORMS };

struct q_forward {
    int a, b;                      /* layers */
    struct q_device *device;
    struct q_list embed;           /* token ids to scratch.x, and the rope table */
    struct q_list layers[Q_FORMS];
    int *end[Q_FORMS];             /* owned: [b - a] launches up to and with each layer */
    struct q_list head[Q_FORMS];   /* wanted rows: output norm, logits; none of Q_WIDE */
    struct q_list top, sample;     /* on the logits */
    struct q_list decode[Q_FORMS]; /* embed, layers, head, sample: a step whose rows all want an id and nothing else; none of Q_MANY */
};

int forward_open(struct q_forward *f, const struct q_parts *p, int a, int b, struct q_err *e);
void forward_close(struct q_forward *f);

#endif
