#include "queue.h"
#include "runtime/cli.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock */
    struct job **waiting;        /* [most + 1], oldest first; held */
    int n, most, closed;
    struct job *running;         /* held; NULL: none */
    double since;                /* when it began */
    struct queue_counts counts;
};

int queue_open(struct queue **out, int most, struct q_err *e)
{
    struct queue *q = calloc(1, sizeof *q);
    struct job **waiting = calloc((size_t)most + 1, sizeof *waiting);
    if (!q || !waiting) {
        free(q);
        free(waiting);
        return q_fail(e, Q_EMEM, "no memory for a queue of %d requests", most);
    }
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    q->waiting = waiting;
    q->most = most;
    *out = q;
    return Q_OK;
}

void queue_free(struct queue *q)
{
    if (!q) return;
    for (int i = 0; i < q->n; i++) job_drop(q->waiting[i]);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q->waiting);
    free(q);
}

enum queue_push queue_push(struct queue *q, struct job *j)
{
    pthread_mutex_lock(&q->lock);
    /* A free engine is about to take the first, so that one needs no place. */
    int places = q->most + (q->running ? 0 : 1);
    enum queue_push r = q->closed ? QUEUE_CLOSED : q->n >= places ? QUEUE_FULL : QUEUE_TAKEN;
    if (r == QUEUE_TAKEN) {
        job_hold(j);
        q->waiting[q->n++] = j;
        pthread_cond_signal(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return r;
}

static struct job *take_out(struct queue *q, int i)
{
    struct job *j = q->waiting[i];
    memmove(q->waiting + i, q->waiting + i + 1, (size_t)(--q->n - i) * sizeof *q->waiting);
    return j;
}

struct job *queue_pop(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->n && !q->closed) pthread_cond_wait(&q->changed, &q->lock);
    struct job *j = q->n ? take_out(q, 0) : NULL;
    q->running = j;
    q->since = cli_seconds();
    pthread_mutex_unlock(&q->lock);
    return j;
}

/* With the lock held. A job that never ran has an answer of zeros. */
static void count_end(struct queue *q, const struct job_outcome *o)
{
    struct queue_counts *c = &q->counts;
    const struct q_answer *a = &o->answer;
    if (o->end == JOB_ANSWERED) c->answered++;
    else if (o->end == JOB_FAILED) c->failed++;
    else c->cancelled++;
    if (o->end == JOB_ANSWERED && a->finish == Q_FINISH_STOP) c->stopped++;
    if (o->end == JOB_ANSWERED && a->finish == Q_FINISH_LENGTH) c->limited++;
    c->prompt += (unsigned)a->n_prompt;
    c->cached += (unsigned)a->n_cached;
    c->generated += (unsigned)a->n_generated;
    c->hits += a->n_cached > 0;
    c->prompt_s += a->prefill_s;
    c->generate_s += a->decode_s;
}

void queue_done(struct queue *q, struct job *j, const struct job_outcome *o)
{
    pthread_mutex_lock(&q->lock);
    double took = cli_seconds() - q->since;
    q->counts.answer_s = q->counts.answer_s > 0 ? q->counts.answer_s * 0.8 + took * 0.2 : took;
    count_end(q, o);
    q->running = NULL;
    pthread_mutex_unlock(&q->lock);
    job_end(j, o);
    job_drop(j);
}

void queue_remove(struct queue *q, struct job *j)
{
    const struct job_outcome cancelled = {.end = JOB_CANCELLED};
    struct job *found = NULL;
    pthread_mutex_lock(&q->lock);
    for (int i = 0; i < q->n && !found; i++)
        if (q->waiting[i] == j) found = take_out(q, i);
    if (found) count_end(q, &cancelled);
    pthread_mutex_unlock(&q->lock);
    if (!found) return;
    job_end(found, &cancelled);
    job_drop(found);
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = 1;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void queue_shut(struct queue *q)
{
    const struct job_outcome shutdown = {.end = JOB_SHUTDOWN};
    pthread_mutex_lock(&q->lock);
    q->closed = 1;
    if (q->running) job_shut(q->running);
    while (q->n) {
        struct job *j = take_out(q, q->n - 1);
        count_end(q, &shutdown);
        job_end(j, &shutdown);
        job_drop(j);
    }
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

struct queue_counts queue_counts(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    struct queue_counts c = q->counts;
    c.waiting = q->n;
    c.running = q->running != NULL;
    pthread_mutex_unlock(&q->lock);
    return c;
}
