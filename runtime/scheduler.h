/* Many answers at once on one engine: what is read and drawn in each step, for whom, and who waits.
 *
 * A task is one answer. It waits, is admitted to a slot (a sequence), reads its prompt in chunks, draws a token a step, and ends. One
 * call of q_sched_step draws a token of every task that decodes, and reads a chunk of the prompts of those who do not yet, so
 * that a long prompt never freezes the others. The chunk is chosen from the times that steps took: both together last about the longer of
 * 50 ms and three decode steps. While nobody decodes, prompts are read in the widest steps.
 *
 * Promises:
 *  - A task's result does not depend on its neighbours more than the numerics say: in strict not at all, bit for bit.
 *  - Clients share slots and rows, not requests: of those who wait, the client with the fewest running tasks and the fewest rows so far is
 *    next, and so it is with the rows left for prompts. Within a client, first come first served.
 *  - A task is admitted when its prompt and what it is likely to write (max_tokens, at most en.promise at first) fit into the KV pages
 *    that are not promised.
 *    Should pages run out all the same, checkpoints go first, then the youngest task leaves its slot: it waits, and reads
 *    again later what it had, its tokens included. Nothing fails for lack of pages.
 *  - Cancelled tasks are gone, and their slots free, before the next step.
 *  - What was read before is not read again: slots remember their tokens, and a prefix tree (prefix_tree.h) keeps the state at the ends of
 *    turns (prompt_marks.h says where). A task whose prompt begins with one that is being read now waits until that can be shared: n
 *    answers to one prompt read it once. What the tree moves between tiers takes a small share of the time of steps.
 *  - A step that fails fails nobody but who made it fail: its tasks run again, one at a time.
 *
 * It knows no sockets, no threads and no clock but its engine's (struct q_sched_engine), so tests run it on a made-up one.
 */
#ifndef Q_SCHED_H
#define Q_SCHED_H

#include "answer.h"
#include "prefix_tree.h"

/* The engine as a scheduler sees it. The calls are those of engine.h; the scheduler is their only caller. */
struct q_sched_engine {
    struct q_engine *engine;
    const struct tokenizer *tokenizer;   /* NULL: ids are all there is */
    int n_vocab, ctx, max_seqs;
    int max_rows;                        /* of a step; at least max_seqs */
    int pages, page_tokens;              /* KV pages; together at least a full context */
    int promise;                         /* tokens of an answer that pages are promised for at first; most are shorter */
    int (*seq_open)(struct q_engine *en, struct q_seq **s, struct q_err *e);
    void (*seq_close)(struct q_seq *s);
    void (*seq_clear)(struct q_seq *s);
    int (*seq_length)(const struct q_seq *s);
    int (*seq_snapshot)(struct q_seq *s, struct q_snap **snap, struct q_err *e);
    int (*seq_restore)(struct q_seq *s, const struct q_snap *snap, struct q_err *e);
    int (*submit)(struct q_engine *en, const struct q_step *step, q_ticket *t, struct q_err *e);
    int (*wait)(struct q_engine *en, q_ticket t, struct q_result *r, struct q_err *e);
    double (*seconds)(void);
    struct q_tree_engine tree;
    struct q_tree_opts cache;            /* what may be kept; max_snaps: at most the engine's */
    int mark_every;                      /* tokens of a long prompt between places that are kept; 0: only the ends of turns */
};
/* That of a real engine: all its snapshots, nothing on the host or on disk. */
struct q_sched_engine q_sched_engine_of(struct q_engine *en);

/* All borrowed until `ended`. The callbacks are called from q_sched_step. */
struct q_sched_ask {
    const int32_t *ids;                  /* [n] the prompt */
    size_t n;
    struct q_answer_opts o;              /* o.cancelled is asked before each step; while the task waits, some times a second */
    unsigned client;
    void (*begun)(void *arg);            /* it has a slot, for the first time; may be NULL */
    /* Once. err: NULL, or why there is no answer. */
    void (*ended)(void *arg, const struct q_answer *a, const struct q_err *err);
    void *arg;                           /* of these two; the others have o.arg */
};

struct q_sched;
int q_sched_open(struct q_sched **s, const struct q_sched_engine *en, struct q_err *e);
/* Tasks that are left end as cancelled. */
void q_sched_close(struct q_sched *s);
/* A bad question is refused here, without `ended`: Q_EINPUT, Q_ELIMIT (the prompt does not fit the context), Q_EMEM. */
int q_sched_add(struct q_sched *s, const struct q_sched_ask *ask, struct q_err *e);
/* One round: a step of the engine, or two. 0: there is no task. */
int q_sched_step(struct q_sched *s);
/* While there is no task: the ends of answers are kept, copies made ahead of need. 0: nothing is left to do. Takes some 10 ms. */
int q_sched_idle(struct q_sched *s);

struct sched_counts {
    int slots, running, reading, waiting;    /* now; reading: of the running ones, those with prompt left */
    int pages, promised;                     /* KV pages, and those promised to running tasks */
    unsigned long long steps, read, cached, generated;   /* since it opened; tokens: read of prompts (again after a preemption), re-used, generated */
    unsigned long long preempted;
    double busy_s;                           /* in steps */
    double decode_step_s, row_s;             /* of late: a step of decodes alone; what a row of a prompt adds */
    struct q_tree_counts tree;
};
struct sched_counts q_sched_counts(const struct q_sched *s);

/* A slot, for people who look. */
struct sched_view {
    int busy;
    unsigned client;
    int n_prompt, n_held, n_generated, max_tokens;   /* n_held: tokens in the sequence, of an idle slot too */
    double seconds;                                  /* since the task was admitted */
};
/* Fills at most n; returns the number of slots. */
int q_sched_view(const struct q_sched *s, struct sched_view *v, int n);

#endif
