#include "connections.h"
#include "errors.h"
#include "runtime/clock.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static const double look_s = 0.5, crowded_idle_s = 2;

struct connection {
    struct connections *all;
    struct connection *prev, *next;
    int fd;
    /* guarded by all->lock */
    enum connection_phase phase;
    double since;            /* of the phase */
    int shut, late;
};

struct connections {
    struct connection_limits limits;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by lock */
    struct connection *first;
    int n, ending;
};

static double time_of(const struct connections *cs, enum connection_phase p)
{
    int crowded = cs->n > cs->limits.many;
    switch (p) {
    case CONNECTION_NEW: return crowded ? crowded_idle_s : cs->limits.header_s;
    case CONNECTION_IDLE: return crowded ? crowded_idle_s : cs->limits.idle_s;
    case CONNECTION_HEADER: return cs->limits.header_s;
    case CONNECTION_BODY: return cs->limits.body_s;
    default: return 1e300;
    }
}

/* Nothing else was written for this request, so an answer may be put on the socket from here; it is small, and lost where it does not fit. */
static void send_408(struct connection *c, int s)
{
    struct api_error x = {0};
    struct text body = {0}, t = {0};
    api_fail(&x, 408, "request_timeout", NULL, "the request was not whole after %d seconds", s);
    api_error_json(&x, &body);
    text_printf(&t, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body.n);
    if (text_ok(&body)) text_add(&t, body.at, body.n);
    if (text_ok(&t)) send(c->fd, t.at, t.n, MSG_DONTWAIT | MSG_NOSIGNAL);
    text_free(&body);
    text_free(&t);
}

/* With the lock held, so that the socket is still this connection's. Its own thread sees the end of the stream and closes it. */
static void shut(struct connection *c, double after)
{
    c->shut = 1;
    c->late = c->phase == CONNECTION_HEADER || c->phase == CONNECTION_BODY;
    if (c->late) send_408(c, (int)after);
    shutdown(c->fd, SHUT_RDWR);
}

static void look(struct connections *cs)
{
    double now = clock_s();
    for (struct connection *c = cs->first; c; c = c->next) {
        double most = time_of(cs, c->phase);
        if (!c->shut && now - c->since > most) shut(c, most);
    }
}

static void *run(void *arg)
{
    struct connections *cs = arg;
    struct timespec t;
    pthread_mutex_lock(&cs->lock);
    while (!cs->ending) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_nsec += (long)(look_s * 1e9);
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&cs->changed, &cs->lock, &t);
        look(cs);
    }
    pthread_mutex_unlock(&cs->lock);
    return NULL;
}

static void free_all(struct connections *cs)
{
    pthread_cond_destroy(&cs->changed);
    pthread_mutex_destroy(&cs->lock);
    free(cs);
}

int connections_open(struct connections **out, const struct connection_limits *limits, struct q_err *e)
{
    struct connections *cs = calloc(1, sizeof *cs);
    pthread_condattr_t monotonic;
    if (!cs) return q_fail(e, Q_EMEM, "no memory for connections");
    cs->limits = *limits;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&cs->lock, NULL);
    pthread_cond_init(&cs->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&cs->thread, NULL, run, cs)) {
        free_all(cs);
        return q_fail(e, Q_EIO, "cannot start a thread for connections");
    }
    *out = cs;
    return Q_OK;
}

void connections_close(struct connections *cs)
{
    if (!cs) return;
    pthread_mutex_lock(&cs->lock);
    cs->ending = 1;
    pthread_cond_signal(&cs->changed);
    pthread_mutex_unlock(&cs->lock);
    pthread_join(cs->thread, NULL);
    free_all(cs);
}

int connections_count(struct connections *cs)
{
    pthread_mutex_lock(&cs->lock);
    int n = cs->n;
    pthread_mutex_unlock(&cs->lock);
    return n;
}

int connections_crowded(struct connections *cs) { return connections_count(cs) > cs->limits.many; }

struct connection *connection_add(struct connections *cs, int fd)
{
    struct connection *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (struct connection){.all = cs, .fd = fd, .since = clock_s()};
    pthread_mutex_lock(&cs->lock);
    c->next = cs->first;
    if (c->next) c->next->prev = c;
    cs->first = c;
    cs->n++;
    pthread_mutex_unlock(&cs->lock);
    return c;
}

void connection_remove(struct connection *c)
{
    if (!c) return;
    struct connections *cs = c->all;
    pthread_mutex_lock(&cs->lock);
    if (c->next) c->next->prev = c->prev;
    *(c->prev ? &c->prev->next : &cs->first) = c->next;
    cs->n--;
    pthread_mutex_unlock(&cs->lock);
    free(c);
}

void connection_phase(struct connection *c, enum connection_phase p)
{
    if (!c) return;
    pthread_mutex_lock(&c->all->lock);
    c->phase = p;
    c->since = clock_s();
    pthread_mutex_unlock(&c->all->lock);
}

int connection_late(struct connection *c)
{
    if (!c) return 0;
    pthread_mutex_lock(&c->all->lock);
    int late = c->late;
    pthread_mutex_unlock(&c->all->lock);
    return late;
}
