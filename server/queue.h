/* Jobs between the connections and the engine: a bounded number may wait.
 *
 * Connections push; the engine's thread takes all there are, in order, and its scheduler decides whose turn it is (runtime/scheduler.h): until
 * a job was begun it waits. What was not taken yet can be removed at once; what was taken is cancelled by its job.
 */
#ifndef S_QUEUE_H
#define S_QUEUE_H

#include "exposition.h"
#include "job.h"

struct queue;
enum queue_push { QUEUE_TAKEN, QUEUE_FULL, QUEUE_CLOSED };

struct queue_counts {
    int waiting, running;
    unsigned long long answered, failed, cancelled;
    unsigned long long stopped, limited;   /* of those answered: by the model or a stop string, by a limit of tokens */
    unsigned long long prompt, cached, generated;   /* tokens of all that ran: read or re-used, re-used, generated */
    unsigned long long reuse[Q_REUSE_KINDS];   /* answers that ran, by what became of their prompt's beginning */
    unsigned long long shared;   /* tokens of prompts that something kept had in common with them, cached or not */
    struct expo_hist wait, first;              /* seconds until an answer was begun, until its first token */
    double prompt_s, generate_s; /* seconds spent on prompts and on answers */
    double answer_s;             /* between answers while all slots are busy: a running mean of the seconds one took, by their number; 0: none yet */
};

/* most: jobs that may wait, besides those that run. */
int queue_open(struct queue **q, int most, struct q_err *e);
/* Nobody may use it any more. */
void queue_free(struct queue *q);
/* How many run at once (1 at first): for whom a slot is free need not wait. */
void queue_set_slots(struct queue *q, int slots);
/* The queue holds the job until it is done or was removed. */
enum queue_push queue_push(struct queue *q, struct job *j);
/* The oldest that was not taken; it still waits. wait: milliseconds. NULL: there is none, or it is closed and empty. */
enum { QUEUE_MOMENT = 5, QUEUE_FOREVER = -1 };
struct job *queue_take(struct queue *q, int wait);
/* A queue_take that waits, or the next one, comes back though there is no job. */
void queue_wake(struct queue *q);
int queue_closed(struct queue *q);
/* A taken one runs from now on. */
void queue_begin(struct queue *q, struct job *j);
/* The outcome of a taken one becomes the job's, the counters move. */
void queue_done(struct queue *q, struct job *j, const struct job_outcome *o);
/* A job that was not taken leaves at once, cancelled; others are not touched. */
void queue_remove(struct queue *q, struct job *j);
/* No more jobs; those inside go on. */
void queue_close(struct queue *q);
/* Ends what was not taken and asks the others to end, because the server ends. */
void queue_shut(struct queue *q);
struct queue_counts queue_counts(struct queue *q);

#endif
