/* The shape text of every op, printed in the order of its space (the comment on top of templates/OP/args.h names it).
 *
 * forward.c, which calls kernels, and kset_problems, which lists them, both print shapes here, so they cannot differ. Pure text: no
 * look-up, no failure. A shape fits a Q_SHAPE_TEXT buffer for any checked config.
 */
#ifndef Q_KSET_SHAPES_H
#define Q_KSET_SHAPES_H

#include "kset.h"
#include "model.h"
#include <stddef.h>

enum { Q_SHAPE_TEXT = 224 };

/* Which activations a norm (or swiglu) has to write for the matrices that read it: a set, "out=" in a shape. */
enum { Q_OUT_F32 = 1, Q_OUT_Q8 = 2 };

/* The activations that weight `w` meets: its format's own, fp32 under numerics `reference`. */
enum q_act kset_act(const struct q_tensor *w, enum q_numerics numerics);
/* What the readers of a layer's attn_norm (wq wk wv, or qkv z alpha beta), of its ffn_norm (gate up), of its ffn_down's input and of the
 * output norm (head) need: sets of Q_OUT_*. Attention gives wo, and a delta net's norm ssm_out, int8 only where no block of 32 reaches
 * into the next head; else what they write is quantised after. */
unsigned kset_out_attn_norm(const struct q_layer *l, enum q_numerics numerics);
unsigned kset_out_ffn_norm(const struct q_layer *l, enum q_numerics numerics);
unsigned kset_out_swiglu(const struct q_layer *l, enum q_numerics numerics);
unsigned kset_out_attn(const struct q_layer *l, const struct q_config *c, enum q_numerics numerics);
unsigned kset_out_gated_norm(const struct q_layer *l, const struct q_config *c, enum q_numerics numerics);
unsigned kset_out_head(const struct q_model *m, enum q_numerics numerics);

/* dst holds `cap` bytes, Q_SHAPE_TEXT are enough. */
void shape_layout(char *dst, size_t cap, const char *type, long n, long k);
/* layout: the one that file rows are brought to. */
void shape_repack(char *dst, size_t cap, const struct q_tensor *w, const char *layout);
void shape_synth(char *dst, size_t cap, const struct q_tensor *w, const char *layout);
void shape_embed(char *dst, size_t cap, const struct q_tensor *embd, const char *layout);          /* embd: [vocab][n_embd] */
void shape_rmsnorm(char *dst, size_t cap, long n, unsigned out);
/* matvec and matmul. ADD: the product is added to y (wo, ssm_out, ffn_down). PARTS: w is a joint (joint.h). */
enum q_epi { Q_EPI_NONE, Q_EPI_ADD, Q_EPI_PARTS };
void shape_matmul(char *dst, size_t cap, const struct q_tensor *w, enum q_act act, const char *layout, enum q_epi epi);
void shape_quantize(char *dst, size_t cap, long n);
void shape_rope_table(char *dst, size_t cap, const struct q_config *c);
void shape_qk_rope(char *dst, size_t cap, const struct q_config *c);
void shape_kv_append(char *dst, size_t cap, const struct q_config *c, const char *fk, const char *fv);
void shape_attn(char *dst, size_t cap, const struct q_config *c, const char *fk, const char *fv, unsigned out);  /* attn_prefill and attn_decode */
void shape_attn_pick(char *dst, size_t cap, const struct q_config *c, const char *fk);
void shape_conv_silu(char *dst, size_t cap, const struct q_config *c);
void shape_gdn_prep(char *dst, size_t cap, const struct q_config *c);
void shape_gdn(char *dst, size_t cap, const struct q_config *c);                                   /* gdn_step and gdn_chunk */
/* The two of a card's steps of few rows: conv_silu with gdn_prep, gdn_step with gated_norm. */
void shape_gdn_conv_prep(char *dst, size_t cap, const struct q_config *c);
void shape_gdn_step_norm(char *dst, size_t cap, const struct q_config *c, unsigned out);
void shape_gated_norm(char *dst, size_t cap, const struct q_config *c, unsigned out);
void shape_swiglu(char *dst, size_t cap, long n, unsigned out);
void shape_topk(char *dst, size_t cap, long vocab);                                                /* k = Q_TOPK */
void shape_sample(char *dst, size_t cap, long vocab);

enum { Q_TOPK = 16 };   /* how many logprobs a row can be asked for */

#endif
