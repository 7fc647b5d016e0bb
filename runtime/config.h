/* The shape of a model: everything the kernels are specialised for, read from a GGUF file's keys or from a preset.
 *
 * The one place that knows GGUF key names and their dialects is config.c; all other code reads these fields. Values are
 * checked when they are read (config_check), so users of a `struct q_config` need no defence.
 */
#ifndef Q_CONFIG_H
#define Q_CONFIG_H

#include "err.h"
#include <stdint.h>

enum q_layer_kind { Q_LAYER_GDN, Q_LAYER_ATTN };

enum { Q_MAX_LAYERS = 1024 };

/* Positions stretched beyond the trained length (rope.h). factor 0: they are not. */
struct q_yarn {
    float factor;                        /* above 1 */
    int original;                        /* tokens that the model was trained for before */
    float beta_fast, beta_slow;          /* turns within them */
    float attention;                     /* multiplies 0.1 ln(factor) + 1; 0: 1 */
};

struct q_config {
    char arch[32];                       /* "qwen35" */
    char name[128];                      /* general.name or the preset's, "" if none */
    int n_layers;                        /* trunk layers; the next-n block is not counted */
    int n_nextn;                         /* next-n (MTP) blocks that follow the trunk: recognised, not run */
    int n_embd, n_ff, n_vocab, n_ctx_train;
    float rms_eps;
    unsigned char kind[Q_MAX_LAYERS];    /* enum q_layer_kind of each trunk layer */

    int n_head, n_head_kv, head_dim;     /* gated attention; n_head % n_head_kv == 0 */
    float attn_scale;                    /* 1/sqrt(head_dim) unless the file says otherwise */
    int rope_dims;                       /* the first rope_dims of head_dim rotate, in pairs (i, i + rope_dims/2) */
    int rope_sections[4];                /* pairs turned by the t, h, w (and unused) position, interleaved */
    float rope_base;
    struct q_yarn yarn;                  /* the file's, or what was asked for */

    int conv_taps;                       /* 4: the current token and conv_taps-1 before it */
    int state_dim;                       /* delta net head size, for keys and values alike */
    int n_k_heads, n_v_heads;            /* n_v_heads % n_k_heads == 0 */
    int v_grouped;                       /* 0: value head h uses key head h % n_k_heads (tiled, GGUF's order); 1: h / r */

    int tied;                            /* no output.weight: the head is the token embedding */
};

/* Derived sizes, in elements. */
static inline int q_k_dim(const struct q_config *c) { return c->n_k_heads * c->state_dim; }
static inline int q_v_dim(const struct q_config *c) { return c->n_v_heads * c->state_dim; }
static inline int q_conv_dim(const struct q_config *c) { return 2 * q_k_dim(c) + q_v_dim(c); }
static inline int q_count_layers(const struct q_config *c, enum q_layer_kind k)
{
    int n = 0;
    for (int i = 0; i < c->n_layers; i++) n += c->kind[i] == k;
    return n;
}

struct gguf;
/* Reads and checks the keys of `g`. Errors name the file and the key, what was expected and what was found. */
int config_from_gguf(struct q_config *c, const struct gguf *g, struct q_err *e);
/* A shape by name ("qwen3.5-9b"), one of gen/models/, or of a file of that form, where name is a path or ends in ".lua" (presets.c). */
int config_from_preset(struct q_config *c, const char *name, struct q_err *e);
/* Holds a filled config against its invariants (divisibility, ranges); `where` is the file or preset named in errors. */
int config_check(const struct q_config *c, const char *where, struct q_err *e);

#endif
