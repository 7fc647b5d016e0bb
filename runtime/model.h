/* A model's weights: which tensor plays which part in which layer, found and checked once when the model opens.
 *
 * After model_open every tensor that the forward pass touches has the type, dimensions and bytes that its place asks
 * for; inference trusts that. Data pointers are borrowed from the mapped file (or owned synthetic memory, for a preset).
 */
#ifndef Q_MODEL_H
#define Q_MODEL_H

#include "config.h"
#include "quant.h"
#include <stddef.h>

/* A weight as the file holds it: n rows (outputs) of k elements. k is contiguous. */
struct q_tensor {
    char name[64];
    const struct q_format *format;
    int64_t n, k;
    const void *data;         /* borrowed: n * q_row_bytes(format, k) bytes */
    size_t bytes;
};

struct q_layer {
    enum q_layer_kind kind;
    /* f32 vectors */
    struct q_tensor attn_norm, ffn_norm;                  /* [n_embd]; ffn_norm is post_attention_norm in the file */
    /* dense FFN */
    struct q_tensor ffn_gate, ffn_up, ffn_down;           /* [n_ff][n_embd], [n_ff][n_embd], [n_embd][n_ff] */
    /* Q_LAYER_ATTN */
    struct q_tensor wq;                                   /* [n_head * 2*head_dim][n_embd]: a head's queries, then its gate */
    struct q_tensor wk, wv;                               /* [n_head_kv * head_dim][n_embd] */
    struct q_tensor wo;                                   /* [n_embd][n_head * head_dim] */
    struct q_tensor q_norm, k_norm;                       /* f32 [head_dim] */
    /* Q_LAYER_GDN */
    struct q_tensor qkv;                                  /* [conv_dim][n_embd]: rows q, k, v */
    struct q_tensor z;                                    /* [v_dim][n_embd] */
    struct q_tensor alpha, beta;                          /* [n_v_heads][n_embd] */
    struct q_tensor conv;                                 /* f32 [conv_dim][conv_taps] */
    struct q_tensor dt, a;                                /* f32 [n_v_heads]; a = -exp(A_log) */
    struct q_tensor ssm_norm;                             /* f32 [state_dim] */
    struct q_tensor ssm_out;                              /* [n_embd][v_dim] */
};

struct q_model {
    struct q_config config;
    char path[4096];                  /* file or preset name, for messages */
    unsigned char id[32];             /* SHA-256 of the header bytes (all before the tensor data), of every split in turn */
    struct gguf *file;                /* owned; NULL for a preset */
    struct q_layer *layers;           /* owned: [n_layers] */
    struct q_tensor embd;             /* [n_vocab][n_embd] */
    struct q_tensor head;             /* [n_vocab][n_embd]: output.weight, or a copy of `embd` when tied */
    struct q_tensor out_norm;         /* f32 [n_embd] */
    size_t weight_bytes;              /* of all tensors above, each once */
    char *notices;                    /* owned: one line a notice ("12 tensors v.* skipped"), '\n'-separated, "" if none */
    int stands_for_file;              /* a preset's shape whose kernels must serve a file of that shape too */
    void *synthetic;                  /* owned memory of a preset's weights */
};

/* Opens FILE (any shard of a split set). */
int model_open(struct q_model **m, const char *path, struct q_err *e);
/* Whether made-up weights are made in host memory, or left to the device: then tensors have all but data. */
enum q_made { Q_MADE_HERE, Q_MADE_LATER };
/* Synthetic weights of type `format` for a preset: values depend on the tensor's name alone, so runs compare. */
int model_open_preset(struct q_model **m, const char *preset, const char *format, enum q_made made, struct q_err *e);
/* The same for a shape in hand (tests). Copies *c. */
int model_open_config(struct q_model **m, const struct q_config *c, const char *format, enum q_made made, struct q_err *e);
void model_close(struct q_model *m);
/* Reads every matrix for infinite or NaN values and scales (slow: touches the whole file). model_open has done so for
 * the small F32 tensors. The error names tensor, row and element. */
int model_check(const struct q_model *m, struct q_err *e);
/* The same for one tensor. The engine asks for every matrix when it loads them: int8 activations would hide a NaN scale. */
int model_check_tensor(const struct q_model *m, const struct q_tensor *t, struct q_err *e);
/* Tells the system that a tensor's pages are not needed any more (it was repacked). A file's pages come back when they are
 * touched; synthetic weights are gone. */
void model_release(struct q_model *m, const struct q_tensor *t);

#endif
