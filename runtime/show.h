/* What `quarry show` tells about a model: facts gathered once, printed as text or as JSON. */
#ifndef Q_SHOW_H
#define Q_SHOW_H

#include "gguf.h"
#include "model.h"
#include "notes.h"
#include "plan.h"
#include "session_file.h"
#include "show_fit.h"
#include <stdio.h>

enum show_part { SHOW_EMBD, SHOW_HEAD, SHOW_ATTN, SHOW_GDN, SHOW_FFN, SHOW_SMALL, SHOW_PARTS };
enum { SHOW_MAX_TYPES = 48, SHOW_MAX_PLANS = 12, SHOW_TOKEN_TYPES = 7 };

struct show_facts {
    const struct q_config *config;     /* borrowed from the model, or the preset's */
    const struct q_model *model;       /* borrowed; NULL for a preset */
    const struct gguf *file;           /* borrowed; NULL for a preset */
    const char *format;                /* a preset's weight format, else NULL */

    size_t weight_bytes, parameters;
    struct show_type { const char *name; int tensors; size_t bytes; } types[SHOW_MAX_TYPES];   /* all tensors of the file */
    int n_types;
    size_t part_bytes[SHOW_PARTS];     /* of the tensors that are used; a preset has none */

    int has_tokenizer;
    char tok_model[32], tok_pre[32], eos_text[64];
    uint64_t n_tokens, n_merges, n_token_type[SHOW_TOKEN_TYPES];
    int64_t eos;                       /* -1: none */
    int checked;                       /* the matrices were read for bad values */

    int has_template, knows_enable, knows_preserve, knows_tools;
    size_t template_bytes;

    int64_t ctx[SHOW_MAX_PLANS];
    struct q_plan plans[SHOW_MAX_PLANS];
    int n_plans;
    const struct show_fit *fit;        /* borrowed; NULL: not asked for */

    struct q_notes notes;              /* owned: the model's, and what is odd beyond them */
};

extern const char *const show_part_names[SHOW_PARTS];
extern const char *const show_token_types[SHOW_TOKEN_TYPES];

/* show_facts.c */
void show_from_model(struct show_facts *f, const struct q_model *m);
void show_from_shape(struct show_facts *f, const struct q_config *c, const struct q_format *format);
void show_free(struct show_facts *f);
/* Calls fn(user, id, text, type) for each token that is not a normal, unused or byte one, in order of ids. */
void show_each_special(const struct show_facts *f, void (*fn)(void *user, uint64_t id, struct gguf_str text, int type),
                       void *user);

/* show_text.c, show_json.c. The JSON text is one line; 0, or Q_EMEM. */
void show_text(const struct show_facts *f, FILE *out);
int show_json(const struct show_facts *f, FILE *out);
/* show_session.c: a session's file, by its head; the JSON text is one line. 0, or Q_EMEM. */
int show_session_text(const char *path, const struct session_head *h, FILE *out);
int show_session_json(const char *path, const struct session_head *h, FILE *out);
/* show_refused.c: as text, for a file that opens as a container only. */
void show_refused(const struct gguf *g, FILE *out);

#endif
