/* Where a model goes on one or several cards: the largest question of `quarry show --fit`, answered from shapes and sizes alone.
 *
 * A stage is a contiguous run of layers on one card; the embedding lies with the first layer, the output norm and the head with the last (a
 * tied head is the embedding once more, where that lies elsewhere). A stage is planned as the engine plans a model of just its layers
 * (plan_make): it has its own KV pages and states, scratch and page tables, kernels and driver.
 *
 * The first card that holds the whole model gets it, and the others stay free. Where none does, cards are filled in their order, so that the
 * least that stays free on any that is used is as much as possible; a card that nothing is left for stays empty. Steps are as wide as
 * quarry-serve takes them on the card that is used, on the least of them where there are several: a card that stays empty has no say.
 *
 * One stage is exactly the plan that quarry-serve takes on such a card. This version runs on one device; several stages are a plan only.
 */
#ifndef Q_FIT_H
#define Q_FIT_H

#include "model.h"
#include "plan.h"

enum { FIT_CARDS = 64 };
/* A card's memory that is nobody's to plan: the driver's context and what a card keeps back of the size it is sold with, and what
 * device_cuda_memory.c leaves free. */
#define FIT_DRIVER ((size_t)640 << 20)

/* Bytes of weights by where they lie. */
struct q_fit_weights {
    size_t embd, head, layer[Q_MAX_LAYERS];   /* head: with the output norm; of a tied one the norm alone */
};
void fit_weights_of_model(struct q_fit_weights *w, const struct q_model *m);
void fit_weights_of_shape(struct q_fit_weights *w, const struct q_config *c, const struct q_format *format);

struct q_fit_options {
    size_t card[FIT_CARDS];        /* bytes, in the order of the stages */
    int n_cards;
    int ctx, n_seqs;               /* tokens of each sequence; sequences at once */
    const size_t *cache;           /* bytes of checkpoints over all cards; NULL: as many as quarry-serve keeps when it is not told */
    const char *kv_k, *kv_v;       /* that heads of this size can have */
    int sparse;                    /* prefill may be sparse */
};

struct q_fit_stage {
    int card, first, last;         /* index of the card; layers [first, last) */
    struct q_plan plan;
    size_t total;                  /* with FIT_DRIVER */
    size_t left;                   /* of the card */
};

struct q_fit {
    int fits, n_stages;            /* n_stages 0: it does not fit */
    struct q_fit_stage stage[FIT_CARDS];
    struct q_plan whole;           /* on one card, however large, in steps of max_rows */
    size_t needed, there;          /* bytes: of `whole` and of what each card takes for itself; of all cards */
    int max_rows, n_snaps;         /* of a step; checkpoints, whose parts lie on each card */
};

/* Fills f; 1 when it fits. */
int fit_place(struct q_fit *f, const struct q_config *c, const struct q_fit_weights *w, const struct q_fit_options *o);
/* The longest context up to `most` tokens (those, or fewer in whole KV pages), and the most sequences up to `most` that fit, all else as in o;
 * 0: none. */
int fit_longest(const struct q_config *c, const struct q_fit_weights *w, const struct q_fit_options *o, int most);
int fit_most_seqs(const struct q_config *c, const struct q_fit_weights *w, const struct q_fit_options *o, int most);

/* A size, "8GiB", or a whole number of bytes; non-zero: it is neither. Of a number alone from 1 to 1 MiB the unit was forgotten: it is none. */
int fit_read_bytes(const char *text, size_t *bytes);
/* A count of tokens, "262144", "256K" (of 1024) or "1M" (of 1024 * 1024); 0, or -1: it is none. */
int fit_read_tokens(const char *text, long *out);
/* Reads "3x16GiB", "16GiB,12GiB,16GiB", "24GB" into card and n_cards. NULL, or what is wrong with it. */
const char *fit_read_cards(struct q_fit_options *o, const char *text);

#endif
