/* Activations of one step on one device: every buffer that forward's kernels write, taken once for the largest step.
 * Sizes are rows times a width; widths are what the layers of this config need. */
#ifndef Q_SCRATCH_H
#define Q_SCRATCH_H

#include "config.h"
#include "device.h"
#include "kernel.h"

struct q_scratch {
    struct q_device *device;
    float *x;                /* [rows][n_embd] residual stream */
    float *h;                /* [rows][n_embd] normed, and as int8: */
    struct act_q8 hq;
    float *wide;             /* [rows][widest of q+gate, conv channels, n_ff]: first product of a block */
    float *mid;              /* [rows][the same]: q, conv output, up */
    float *k, *v;            /* [rows][kv_heads * head_dim] */
    float *z;                /* [rows][v_dim] */
    float *alpha, *beta;     /* [rows][v_heads] */
    float *g, *b;            /* [rows][v_heads] */
    float *o;                /* [rows][widest of heads * head_dim, v_dim] */
    float *m;                /* [rows][widest of those and n_ff]: input of a block's last product, and as int8: */
    struct act_q8 mq;
    float *freq, *cs;        /* [pairs], [rows][pairs][2] */
    float *hn;               /* [max_out][n_embd] after the output norm, and as int8: */
    struct act_q8 hnq;
    float *logits;           /* [max_out][n_vocab] */
    int *id;                 /* [max_out] */
    float *logprob;
    int *top_id;             /* [max_out][k] */
    float *top_value, *lse;
    int *pick;               /* lists of pages (attn_pick) for the blocks of rows; NULL where nothing is sparse */
    void *work;              /* the largest scratch any op may ask for */
    size_t bytes;            /* of all of it */
};

struct q_scratch_size {
    int max_rows, max_out, ctx, parts, top;
    int gpu;                 /* work has room for what only GPU kernels ask for */
    int sparse_seqs;         /* sequences of a step whose attention may be sparse; 0: none */
};

/* Bytes that scratch_open will take. */
size_t scratch_bytes(const struct q_config *c, const struct q_scratch_size *size);
int scratch_open(struct q_scratch *s, struct q_device *d, const struct q_config *c, const struct q_scratch_size *size, struct q_err *e);
void scratch_close(struct q_scratch *s);

#endif
