#include "job.h"
#include "runtime/clock.h"
#include "runtime/constrain.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct tokens {
    struct q_token *at;          /* owned */
    int n, cap;
};

/* What was added to one part at one time or more, and not yet taken. */
struct piece {
    enum q_part part;
    struct text text;
    struct tokens tokens;
};

struct job {
    struct job_ask ask;
    pthread_mutex_t lock;
    pthread_cond_t changed;      /* CLOCK_MONOTONIC */
    /* guarded by lock */
    int holders;
    struct client client;        /* fd < 0: not looked at */
    int cancelled, shut, ended;
    int only_end;                /* whoever waits need not be woken for text */
    struct piece *piece;         /* owned: [n_pieces], oldest first; neighbours are of different parts */
    int n_pieces;
    struct tokens pending;       /* their text is not there yet */
    struct tokens taken;         /* the connection's alone */
    struct job_outcome outcome;
};

struct job_ask job_ask_default(void)
{
    return (struct job_ask){.max_tokens = -1, .think_budget = -1, .logprobs = -1, .sampling = q_sampling_default()};
}

void job_ask_free(struct job_ask *a)
{
    free(a->prompt.at);
    free(a->bias_id);
    free(a->bias);
    q_constraint_free(a->constraint);
    for (int i = 0; i < a->n_stop; i++) free(a->stop[i]);
    *a = (struct job_ask){0};
}

int job_open(struct job **out, struct job_ask *ask, int fd, int probe, struct q_err *e)
{
    struct job *j = calloc(1, sizeof *j);
    pthread_condattr_t monotonic;
    if (!j) {
        job_ask_free(ask);
        return q_fail(e, Q_EMEM, "no memory for a request");
    }
    j->ask = *ask;
    *ask = (struct job_ask){0};
    pthread_mutex_init(&j->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&j->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    client_init(&j->client, fd, probe);
    j->holders = 1;
    *out = j;
    return Q_OK;
}

void job_hold(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    j->holders++;
    pthread_mutex_unlock(&j->lock);
}

void job_drop(struct job *j)
{
    if (!j) return;
    pthread_mutex_lock(&j->lock);
    int last = --j->holders == 0;
    pthread_mutex_unlock(&j->lock);
    if (!last) return;
    for (int i = 0; i < j->n_pieces; i++) {
        text_free(&j->piece[i].text);
        free(j->piece[i].tokens.at);
    }
    free(j->piece);
    free(j->pending.at);
    free(j->taken.at);
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
    job_ask_free(&j->ask);
    free(j);
}

const struct job_ask *job_asked(const struct job *j) { return &j->ask; }

/* The last piece if it is of this part, else a new one. NULL: no memory. */
static struct piece *open_piece(struct job *j, enum q_part part)
{
    if (j->n_pieces && j->piece[j->n_pieces - 1].part == part) return &j->piece[j->n_pieces - 1];
    struct piece *more = realloc(j->piece, (size_t)(j->n_pieces + 1) * sizeof *more);
    if (!more) return NULL;
    j->piece = more;
    more[j->n_pieces] = (struct piece){.part = part};
    return &more[j->n_pieces++];
}

/* 0, or -1: no memory. */
static int add_tokens(struct tokens *to, const struct q_token *t, int n)
{
    if (to->cap - to->n < n) {
        int cap = to->n + n + to->cap / 2 + 4;
        struct q_token *at = realloc(to->at, (size_t)cap * sizeof *at);
        if (!at) return -1;
        to->at = at;
        to->cap = cap;
    }
    if (n) memcpy(to->at + to->n, t, (size_t)n * sizeof *t);
    to->n += n;
    return 0;
}

int job_token(struct job *j, const struct q_token *t)
{
    pthread_mutex_lock(&j->lock);
    int bad = add_tokens(&j->pending, t, 1);
    pthread_mutex_unlock(&j->lock);
    return bad;
}

int job_put(struct job *j, enum q_part part, const char *s, size_t n)
{
    pthread_mutex_lock(&j->lock);
    struct piece *p = open_piece(j, part);
    if (p) text_add(&p->text, s, n);
    int bad = !p || !text_ok(&p->text) || add_tokens(&p->tokens, j->pending.at, j->pending.n);
    j->pending.n = 0;
    int wake = !j->only_end;
    pthread_mutex_unlock(&j->lock);
    /* Behind the lock: who wakes needs it at once, and the engine would have to wake them twice. */
    if (wake) pthread_cond_signal(&j->changed);
    return bad;
}

void job_end(struct job *j, const struct job_outcome *o)
{
    pthread_mutex_lock(&j->lock);
    if (!j->ended) {
        j->outcome = *o;
        if (j->shut && o->end == JOB_CANCELLED) j->outcome.end = JOB_SHUTDOWN;
        j->ended = 1;
    }
    pthread_cond_signal(&j->changed);
    pthread_mutex_unlock(&j->lock);
}

/* With the lock held. */
static int gone(struct job *j)
{
    if (!j->cancelled && j->client.fd >= 0 && client_gone(&j->client)) j->cancelled = 1;
    return j->cancelled;
}

int job_unwanted(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    int yes = j->shut || gone(j);
    pthread_mutex_unlock(&j->lock);
    return yes;
}

/* With the lock held, till something changed or it is time to look at the client. A look that falls a little behind the
 * grace tells a half-closed client from a gone one. */
static void wait_change(struct job *j, double now, double deadline)
{
    const double look_s = 0.1;
    double grace = j->client.end + CLIENT_GRACE_S, t = now < grace ? grace + 0.001 : now + look_s;
    if (t > deadline) t = deadline;
    struct timespec until = {.tv_sec = (time_t)t, .tv_nsec = (long)((t - (double)(time_t)t) * 1e9)};
    pthread_cond_timedwait(&j->changed, &j->lock, &until);
}

/* Moves the oldest piece out. */
static void take_piece(struct job *j, enum q_part *part, struct text *out)
{
    struct piece p = j->piece[0];
    memmove(j->piece, j->piece + 1, (size_t)--j->n_pieces * sizeof *j->piece);
    *part = p.part;
    if (p.text.n) text_add(out, p.text.at, p.text.n);
    out->bad |= p.text.bad;
    text_free(&p.text);
    free(j->taken.at);
    j->taken = p.tokens;
}

int job_tokens(struct job *j, const struct q_token **t)
{
    *t = j->taken.at;
    return j->taken.n;
}

enum job_event job_take(struct job *j, double seconds, enum q_part *part, struct text *out)
{
    enum job_event event = JOB_QUIET;
    pthread_mutex_lock(&j->lock);
    double deadline = clock_s() + seconds;
    for (double now; !j->n_pieces && !j->ended && !gone(j) && (now = clock_s()) < deadline;) wait_change(j, now, deadline);
    if (j->n_pieces) {
        take_piece(j, part, out);
        event = JOB_TEXT;
    } else if (j->ended) {
        event = JOB_DONE;
    } else if (j->cancelled) {
        event = JOB_GONE;
    }
    pthread_mutex_unlock(&j->lock);
    return event;
}

enum job_event job_wait(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    j->only_end = 1;
    while (!j->ended && !gone(j)) wait_change(j, clock_s(), HUGE_VAL);
    j->only_end = 0;
    enum job_event event = j->ended ? JOB_DONE : JOB_GONE;
    pthread_mutex_unlock(&j->lock);
    return event;
}

void job_outcome(struct job *j, struct job_outcome *o)
{
    pthread_mutex_lock(&j->lock);
    *o = j->outcome;
    pthread_mutex_unlock(&j->lock);
}

void job_cancel(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    j->cancelled = 1;
    j->client.fd = -1;
    pthread_cond_signal(&j->changed);
    pthread_mutex_unlock(&j->lock);
}

void job_shut(struct job *j)
{
    pthread_mutex_lock(&j->lock);
    j->shut = 1;
    pthread_cond_signal(&j->changed);
    pthread_mutex_unlock(&j->lock);
}
