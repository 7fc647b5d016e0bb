/* Jobs that wait for the engine: first come, first served, a bounded number of them.
 *
 * Connections push, the engine's thread pops. A scheduler that runs many at once will take from the same queue.
 */
#ifndef S_QUEUE_H
#define S_QUEUE_H

#include "job.h"

struct queue;
enum queue_push { QUEUE_TAKEN, QUEUE_FULL, QUEUE_CLOSED };

struct queue_counts {
    int waiting, running;
    unsigned long long answered, failed, cancelled;
    unsigned long long stopped, limited;   /* of those answered: by the model or a stop string, by a limit of tokens */
    unsigned long long prompt, cached, generated;   /* tokens of all that ran: read or re-used, re-used, generated */
    unsigned long long hits;     /* of those that ran: some of the prompt was re-used */
    double prompt_s, generate_s; /* seconds spent on prompts and on answers */
    double answer_s;             /* a running mean of seconds an answer took; 0: none yet */
};

/* most: jobs that may wait, besides those that run. */
int queue_open(struct queue **q, int most, struct q_err *e);
/* Nobody may use it any more. */
void queue_free(struct queue *q);
/* The queue holds the job until it was popped and done, or removed. */
enum queue_push queue_push(struct queue *q, struct job *j);
/* Waits for a job; it counts as running until queue_done. NULL: closed and empty. */
struct job *queue_pop(struct queue *q);
/* The outcome becomes the job's, the counters move. */
void queue_done(struct queue *q, struct job *j, const struct job_outcome *o);
/* A waiting job leaves at once, cancelled; one that runs or is done is not touched. */
void queue_remove(struct queue *q, struct job *j);
/* No more jobs; those inside go on. */
void queue_close(struct queue *q);
/* Ends what waits and asks what runs to end, because the server ends. */
void queue_shut(struct queue *q);
struct queue_counts queue_counts(struct queue *q);

#endif
