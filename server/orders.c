#include "orders.h"
#include "runtime/clock.h"
#include <pthread.h>
#include <stdlib.h>

struct orders {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock; an order belongs to the engine's thread from when it was taken out until it is done */
    struct order *first;         /* borrowed: oldest first */
    int ended;
    void (*wake)(void *arg);
    void *arg;
};

int orders_open(struct orders **out, void (*wake)(void *arg), void *arg, struct q_err *e)
{
    struct orders *o = calloc(1, sizeof *o);
    if (!o) return q_fail(e, Q_EMEM, "no memory for orders of slots");
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, NULL);
    o->wake = wake;
    o->arg = arg;
    *out = o;
    return Q_OK;
}

void orders_close(struct orders *o)
{
    if (!o) return;
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

static void end_order(struct order *x) { q_fail(&x->err, Q_EMISS, "the server ends"); }

int orders_give(struct orders *o, struct order *x)
{
    struct order **at;
    x->next = NULL;
    x->done = 0;
    x->err.code = 0;
    pthread_mutex_lock(&o->lock);
    if (o->ended) {
        end_order(x);
        x->done = 1;
    } else {
        for (at = &o->first; *at; at = &(*at)->next) continue;
        *at = x;
        o->wake(o->arg);
    }
    while (!x->done) pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
    return x->err.code;
}

/* ---- the engine's thread ---- */

static void save(struct q_sched *s, struct order *x)
{
    struct q_sched_save save = {.path = x->path};
    if (q_sched_save(s, x->slot, &save, &x->err)) return;
    x->tokens = save.saved;
    x->bytes = save.written;
}

static void restore(struct q_sched *s, struct order *x)
{
    struct q_sched_restored r;
    if (q_sched_restore(s, x->slot, x->file, &r, &x->err)) return;
    x->tokens = r.tokens;
    x->parts = r.parts;
    x->kept = r.kept;
    x->bytes = session_head(x->file)->bytes;
}

static void run(struct q_sched *s, struct order *x)
{
    double begin = clock_s();
    if (x->kind == ORDER_SAVE) save(s, x);
    else if (x->kind == ORDER_RESTORE) restore(s, x);
    else q_sched_erase(s, x->slot, &x->tokens, &x->err);
    x->seconds = clock_s() - begin;
}

/* The oldest that can run now, or whose slot there is not. */
static struct order *take(struct orders *o, const struct q_sched *s)
{
    pthread_mutex_lock(&o->lock);
    struct order **at = &o->first;
    while (*at && q_sched_check_slot(s, (*at)->slot, NULL) == Q_ELIMIT) at = &(*at)->next;
    struct order *x = *at;
    if (x) *at = x->next;
    pthread_mutex_unlock(&o->lock);
    return x;
}

static void done(struct orders *o, struct order *x)
{
    pthread_mutex_lock(&o->lock);
    x->done = 1;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

void orders_run(struct orders *o, struct q_sched *s, void (*ran)(void *arg), void *arg)
{
    for (struct order *x; (x = take(o, s));) {
        run(s, x);
        ran(arg);
        done(o, x);
    }
}

void orders_end(struct orders *o)
{
    pthread_mutex_lock(&o->lock);
    o->ended = 1;
    for (struct order *x; (x = o->first);) {
        o->first = x->next;
        end_order(x);
        x->done = 1;
    }
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}
