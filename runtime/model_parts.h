/* Which tensors a model consists of, as a table: read by the binder (a file's tensors), by the synthesiser (a preset's)
 * and by whoever counts bytes. Also the steps of opening a model that model.c puts together. */
#ifndef Q_MODEL_PARTS_H
#define Q_MODEL_PARTS_H

#include "gguf.h"
#include "model.h"
#include "notes.h"

/* Sizes that the config fixes. */
enum q_dim {
    D_ONE, D_EMBD, D_FF, D_VOCAB, D_TAPS, D_HEAD, D_STATE,
    D_QG,        /* n_head * 2 * head_dim: queries and their gates */
    D_ATTN,      /* n_head * head_dim */
    D_KV,        /* n_head_kv * head_dim */
    D_QKV,       /* D_QG + 2 * D_KV: the three as one fused matrix */
    D_CONV, D_V, D_NV
};

enum q_role { ROLE_MATRIX, ROLE_NORM, ROLE_CONV, ROLE_DT, ROLE_A };

enum { IN_GDN = 1 << Q_LAYER_GDN, IN_ATTN = 1 << Q_LAYER_ATTN, IN_ALL = IN_GDN | IN_ATTN, IN_UNTIED = 1 << 2 };

struct q_part {
    const char *name;        /* after "blk.N." for a layer's parts */
    const char *alias;       /* another name that files use, or NULL */
    size_t at;               /* offset in struct q_layer, or in struct q_model */
    unsigned char in, role;  /* which layers have it; enum q_role */
    unsigned char n, k;      /* enum q_dim: rows, elements a row */
};

extern const struct q_part q_layer_parts[], q_model_parts[];
extern const int q_n_layer_parts, q_n_model_parts;

int64_t q_dim_of(const struct q_config *c, enum q_dim d);
/* Whether the model has this whole-model part (output.weight: only if not tied). */
int q_part_in_model(const struct q_config *c, const struct q_part *p);
/* "blk.3.attn_q.weight" into name[64]; layer < 0: the part's own name. */
void q_part_name(char *name, int layer, const char *part);
/* The part that a made-up or bound tensor plays, by its name. */
enum q_role q_role_of(const struct q_tensor *t);
/* What a matrix part gets when weights are made: `format`, or F16 where its block does not divide the row. F32 for others. */
const struct q_format *q_part_format(const struct q_config *c, const struct q_part *p, const struct q_format *format);
/* Bytes of a made-up part. */
size_t q_part_bytes(const struct q_config *c, const struct q_part *p, const struct q_format *format);

/* Weight bytes of a shape in a format, each tensor once. */
size_t q_config_weight_bytes(const struct q_config *c, const struct q_format *format);

/* model_bind.c: finds and checks every tensor of m->config in m->file. m->layers is allocated. */
int model_bind(struct q_model *m, struct q_notes *notes, struct q_err *e);
/* model_synth.c: makes every tensor of m->config; fill 0: names, formats and sizes alone. */
int model_synthesise(struct q_model *m, const struct q_format *format, int fill, struct q_err *e);
void model_free_synthetic(struct q_model *m);
/* How a tensor's made-up values come about; for who makes them elsewhere. A matrix: hashed bytes times a scale a block; a vector: uniform. */
struct q_recipe {
    int vector;
    uint64_t seed;           /* of the tensor's name */
    float std;               /* matrix: deviation of its values */
    double from, to;         /* vector */
};
void model_synth_recipe(const struct q_tensor *t, struct q_recipe *r);
/* model.c: as model_open for a `gguf` in hand, which the model takes over (closes it on failure too). */
int model_from_gguf(struct q_model **m, struct gguf *g, struct q_err *e);

/* The tensors of one model in order: calls f for each part with its layer (-1: of the whole model). Stops at non-zero. */
typedef int (*q_part_fn)(void *user, const struct q_part *p, int layer, struct q_tensor *t);
int q_each_part(struct q_model *m, q_part_fn f, void *user);

#endif
