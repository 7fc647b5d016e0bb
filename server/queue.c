#include "queue.h"
#include "runtime/clock.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum place { QUEUED, TAKEN, RUNNING };

struct entry {
    struct job *job;             /* held */
    enum place place;
    double since;                /* when it began */
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock */
    struct entry *entry;         /* owned: [n], oldest first */
    int n, cap, running;         /* running: of the n */
    int most, slots, closed, woken;
    struct queue_counts counts;
};

int queue_open(struct queue **out, int most, struct q_err *e)
{
    struct queue *q = calloc(1, sizeof *q);
    if (!q) return q_fail(e, Q_EMEM, "no memory for a queue");
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &clock);
    pthread_condattr_destroy(&clock);
    q->most = most;
    q->slots = 1;
    *out = q;
    return Q_OK;
}

void queue_free(struct queue *q)
{
    if (!q) return;
    for (int i = 0; i < q->n; i++) job_drop(q->entry[i].job);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q->entry);
    free(q);
}

void queue_set_slots(struct queue *q, int slots)
{
    pthread_mutex_lock(&q->lock);
    q->slots = slots;
    pthread_mutex_unlock(&q->lock);
}

/* With the lock held. A job for which a slot is free need no place. Non-zero: there is none, or no memory. */
static int full(struct queue *q)
{
    int idle = q->slots > q->running ? q->slots - q->running : 0;
    if (q->n - q->running >= q->most + idle) return 1;
    if (q->n < q->cap) return 0;
    int cap = q->cap ? q->cap * 2 : 16;
    struct entry *more = realloc(q->entry, (size_t)cap * sizeof *more);
    if (!more) return 1;
    q->entry = more;
    q->cap = cap;
    return 0;
}

enum queue_push queue_push(struct queue *q, struct job *j)
{
    pthread_mutex_lock(&q->lock);
    enum queue_push r = q->closed ? QUEUE_CLOSED : full(q) ? QUEUE_FULL : QUEUE_TAKEN;
    if (r == QUEUE_TAKEN) {
        job_hold(j);
        q->entry[q->n++] = (struct entry){j, QUEUED, 0};
        pthread_cond_signal(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return r;
}

/* With the lock held. */
static struct entry *entry_of(struct queue *q, const struct job *j)
{
    for (int i = 0; i < q->n; i++)
        if (q->entry[i].job == j) return &q->entry[i];
    return NULL;
}

static struct entry *first_queued(struct queue *q)
{
    for (int i = 0; i < q->n; i++)
        if (q->entry[i].place == QUEUED) return &q->entry[i];
    return NULL;
}

static void take_out(struct queue *q, struct entry *x)
{
    q->running -= x->place == RUNNING;
    memmove(x, x + 1, (size_t)(q->entry + --q->n - x) * sizeof *x);
}

/* With the lock held. Non-zero: the time is over. */
static int wait_until(struct queue *q, const struct timespec *end) { return pthread_cond_timedwait(&q->changed, &q->lock, end) == ETIMEDOUT; }

static struct timespec after(int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000L) t.tv_sec++, t.tv_nsec -= 1000000000L;
    return t;
}

int queue_closed(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    int closed = q->closed;
    pthread_mutex_unlock(&q->lock);
    return closed;
}

struct job *queue_take(struct queue *q, int wait)
{
    struct entry *x;
    struct timespec end = after(wait > 0 ? wait : 0);
    pthread_mutex_lock(&q->lock);
    while (!(x = first_queued(q)) && wait && !q->closed && !q->woken) {
        if (wait < 0) pthread_cond_wait(&q->changed, &q->lock);
        else if (wait_until(q, &end)) break;
    }
    if (!x) x = first_queued(q);
    if (wait) q->woken = 0;
    struct job *j = x ? x->job : NULL;
    if (x) x->place = TAKEN;
    pthread_mutex_unlock(&q->lock);
    return j;
}

void queue_wake(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->woken = 1;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void queue_begin(struct queue *q, struct job *j)
{
    pthread_mutex_lock(&q->lock);
    struct entry *x = entry_of(q, j);
    x->place = RUNNING;
    x->since = clock_s();
    q->running++;
    pthread_mutex_unlock(&q->lock);
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
    c->reuse[a->reuse]++;
    c->shared += (unsigned)a->n_shared;
    if (a->n_generated) expo_hist_add(&c->wait, a->wait_s);
    if (a->n_generated) expo_hist_add(&c->first, a->wait_s + a->prefill_s);
    c->prompt_s += a->prefill_s;
    c->generate_s += a->decode_s;
}

static void count_time(struct queue *q, const struct entry *x)
{
    double s = (clock_s() - x->since) / q->slots, *mean = &q->counts.answer_s;
    if (x->place == RUNNING) *mean = *mean > 0 ? *mean * 0.8 + s * 0.2 : s;
}

void queue_done(struct queue *q, struct job *j, const struct job_outcome *o)
{
    pthread_mutex_lock(&q->lock);
    struct entry *x = entry_of(q, j);
    count_time(q, x);
    count_end(q, o);
    take_out(q, x);
    pthread_mutex_unlock(&q->lock);
    job_end(j, o);
    job_drop(j);
}

void queue_remove(struct queue *q, struct job *j)
{
    const struct job_outcome cancelled = {.end = JOB_CANCELLED};
    pthread_mutex_lock(&q->lock);
    struct entry *x = entry_of(q, j);
    int found = x && x->place == QUEUED;
    if (found) {
        take_out(q, x);
        count_end(q, &cancelled);
    }
    pthread_mutex_unlock(&q->lock);
    if (!found) return;
    job_end(j, &cancelled);
    job_drop(j);
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
    struct entry *x;
    pthread_mutex_lock(&q->lock);
    q->closed = 1;
    while ((x = first_queued(q))) {
        struct job *j = x->job;
        take_out(q, x);
        count_end(q, &shutdown);
        job_end(j, &shutdown);
        job_drop(j);
    }
    for (int i = 0; i < q->n; i++) job_shut(q->entry[i].job);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

struct queue_counts queue_counts(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    struct queue_counts c = q->counts;
    c.waiting = q->n - q->running;
    c.running = q->running;
    pthread_mutex_unlock(&q->lock);
    return c;
}
