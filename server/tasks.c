#include "tasks.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct tasks {
    struct queue *queue;             /* borrowed */
    const struct tokenizer *tokenizer;
    struct cache *cache;             /* owned; the scheduler's */
    struct q_sched *sched;           /* owned */
    struct orders *orders;           /* owned */
    int n;                           /* tasks that have not ended */
    pthread_mutex_t lock;
    /* guarded by lock: what the scheduler said after its last step */
    struct sched_counts counts;
    struct sched_view *view;         /* owned: [counts.slots] */
};

/* One job while the scheduler has it. */
struct task {
    struct tasks *of;
    struct job *job;                 /* the queue holds it */
    int begun;
    struct q_err err;                /* why it is given up, if err.code */
};

static void wake(void *arg) { queue_wake(arg); }

int tasks_open(struct tasks **out, struct q_engine *en, struct queue *q, const struct cache_opts *cache, void (*say)(void *arg, const char *line),
               void *say_arg, struct q_err *e)
{
    struct tasks *t = calloc(1, sizeof *t);
    if (!t) return q_fail(e, Q_EMEM, "no memory for the engine's thread");
    struct q_sched_engine se = q_sched_engine_of(en);
    t->queue = q;
    t->tokenizer = se.tokenizer;
    t->view = calloc((size_t)se.max_seqs, sizeof *t->view);
    int rc = cache_open(&t->cache, cache, en, &se, say, say_arg, e);
    if (!rc) rc = t->view ? q_sched_open(&t->sched, &se, e) : q_fail(e, Q_EMEM, "no memory for %d slots", se.max_seqs);
    if (!rc) rc = orders_open(&t->orders, wake, q, e);
    pthread_mutex_init(&t->lock, NULL);
    if (rc) {
        tasks_close(t);
        return rc;
    }
    t->counts = q_sched_counts(t->sched);
    queue_set_slots(q, se.max_seqs);
    *out = t;
    return Q_OK;
}

void tasks_close(struct tasks *t)
{
    if (!t) return;
    q_sched_close(t->sched);
    orders_close(t->orders);
    cache_close(t->cache);
    pthread_mutex_destroy(&t->lock);
    free(t->view);
    free(t);
}

/* ---- what the scheduler calls ---- */

static int unwanted(void *arg)
{
    struct task *k = arg;
    return k->err.code || job_unwanted(k->job);
}

static int put(void *arg, enum q_part part, const char *s, size_t n) { return job_put(((struct task *)arg)->job, part, s, n); }
static int put_token(void *arg, const struct q_token *t) { return job_token(((struct task *)arg)->job, t); }

/* The prompt's text. */
static int echo(struct task *k, struct q_err *e)
{
    const struct tok_ids *ids = &job_asked(k->job)->prompt;
    struct tok_stream stream = {0};
    struct tok_text text = {0};
    int rc = Q_OK;
    for (size_t i = 0; i < ids->n && !rc; i++) rc = tok_stream_push(&stream, k->of->tokenizer, ids->at[i], &text, e);
    if (!rc) rc = tok_stream_flush(&stream, &text, e);
    if (!rc && text.n && job_put(k->job, Q_PART_CONTENT, text.at, text.n)) rc = q_fail(e, Q_EMEM, "no memory for the prompt's text");
    free(text.at);
    return rc;
}

static void begun(void *arg)
{
    struct task *k = arg;
    k->begun = 1;
    queue_begin(k->of->queue, k->job);
    if (job_asked(k->job)->echo) echo(k, &k->err);
}

static void finish(struct task *k, const struct job_outcome *o)
{
    struct tasks *t = k->of;
    queue_done(t->queue, k->job, o);
    t->n--;
    free(k);
}

static void ended(void *arg, const struct q_answer *a, const struct q_err *err)
{
    struct task *k = arg;
    struct job_outcome o = {.end = a->finish == Q_FINISH_CANCELLED ? JOB_CANCELLED : JOB_ANSWERED, .answer = *a};
    if (!k->begun) o.answer = (struct q_answer){0};
    if (!err && k->err.code) err = &k->err;
    if (err) o = (struct job_outcome){.end = JOB_FAILED, .err = *err};
    finish(k, &o);
}

/* ---- the loop ---- */

static struct q_answer_opts options(const struct job_ask *ask, struct task *k)
{
    return (struct q_answer_opts){.sampling = ask->sampling, .max_tokens = ask->max_tokens, .stop = (const char *const *)ask->stop,
        .n_stop = ask->n_stop, .thinking = ask->thinking, .raw = ask->raw, .ignore_eos = ask->ignore_eos,
        .thinking_limited = ask->think_budget >= 0, .think_budget = ask->think_budget, .n_top = ask->logprobs > 0 ? ask->logprobs : 0,
        .bias_id = ask->bias_id, .bias = ask->bias, .n_bias = ask->n_bias, .constraint = ask->constraint,
        .cancelled = unwanted, .text = put, .token = ask->logprobs >= 0 ? put_token : NULL, .arg = k};
}

static void add(struct tasks *t, struct job *j)
{
    const struct job_ask *ask = job_asked(j);
    struct job_outcome o = {.end = JOB_FAILED};
    struct task *k = calloc(1, sizeof *k);
    if (!k) {
        q_fail(&o.err, Q_EMEM, "no memory for a request");
        queue_done(t->queue, j, &o);
        return;
    }
    *k = (struct task){.of = t, .job = j};
    const struct q_sched_ask a = {.ids = ask->prompt.at, .n = ask->prompt.n, .o = options(ask, k), .client = ask->client, .begun = begun,
                                  .ended = ended, .arg = k};
    t->n++;
    if (q_sched_add(t->sched, &a, &o.err)) finish(k, &o);
}

static void publish(void *arg)
{
    struct tasks *t = arg;
    struct sched_counts c = q_sched_counts(t->sched);
    pthread_mutex_lock(&t->lock);
    t->counts = c;
    q_sched_view(t->sched, t->view, c.slots);
    pthread_mutex_unlock(&t->lock);
}

/* How long to wait for a job: not at all while there is work, a moment while there is some with what was kept. */
static int patience(struct tasks *t)
{
    if (t->n) return 0;
    orders_run(t->orders, t->sched, publish, t);
    int more = q_sched_idle(t->sched);
    publish(t);
    return more ? QUEUE_MOMENT : QUEUE_FOREVER;
}

/* 0: none is there and none will come. */
static int take_jobs(struct tasks *t)
{
    struct job *j = queue_take(t->queue, 0);
    while (!j && !t->n && (j = queue_take(t->queue, patience(t))) == NULL && !queue_closed(t->queue)) continue;
    for (; j; j = queue_take(t->queue, 0)) add(t, j);
    return t->n;
}

void tasks_run(struct tasks *t)
{
    while (take_jobs(t)) {
        orders_run(t->orders, t->sched, publish, t);
        q_sched_step(t->sched);
        publish(t);
    }
    orders_end(t->orders);
}

int tasks_order(struct tasks *t, struct order *x) { return orders_give(t->orders, x); }

struct sched_counts tasks_counts(struct tasks *t)
{
    pthread_mutex_lock(&t->lock);
    struct sched_counts c = t->counts;
    pthread_mutex_unlock(&t->lock);
    return c;
}

int tasks_view(struct tasks *t, struct sched_view *v, int n)
{
    pthread_mutex_lock(&t->lock);
    int slots = t->counts.slots;
    memcpy(v, t->view, (size_t)(n < slots ? n : slots) * sizeof *v);
    pthread_mutex_unlock(&t->lock);
    return slots;
}
