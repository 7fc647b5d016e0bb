#include "worker.h"
#include "defaults.h"
#include "runtime/chat.h"
#include "warm.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct worker {
    struct worker_opts o;
    pthread_t thread;
    atomic_int state;
    struct q_err err;                /* written before the state becomes WORKER_FAILED */
    struct q_engine *engine;         /* owned; written before WORKER_READY */
    struct q_talk *talk;             /* owned; the thread's alone */
    struct q_sampling_params sampling;
    pthread_mutex_t chat_lock;
    struct q_chat *chat;             /* owned; NULL: no_chat says why */
    struct q_err no_chat;
};

static void set_state(struct worker *w, enum worker_state s)
{
    atomic_store(&w->state, s);
    w->o.changed(w->o.arg);
}

/* Without -c: as much context as the model was trained for, halved until it fits. */
static int open_engine(struct worker *w, struct q_err *e)
{
    struct q_engine_opts o = w->o.engine;
    const int least = 4096;
    int rc = Q_ELIMIT;
    if (o.ctx) return q_engine_open(&w->engine, &o, e);
    for (o.ctx_hint = 1 << 20; rc == Q_ELIMIT && o.ctx_hint >= least; o.ctx_hint /= 2) rc = q_engine_open(&w->engine, &o, e);
    return rc;
}

static int open_all(struct worker *w, struct q_err *e)
{
    int rc = open_engine(w, e);
    if (!rc && !q_engine_tokenizer(w->engine)) rc = q_fail(e, Q_EMISS, "this model has no tokenizer, so it cannot be served");
    if (!rc) rc = defaults_sampling(&w->sampling, w->engine, e);
    if (!rc && w->o.engine.progress) w->o.engine.progress(w->o.engine.progress_arg, "warm-up", 0.97);
    if (!rc) rc = warm_up(w->engine, e);
    if (!rc) rc = q_talk_open(&w->talk, w->engine, e);
    /* A template that was asked for must work; a file without one still serves tokens. */
    if (!rc && q_chat_open(&w->chat, w->engine, w->o.jinja, &w->no_chat) && w->no_chat.code != Q_EMISS) {
        *e = w->no_chat;
        rc = e->code;
    }
    return rc;
}

static int unwanted(void *arg) { return job_unwanted(arg); }
static int put(void *arg, enum q_part part, const char *s, size_t n) { return job_put(arg, part, s, n); }
static int put_token(void *arg, const struct q_token *t) { return job_token(arg, t); }

static int echo(struct worker *w, struct job *j, struct q_err *e)
{
    const struct tok_ids *ids = &job_asked(j)->prompt;
    const struct tokenizer *t = q_engine_tokenizer(w->engine);
    struct tok_stream stream = {0};
    struct tok_text text = {0};
    int rc = Q_OK;
    for (size_t i = 0; i < ids->n && !rc; i++) rc = tok_stream_push(&stream, t, ids->at[i], &text, e);
    if (!rc) rc = tok_stream_flush(&stream, &text, e);
    if (!rc && text.n && job_put(j, Q_PART_CONTENT, text.at, text.n)) rc = q_fail(e, Q_EMEM, "no memory for the prompt's text");
    free(text.at);
    return rc;
}

static struct q_answer_opts options(struct job *j)
{
    const struct job_ask *ask = job_asked(j);
    return (struct q_answer_opts){.sampling = ask->sampling, .max_tokens = ask->max_tokens, .stop = (const char *const *)ask->stop,
        .n_stop = ask->n_stop, .thinking = ask->thinking, .raw = ask->raw, .ignore_eos = ask->ignore_eos,
        .thinking_limited = ask->think_budget >= 0, .think_budget = ask->think_budget, .n_top = ask->logprobs > 0 ? ask->logprobs : 0,
        .constraint = ask->constraint, .bias_id = ask->bias_id, .bias = ask->bias, .n_bias = ask->n_bias,
        .cancelled = unwanted, .text = put, .token = ask->logprobs >= 0 ? put_token : NULL, .arg = j};
}

static void answer(struct worker *w, struct job *j)
{
    const struct job_ask *ask = job_asked(j);
    struct job_outcome out = {.end = JOB_CANCELLED};
    const struct q_answer_opts o = options(j);
    if (!job_unwanted(j)) {
        int rc = ask->echo ? echo(w, j, &out.err) : Q_OK;
        if (!rc) rc = q_talk_answer(w->talk, ask->prompt.at, ask->prompt.n, &o, &out.answer, &out.err);
        out.end = rc ? JOB_FAILED : out.answer.finish == Q_FINISH_CANCELLED ? JOB_CANCELLED : JOB_ANSWERED;
    }
    queue_done(w->o.queue, j, &out);
}

static void *run(void *arg)
{
    struct worker *w = arg;
    if (open_all(w, &w->err)) {
        set_state(w, WORKER_FAILED);
        return NULL;
    }
    set_state(w, WORKER_READY);
    for (struct job *j; (j = queue_pop(w->o.queue));) answer(w, j);
    set_state(w, WORKER_ENDED);
    return NULL;
}

static void free_all(struct worker *w)
{
    q_chat_close(w->chat);
    q_talk_close(w->talk);
    q_engine_close(w->engine);
    pthread_mutex_destroy(&w->chat_lock);
    free(w);
}

int worker_start(struct worker **out, const struct worker_opts *o, struct q_err *e)
{
    struct worker *w = calloc(1, sizeof *w);
    if (!w) return q_fail(e, Q_EMEM, "no memory for the engine's thread");
    w->o = *o;
    pthread_mutex_init(&w->chat_lock, NULL);
    if (pthread_create(&w->thread, NULL, run, w)) {
        free_all(w);
        return q_fail(e, Q_EIO, "cannot start the engine's thread");
    }
    *out = w;
    return Q_OK;
}

enum worker_state worker_state(struct worker *w) { return (enum worker_state)atomic_load(&w->state); }
void worker_error(struct worker *w, struct q_err *e) { *e = w->err; }
const struct q_engine *worker_engine(const struct worker *w) { return w->engine; }
struct q_sampling_params worker_sampling(const struct worker *w) { return w->sampling; }

void worker_stop(struct worker *w)
{
    if (!w) return;
    pthread_join(w->thread, NULL);
    free_all(w);
}

int worker_encode(struct worker *w, const char *messages, const char *tools, const char *options, const struct q_chat_begun *begun,
                  struct tok_ids *ids, struct q_err *e)
{
    if (!w->chat) {
        *e = w->no_chat;
        return e->code;
    }
    pthread_mutex_lock(&w->chat_lock);
    int rc = q_chat_continue(w->chat, messages, tools, options, begun, ids, e);
    pthread_mutex_unlock(&w->chat_lock);
    return rc;
}
