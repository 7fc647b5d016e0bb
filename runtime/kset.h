/* The kernel set of a model on a card: which (op, shape) problems it has, which records answer them, the loaded functions.
 *
 * kset_problems is the one list of what a model needs; the engine loads it and the tuner builds it, so they cannot disagree.
 * kset_open looks every problem up in the store; where objects are missing it starts `quarry-tune --effort none` as a child (once),
 * says so through `say`, and looks again. Nothing is compiled in this process.
 */
#ifndef Q_KSET_H
#define Q_KSET_H

#include "card.h"
#include "err.h"

struct q_device;
struct q_kernel;
struct q_model;

enum q_numerics { Q_STRICT, Q_PINNED, Q_FREE, Q_REFERENCE };
/* "strict" ...; -1 if unknown. */
int q_numerics_parse(const char *name);
const char *q_numerics_name(enum q_numerics n);

struct q_problem {
    char op[24];
    char shape[224];           /* shape text, names in the order of the op's space */
    int rows, ctx;             /* buckets: for steps of at most that many rows and KV tokens, the largest for all above too; 0: any */
};
int q_problem_is(const struct q_problem *a, const struct q_problem *b);

/* All problems of a model, each once, in a stable order; those that differ in their buckets alone stand together, smallest first. Weight layouts
 * come first as problems of the pseudo op "layout" (type, n, k); `layout_of(arg, type, n, k)` answers with the layout chosen for such a weight and
 * is asked while the list is made. A card with memory of its own also needs what brings weights there: repack, synth. kv: format of K and V ("f16";
 * numerics reference uses "f32" for both and fp32 activations). */
struct q_problem_list {
    struct q_problem *p;       /* owned */
    int n;
};
typedef const char *(*q_layout_of)(void *arg, const char *type, long n, long k);
int kset_problems(const struct q_model *m, const struct q_card *card, enum q_numerics numerics, const char *kv_k, const char *kv_v, int sparse,
                  q_layout_of layout_of, void *arg, struct q_problem_list *out, struct q_err *e);

struct kset_opts {
    struct q_device *device;               /* loads the objects; its card is the set's */
    enum q_numerics numerics;
    const char *kv_k, *kv_v;
    int sparse;                            /* prefill may be sparse: attn_pick too */
    const char *tunes;                     /* --tunes DIR or NULL */
    const char *model_arg, *preset_arg;    /* how the child is told the model: -m FILE or --preset NAME */
    const char *preset_format;             /* weight type of a preset; NULL: the child's default, q8_0 */
    const char *program_dir;               /* where quarry-tune lies */
    void (*say)(void *arg, const char *line);   /* facts and progress, may be NULL */
    void *say_arg;
};

struct kset;
int kset_open(struct kset **k, const struct q_model *m, const struct kset_opts *o, struct q_err *e);
void kset_close(struct kset *k);
/* The kernel for an op and shape, borrowed, the first of its chain; Q_EMISS names it if the set has none (a bug: kset_problems did not list it). */
int kset_find(const struct kset *k, const char *op, const char *shape, const struct q_kernel **kernel, struct q_err *e);
/* For traces: the set's own text of the shape and what its record says that a call costs. NULLs if it has no such problem. */
struct record_cost;
void kset_about(const struct kset *k, const char *op, const char *shape, const char **text, const struct record_cost **cost);
/* The layout chosen for a weight of this type and size. */
const char *kset_layout(const struct kset *k, const char *type, long n, long kk);
/* How many kernels (and layouts) come from tuned, borrowed and default records. */
void kset_count(const struct kset *k, int *tuned, int *borrowed, int *defaults);
/* Id of the numerics classes in use: 12 hex digits over (problem, class, params) of the whole set. */
const char *kset_id(const struct kset *k);

#endif
