#include "pace.h"
#include "runtime/clock.h"
#include "runtime/team.h"

enum { CHAINS = 12, ROUNDS = 10000, MOST_PARTS = 1024 };

typedef unsigned lanes __attribute__((vector_size(16)));

/* Chains of additions, more of them than a core has units for, so that they wait for units and not for one another. Nothing is read. */
static double loop_us(void)
{
    lanes a[CHAINS];
    double begin = clock_s();
    for (unsigned i = 0; i < CHAINS; i++) a[i] = (lanes){ i, i + 1, i + 2, i + 3 };
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) a[i] = (a[i] + 0x9E3779B9u) ^ 0x7F4A7C15u;
    }
    for (int i = 0; i < CHAINS; i++) __asm__ volatile("" : : "m"(a[i]));
    return (clock_s() - begin) * 1e6;
}

static void run_loop(void *arg, struct team *t)
{
    double *us = arg;
    team_wait(t);        /* all at once: a member that sleeps leaves the others more than they have beside it */
    if (t->part < MOST_PARTS) us[t->part] = loop_us();
}

double pace_us(struct q_team *team, int parts)
{
    double us[MOST_PARTS] = { 0 }, most = 0;
    team_start(team, run_loop, us);
    team_finish(team);
    for (int i = 0; i < parts && i < MOST_PARTS; i++)
        if (us[i] > most) most = us[i];
    return most;
}
