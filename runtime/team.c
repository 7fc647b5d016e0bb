#define _GNU_SOURCE
#include "team.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* At most about 50 us of pauses: longer than most kernels' imbalance, shorter than a scheduler's slice. Where the other members have no
 * processor of their own (more threads than free ones), spinning is what keeps them from arriving: whoever finds that it spins in vain does
 * it ever less, and looks only at times whether that has changed. */
enum { SPINS = 2000, SPINS_LEAST = 8, LOOK_AGAIN = 64, LEARN = 8 };

/* How long one member spins for one event before it sleeps. */
struct patience {
    int spins;
    unsigned waits;
};

struct member {
    struct team t;             /* first: kernels hand this pointer back to `wait` */
    struct q_team *team;
    pthread_t thread;
    struct patience go, met;
};

/* A counter that waiters watch: spin first, then sleep on it. */
struct event {
    atomic_uint value;
    atomic_int sleepers;
};

struct q_team {
    int parts;
    struct member *member;     /* owned: [parts] */
    void (*job)(void *arg, struct team *member);
    void *arg;
    struct event go;           /* counts jobs started */
    struct event met;          /* counts barriers passed */
    atomic_int arrived;
    atomic_int quit;
    int started;               /* threads created, for a half-built team */
};

static int spin(struct event *ev, unsigned seen, int spins)
{
    for (int i = 0; i < spins; i++) {
        if (atomic_load_explicit(&ev->value, memory_order_acquire) != seen) return 1;
        __builtin_ia32_pause();
    }
    return 0;
}

static void event_wait(struct event *ev, unsigned seen, struct patience *p)
{
    int spins = p->waits++ % LOOK_AGAIN ? p->spins : SPINS;
    if (spin(ev, seen, spins)) {
        p->spins += (SPINS - p->spins + LEARN - 1) / LEARN;
        return;
    }
    p->spins -= (p->spins - SPINS_LEAST + LEARN - 1) / LEARN;
    atomic_fetch_add(&ev->sleepers, 1);
    while (atomic_load(&ev->value) == seen) syscall(SYS_futex, &ev->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&ev->sleepers, 1);
}

static void event_raise(struct event *ev)
{
    atomic_fetch_add(&ev->value, 1);
    if (atomic_load(&ev->sleepers)) syscall(SYS_futex, &ev->value, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

/* The last to arrive resets the count before it raises, so nobody can arrive twice at one barrier. */
static void meet(struct team *t)
{
    struct q_team *q = ((struct member *)t)->team;
    unsigned seen = atomic_load(&q->met.value);
    if (atomic_fetch_add(&q->arrived, 1) + 1 == q->parts) {
        atomic_store(&q->arrived, 0);
        event_raise(&q->met);
    } else {
        event_wait(&q->met, seen, &((struct member *)t)->met);
    }
}

static void *member_main(void *arg)
{
    struct member *m = arg;
    for (unsigned seen = 0;; seen++) {
        event_wait(&m->team->go, seen, &m->go);
        if (atomic_load(&m->team->quit)) return NULL;
        m->team->job(m->team->arg, &m->t);
        meet(&m->t);
    }
}

void team_start(struct q_team *t, void (*job)(void *arg, struct team *member), void *arg)
{
    t->job = job;
    t->arg = arg;
    if (t->parts > 1) event_raise(&t->go);
}

void team_finish(struct q_team *t)
{
    t->job(t->arg, &t->member[0].t);
    if (t->parts > 1) meet(&t->member[0].t);
}

int team_open(struct q_team **out, int parts, struct q_err *e)
{
    struct q_team *t = calloc(1, sizeof *t);
    if (!t || !(t->member = calloc((size_t)parts, sizeof *t->member))) {
        free(t);
        return q_fail(e, Q_EMEM, "no memory for a team of %d threads", parts);
    }
    t->parts = parts;
    for (int i = 0; i < parts; i++) {
        t->member[i].t = (struct team){i, parts, meet};
        t->member[i].team = t;
        t->member[i].go.spins = t->member[i].met.spins = SPINS;
    }
    for (int i = 1; i < parts; i++) {
        if (pthread_create(&t->member[i].thread, NULL, member_main, &t->member[i])) {
            team_close(t);
            return q_fail(e, Q_EIO, "cannot start thread %d of %d", i + 1, parts);
        }
        t->started = i;
    }
    *out = t;
    return Q_OK;
}

void team_close(struct q_team *t)
{
    if (!t) return;
    atomic_store(&t->quit, 1);
    event_raise(&t->go);
    for (int i = 1; i <= t->started; i++) pthread_join(t->member[i].thread, NULL);
    free(t->member);
    free(t);
}
