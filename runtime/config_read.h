/* Inside config*.c and for model_open: reading keys under the architecture's prefix. */
#ifndef Q_CONFIG_READ_H
#define Q_CONFIG_READ_H

#include "config.h"
#include "gguf.h"
#include "notes.h"

/* As config_from_gguf; what is odd goes to `notes` (may be NULL). */
int config_read(struct q_config *c, const struct gguf *g, struct q_notes *notes, struct q_err *e);

/* config_vocab.c: sets c->n_vocab and holds the tokenizer's arrays and ids against each other. */
int config_read_vocab(struct q_config *c, const struct gguf *g, struct q_notes *notes, struct q_err *e);

/* config_rope.c: rope and attention scale. n_layers, head_dim are set. */
int config_read_rope(struct q_config *c, const struct gguf *g, struct q_notes *notes, struct q_err *e);

/* "qwen35." + suffix. */
struct config_key { char s[128]; };
struct config_key config_key(const struct q_config *c, const char *suffix);
/* An integer key under the prefix; `missing` is taken where the file lacks it (below `min`: it must be there). */
int config_int(const struct q_config *c, const struct gguf *g, const char *suffix, int min, int max, int missing,
               int *out, struct q_err *e);
/* A finite float key under the prefix, 0 < v; `missing` as above (<= 0: it must be there). */
int config_float(const struct q_config *c, const struct gguf *g, const char *suffix, double missing, float *out,
                 struct q_err *e);

#endif
