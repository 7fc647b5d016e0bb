/* The engine's thread: opens the model, then runs the queue's jobs (tasks.h).
 *
 * Only this thread runs the engine. Once it is ready, other threads may read what never changes (model, tokenizer, sizes) and render
 * prompts through worker_encode, which takes a few at a time: one that takes long does not hold up the others.
 */
#ifndef S_WORKER_H
#define S_WORKER_H

#include "cache.h"
#include "queue.h"
#include "runtime/scheduler.h"

enum worker_state { WORKER_LOADING, WORKER_READY, WORKER_FAILED, WORKER_ENDED };

struct worker;

struct worker_opts {
    struct q_engine_opts engine;     /* borrowed for the worker's life, as the rest */
    struct cache_opts cache;
    const char *jinja;               /* a chat template instead of the file's, or NULL */
    struct queue *queue;
    void (*changed)(void *arg);      /* the state changed; called on the worker's thread */
    void *arg;
};

int worker_start(struct worker **w, const struct worker_opts *o, struct q_err *e);
enum worker_state worker_state(struct worker *w);
/* After WORKER_FAILED: why. */
void worker_error(struct worker *w, struct q_err *e);
/* The queue is closed: waits for the thread and frees all. */
void worker_stop(struct worker *w);

/* From WORKER_READY on. */
const struct q_engine *worker_engine(const struct worker *w);
/* q_engine_memory after the first steps. */
void worker_memory(const struct worker *w, size_t *planned, size_t *taken);
struct q_sampling_params worker_sampling(const struct worker *w);   /* what a request that says nothing gets */
/* Of the scheduler, as of its last step. worker_view fills at most n slots and returns their number. */
struct sched_counts worker_counts(struct worker *w);
int worker_view(struct worker *w, struct sched_view *v, int n);
/* Something done with a slot, between steps (orders.h). */
struct order;
int worker_order(struct worker *w, struct order *x);
/* The chat's prompt (q_chat_render and q_chat_ids in runtime/chat.h). Q_EMISS: the model has no chat template. */
struct q_chat_begun;
int worker_encode(struct worker *w, const char *messages, const char *tools, const char *options, const struct q_chat_begun *begun,
                  struct tok_ids *ids, struct q_err *e);

#endif
