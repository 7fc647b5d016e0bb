/* What the scheduler's files share: scheduler.c (tasks and the round), scheduler_plan.c (rows of a step), scheduler_admit.c (who gets a
 * slot), scheduler_keep.c (what slots and the prefix tree remember).
 *
 * Invariants: a task with a slot is that slot's task. slot->ids[0, n) are the tokens its sequence holds; while it has a task they are the
 * first n of task->known, and n < known.n between steps. So reading a prompt, decoding and reading again after a preemption are
 * one thing: feed known[n ..]; whoever feeds the last one draws the next.
 */
#ifndef Q_SCHED_IMPL_H
#define Q_SCHED_IMPL_H

#include "prompt_marks.h"
#include "scheduler.h"
#include "turn.h"

struct sched_client {
    struct sched_client *next;
    unsigned key;
    int tasks, running;
    double served;                   /* rows, from where the least served one stood when this one came */
};

struct sched_slot {
    struct q_seq *seq;               /* owned */
    int32_t *ids;                    /* owned: [ctx] */
    int n;
    struct sched_task *task;         /* NULL: idle */
    int kept;                        /* length at which the tree was offered it last */
    unsigned long long used;         /* tick of its last step */
    double used_s;
};

/* A snapshot that the step being made is to take. */
struct sched_keeping {
    struct sched_task *task;
    int at;                          /* tokens */
    enum q_tree_kind kind;
    struct q_snap *snap;             /* owned, NULL until the step is submitted */
};

struct sched_task {
    struct sched_task *next;         /* in order of arrival */
    struct q_sched_ask ask;
    struct sched_client *client;     /* one of the scheduler's */
    struct q_turn turn;
    struct q_answer answer;
    struct tok_ids known;            /* owned: the prompt and what was drawn */
    struct sched_slot *slot;         /* NULL: it waits */
    unsigned long long number;       /* of arrival */
    struct prompt_marks marks;       /* owned: lengths at which its state is to be kept */
    int promised;                    /* KV pages, while it has a slot */
    int begun, suspect;              /* suspect: it was in a step that failed, and runs alone until a token was drawn */
    double added_s, begun_s, read_s; /* read_s: when the prompt had been read; 0: not yet */
    double asked_s;                  /* when a waiting one was asked last whether it is cancelled */
    int rows, draws;                 /* of the step being made */
    unsigned long long round;        /* in which it was in a step last */
};

struct q_sched {
    struct q_sched_engine en;
    struct sched_slot *slot;         /* owned: [en.max_seqs] */
    struct sched_task *tasks;        /* owned: oldest first */
    struct sched_client *clients;    /* owned: those with tasks */
    struct q_tree *tree;             /* owned */
    unsigned long long brought;      /* round in which a checkpoint came a piece nearer last */
    double move_s;                   /* seconds that the tree may still spend on moves */
    unsigned long long next_number, tick, round;
    struct q_row *rows;              /* owned: [en.max_rows] */
    struct q_keep *keeps;            /* owned: [en.cache.max_snaps + 1] keeps[i].snap is &keeping[i].snap */
    struct sched_keeping *keeping;   /* owned: as long */
    int no_keeps;                    /* none in this step: there is no room, whatever goes */
    struct sched_task **batch;       /* owned: [en.max_seqs] tasks of the step being made, in the order of their rows */
    int n_batch, n_rows, n_keeps;
    int chunk;                       /* rows of prompts in the last step that had any */
    struct sched_counts counts;
};

/* ---- scheduler_plan.c ---- */
enum sched_part { SCHED_DECODES, SCHED_PROMPTS };
/* Fills rows, keeps and batch. Errors are a task's: *culprit. */
int sched_plan(struct q_sched *s, enum sched_part part, struct sched_task **culprit, struct q_err *e);
/* Learns from the step's time. */
void sched_learn(struct q_sched *s, double seconds);
static inline int sched_left(const struct sched_task *t) { return (int)t->known.n - t->slot->n; }
static inline int sched_reads(const struct sched_task *t) { return t->slot && sched_left(t) > 1; }

/* ---- scheduler_admit.c ---- */
/* Gives free slots to those who wait. Errors are a task's: *culprit. */
int sched_admit(struct q_sched *s, struct sched_task **culprit, struct q_err *e);
/* Takes its slot away; the task waits again, if it goes on. */
void sched_leave(struct q_sched *s, struct sched_task *t);
/* Before a step: no more is promised than there is. */
void sched_keep_promises(struct q_sched *s);

/* ---- scheduler_keep.c ---- */
/* Makes an idle slot the task's, holding the longest known beginning of its tokens. */
int sched_reach(struct q_sched *s, struct sched_task *t, struct q_err *e);
/* How many of the task's tokens an idle slot or a checkpoint holds. */
int sched_held(const struct q_sched *s, const struct sched_task *t);
/* Its checkpoint is on its way to the device, in pieces, for others are at work; 0: it is there, or there is none. */
int sched_bring(struct q_sched *s, const struct sched_task *t);
/* The last of the task's marks in (after, most]; 0: none. */
int sched_next_mark(const struct sched_task *t, int after, int most);
/* Notes the marks that the task's rows of this step pass, as far as there is room. */
void sched_want_keeps(struct q_sched *s, struct sched_task *t, int first_row);
/* After the step: the task's snapshots become the tree's. Q_EINTERNAL: one is not as long as it should be. */
int sched_put_keeps(struct q_sched *s, const struct sched_task *t, double token_s, struct q_err *e);
/* Those that the step took and nobody wants. */
void sched_drop_keeps(struct q_sched *s);
/* What an idle slot holds becomes a checkpoint, if it is worth one; as the end of an answer, unless the tree was offered it before. */
void sched_keep_now(struct q_sched *s, struct sched_slot *l, enum q_tree_kind kind);
void sched_keep_end(struct q_sched *s, struct sched_slot *l);
/* Gives KV pages back that only memories hold, the longest unused first; 0: there are none. */
int sched_forget_one(struct q_sched *s);
void sched_forget_slot(struct q_sched *s, struct sched_slot *slot);

#endif
