#include "roof_passes.h"
#include "clock.h"
#include <stdatomic.h>

/* Two passes of a machine that nobody else uses differ by less. */
#define CLOSE 0.95
/* Of a member's time: more than that was not its own. An interrupt takes a few microseconds. */
#define LOST_SHARE 0.02
#define LOST_S 20e-6
/* Nobody waits longer for a machine to become quiet. */
#define PATIENCE_S 1.0

void roof_pass(struct roof_passes *p, double rate, int put_off)
{
    p->n++;
    if (rate > p->best) p->best = rate;
    if (put_off || rate <= p->quiet[1]) return;
    p->quiet[1] = rate > p->quiet[0] ? p->quiet[0] : rate;
    if (rate > p->quiet[0]) p->quiet[0] = rate;
}

int roof_is_sure(const struct roof_passes *p) { return p->quiet[1] > 0 && p->quiet[1] >= CLOSE * p->best; }
int roof_is_over(const struct roof_passes *p) { return p->n >= ROOF_PASSES_MOST || (p->n >= ROOF_PASSES_LEAST && roof_is_sure(p)); }

struct pass {
    void (*job)(void *arg, struct team *member);
    void *arg;
    atomic_int put_off;
};

static double own_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run(void *arg, struct team *t)
{
    struct pass *p = arg;
    double begin = clock_s(), own = own_s();
    p->job(p->arg, t);
    double took = clock_s() - begin;
    own = own_s() - own;
    if (took - own > LOST_S + LOST_SHARE * took) atomic_fetch_add(&p->put_off, 1);
}

int roof_best(struct q_team *team, void (*job)(void *arg, struct team *member), void *arg, double work, double *rate)
{
    struct roof_passes all = {0};
    double start = clock_s();
    while (!roof_is_over(&all) && (all.n < ROOF_PASSES_LEAST || clock_s() - start < PATIENCE_S)) {
        struct pass p = {.job = job, .arg = arg};
        double begin = clock_s();
        team_start(team, run, &p);
        team_finish(team);
        roof_pass(&all, work / (clock_s() - begin), p.put_off);
    }
    *rate = all.best;
    return roof_is_sure(&all);
}
