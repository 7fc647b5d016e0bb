#include "worker.h"
#include "defaults.h"
#include "runtime/chat.h"
#include "tasks.h"
#include "warm.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A chat template is one thread's at a time. */
enum { CHATS = 4 };
struct chat_place {
    pthread_mutex_t lock;
    struct q_chat *chat;             /* owned; guarded by lock once the worker is ready */
};

struct worker {
    struct worker_opts o;
    pthread_t thread;
    atomic_int state;
    struct q_err err;                /* written before the state becomes WORKER_FAILED */
    struct q_engine *engine;         /* owned; written before WORKER_READY */
    struct tasks *tasks;             /* owned; written before WORKER_READY */
    size_t planned, taken;           /* written before WORKER_READY */
    struct q_sampling_params sampling;
    struct chat_place chat[CHATS];
    atomic_uint next_chat;           /* the one to wait for where all are busy */
    struct q_err no_chat;            /* why there are none, if no_chat.code */
};

static void set_state(struct worker *w, enum worker_state s)
{
    atomic_store(&w->state, s);
    w->o.changed(w->o.arg);
}

static int open_chats(struct worker *w, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < CHATS && !rc; i++) rc = q_chat_open(&w->chat[i].chat, w->engine, w->o.jinja, e);
    return rc;
}

static int open_all(struct worker *w, struct q_err *e)
{
    int rc = q_engine_open(&w->engine, &w->o.engine, e);
    if (!rc && !q_engine_tokenizer(w->engine)) rc = q_fail(e, Q_EMISS, "this model has no tokenizer, so it cannot be served");
    if (!rc) rc = defaults_sampling(&w->sampling, w->engine, e);
    if (!rc && w->o.engine.progress) w->o.engine.progress(w->o.engine.progress_arg, "warm-up", 0.97);
    if (!rc) rc = warm_up(w->engine, e);
    if (!rc) q_engine_memory(w->engine, &w->planned, &w->taken);
    if (!rc) rc = tasks_open(&w->tasks, w->engine, w->o.queue, &w->o.cache, w->o.engine.say, w->o.engine.say_arg, e);
    /* A template that was asked for must work; a file without one still serves tokens. */
    if (!rc && open_chats(w, &w->no_chat) && w->no_chat.code != Q_EMISS) {
        *e = w->no_chat;
        rc = e->code;
    }
    return rc;
}

static void *run(void *arg)
{
    struct worker *w = arg;
    if (open_all(w, &w->err)) {
        set_state(w, WORKER_FAILED);
        return NULL;
    }
    set_state(w, WORKER_READY);
    tasks_run(w->tasks);
    set_state(w, WORKER_ENDED);
    return NULL;
}

static void free_all(struct worker *w)
{
    for (int i = 0; i < CHATS; i++) {
        q_chat_close(w->chat[i].chat);
        pthread_mutex_destroy(&w->chat[i].lock);
    }
    tasks_close(w->tasks);
    q_engine_close(w->engine);
    free(w);
}

int worker_start(struct worker **out, const struct worker_opts *o, struct q_err *e)
{
    struct worker *w = calloc(1, sizeof *w);
    if (!w) return q_fail(e, Q_EMEM, "no memory for the engine's thread");
    w->o = *o;
    for (int i = 0; i < CHATS; i++) pthread_mutex_init(&w->chat[i].lock, NULL);
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
void worker_memory(const struct worker *w, size_t *planned, size_t *taken) { *planned = w->planned, *taken = w->taken; }
struct q_sampling_params worker_sampling(const struct worker *w) { return w->sampling; }
struct sched_counts worker_counts(struct worker *w) { return tasks_counts(w->tasks); }
int worker_order(struct worker *w, struct order *x) { return tasks_order(w->tasks, x); }
int worker_view(struct worker *w, struct sched_view *v, int n) { return tasks_view(w->tasks, v, n); }

void worker_stop(struct worker *w)
{
    if (!w) return;
    pthread_join(w->thread, NULL);
    free_all(w);
}

static struct chat_place *take_chat(struct worker *w)
{
    for (int i = 0; i < CHATS; i++)
        if (!pthread_mutex_trylock(&w->chat[i].lock)) return &w->chat[i];
    struct chat_place *p = &w->chat[atomic_fetch_add(&w->next_chat, 1) % CHATS];
    pthread_mutex_lock(&p->lock);
    return p;
}

int worker_encode(struct worker *w, const char *messages, const char *tools, const char *options, const struct q_chat_begun *begun,
                  struct tok_ids *ids, struct q_err *e)
{
    if (w->no_chat.code) {
        *e = w->no_chat;
        return e->code;
    }
    char *text;
    size_t n;
    struct chat_place *p = take_chat(w);
    int rc = q_chat_render(p->chat, messages, tools, options, begun, &text, &n, e);
    pthread_mutex_unlock(&p->lock);
    if (rc) return rc;
    rc = q_chat_ids(p->chat, text, n, ids, e);
    free(text);
    return rc;
}
