/* How long calls take on a bed. On a CPU the members of the team tell what the machine did to them meanwhile: a member that was put off its CPU
 * makes the time one of the scheduler. */
#define _GNU_SOURCE
#include "bed_impl.h"
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

/* Of a batch: more than that was not the members' own. An interrupt takes about that long. */
#define LOST_US 5.0
#define LOST_SHARE 0.01

static double clock_us(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* --- members that share a CPU ------------------------------------------------------------------------------------------ */

/* The CPU that `part` shall have: its own, or where an earlier member is there already the first that nobody has. -1: none is left. Every member
 * finds the same. */
static int place_of(const struct bed_span *span, int parts, int part, const cpu_set_t *allowed)
{
    cpu_set_t taken;
    int place = -1;
    CPU_ZERO(&taken);
    for (int i = 0; i < parts; i++)
        if (span[i].cpu >= 0 && span[i].cpu < CPU_SETSIZE) CPU_SET(span[i].cpu, &taken);
    for (int i = 0; i <= part; i++) {
        int shared = 0;
        for (int j = 0; j < i; j++) shared |= span[j].cpu == span[i].cpu;
        place = span[i].cpu;
        if (!shared) continue;
        for (place = 0; place < CPU_SETSIZE && (!CPU_ISSET(place, allowed) || CPU_ISSET(place, &taken));) place++;
        if (place == CPU_SETSIZE) return -1;
        CPU_SET(place, &taken);
    }
    return place;
}

/* Two members on one CPU take turns of a scheduler's slice, for as long as it does not see to it, while other CPUs idle. A push is enough: they
 * stay where they are put, and may be moved again. */
static void spread(const struct bed_span *span, int parts, int part)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
    int to = place_of(span, parts, part, &allowed);
    if (to < 0 || to == span[part].cpu) return;
    CPU_ZERO(&one);
    CPU_SET(to, &one);
    if (!sched_setaffinity(0, sizeof one, &one)) sched_setaffinity(0, sizeof allowed, &allowed);
}

/* --- a batch ----------------------------------------------------------------------------------------------------------- */

/* `calls` calls one after the other with a barrier between them, as a model's list runs; cases in turn from ring->next. */
struct batch {
    q_kernel_fn fn;
    const struct bed_ring *ring;
    int calls, parts;
    struct bed_span *span;    /* [parts] */
};

struct account {
    double wall, cpu;
    long put_off;
};

static struct account look(void)
{
    struct rusage u = { 0 };
    getrusage(RUSAGE_THREAD, &u);
    return (struct account){ clock_us(CLOCK_MONOTONIC), clock_us(CLOCK_THREAD_CPUTIME_ID), u.ru_nivcsw };
}

/* A member that sleeps at a barrier wakes late: so the first to begin and the last to end count, whoever they are. */
static void run_batch(void *arg, struct team *t)
{
    struct batch *b = arg;
    struct bed_span *s = &b->span[t->part];
    s->cpu = sched_getcpu();
    team_wait(t);             /* wakes all; */
    spread(b->span, b->parts, t->part);
    team_wait(t);
    struct account before = look();
    team_wait(t);             /* now they arrive together */
    s->begin = clock_us(CLOCK_MONOTONIC);
    for (int i = 0; i < b->calls; i++) {
        if (i) team_wait(t);
        b->fn(b->ring->t[(b->ring->next + i) % b->ring->n].args, t);
    }
    s->end = clock_us(CLOCK_MONOTONIC);
    struct account after = look();
    s->lost = after.wall - before.wall - (after.cpu - before.cpu);
    s->put_off = after.put_off != before.put_off;
}

/* A member with little to do sleeps while it waits for one with much, who is awake all the time: only where nobody was, the machine was away. */
static int is_disturbed(const struct bed_span *span, int parts, double took)
{
    double least = span[0].lost;
    int put_off = 0;
    for (int i = 0; i < parts; i++) {
        if (span[i].lost < least) least = span[i].lost;
        put_off |= span[i].put_off;
    }
    return put_off || least > LOST_US + LOST_SHARE * took;
}

static double time_team(struct bed *bed, struct bed_ring *r, q_kernel_fn fn, int calls, int *disturbed)
{
    struct batch b = { fn, r, calls, bed->parts, bed->span };
    team_start(bed->team, run_batch, &b);
    team_finish(bed->team);
    r->next = (r->next + calls) % r->n;
    struct bed_span s = bed->span[0];
    for (int i = 1; i < bed->parts; i++) {
        if (bed->span[i].begin < s.begin) s.begin = bed->span[i].begin;
        if (bed->span[i].end > s.end) s.end = bed->span[i].end;
    }
    *disturbed = is_disturbed(bed->span, bed->parts, s.end - s.begin);
    return (s.end - s.begin) / calls;
}

/* Whole passes over the ring. */
static int time_card(struct bed *b, struct bed_ring *r, const struct q_kernel *k, int calls, double *us, struct q_err *e)
{
    struct q_list list = { 0 };
    int rc = Q_OK;
    for (int i = 0; i < r->n && !rc; i++) rc = list_push(&list, k, "trial", r->p[i].args, r->p[i].arg_bytes, e);
    if (!rc) rc = b->card->ops->time(b->card, &list, &r->p[0].extent, (calls + r->n - 1) / r->n, us, e);
    *us /= r->n;
    list_free(&list);
    return rc;
}

int bed_time(struct bed *b, struct bed_ring *r, const struct q_kernel *k, int calls, double *us, int *disturbed, int *fault, struct q_err *e)
{
    *us = 0;
    *disturbed = 0;
    if (b->card) return (*fault = time_card(b, r, k, calls, us, e));
    *us = time_team(b, r, k->fn, calls, disturbed);
    return Q_OK;
}

/* --- a sample ---------------------------------------------------------------------------------------------------------- */

enum { MOST_CALLS = 2000, LOOKS = 3 };
#define CARD_US 1000.0        /* a card's sample is many calls, whose mean it is */
#define LONG_US 20e3          /* a call that long needs none before it to warm up */

struct timing {
    struct bed *b;
    struct bed_ring *r;
    const struct q_kernel *k;
    int calls;
    int *fault;
};

static int calls_for(double us, double once)
{
    double fit = us / (once > 0.01 ? once : 0.01);
    return fit < 1 ? 1 : fit > MOST_CALLS ? MOST_CALLS : (int)fit;
}

static int take_batch(const struct timing *t, double *us, int *disturbed, struct q_err *e)
{
    return bed_time(t->b, t->r, t->k, t->calls, us, disturbed, t->fault, e);
}

/* For sample_take. Calls that were counted while the machine was slow may be too few. */
static int take_part(void *arg, double *us, int *disturbed, struct q_err *e)
{
    struct timing *t = arg;
    int rc = take_batch(t, us, disturbed, e);
    if (rc || t->b->card || *us * t->calls > SAMPLE_PART_US / 2 || t->calls == MOST_CALLS) return rc;
    t->calls = calls_for(SAMPLE_PART_US, *us);
    return take_batch(t, us, disturbed, e);
}

/* Brings in code and cases, and finds what a call takes: so that no candidate pays for the cold caches that another size's cases left. */
static int warm_up(struct timing *t, double *once, struct q_err *e)
{
    int disturbed = 1, rc = Q_OK;
    double us;
    t->calls = 1;
    if ((rc = take_batch(t, once, &disturbed, e)) || *once >= LONG_US) return rc;
    if (t->b->card) return *once < CARD_US / 2 ? take_batch(t, once, &disturbed, e) : Q_OK;
    for (int i = 0; i < LOOKS && !rc && (!i || disturbed) && *once < SAMPLE_PART_US * 10; i++) {
        int pass = calls_for(3 * SAMPLE_PART_US, *once);
        t->calls = pass < t->r->n ? pass : t->r->n;
        rc = take_batch(t, &us, &disturbed, e);
        if (!rc && us < *once) *once = us;
    }
    return rc;
}

int bed_samples(struct bed *b, struct bed_ring *r, const struct q_kernel *k, int n, double *us, int *fault, struct q_err *e)
{
    struct timing t = { b, r, k, 1, fault };
    double once;
    int rc = warm_up(&t, &once, e);
    us[0] = once;
    t.calls = calls_for(b->card ? CARD_US : SAMPLE_PART_US, once);
    for (int i = once < LONG_US ? 0 : 1; i < n && !rc; i++) rc = sample_take(take_part, &t, sample_parts(once, b->card != NULL), &us[i], e);
    return rc;
}
