/* Teams: every member runs, barriers order their work, an idle team wakes up. */
#define _GNU_SOURCE
#include "team.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

enum { ROUNDS = 300, MOST = 7 };

struct job {
    long value[MOST];
    int wrong;
};

/* Each round every member reads what all wrote in the round before, between two barriers. */
static void rounds(void *arg, struct team *t)
{
    struct job *j = arg;
    for (long r = 0; r < ROUNDS; r++) {
        j->value[t->part] = r;
        team_wait(t);
        for (int i = 0; i < t->parts; i++)
            if (j->value[i] != r) __atomic_fetch_add(&j->wrong, 1, __ATOMIC_RELAXED);
        team_wait(t);
    }
}

static void test_barriers(void **state)
{
    for (int parts = 1; parts <= MOST; parts++) {
        struct q_team *t;
        struct q_err e;
        assert_int_equal(team_open(&t, parts, &e), Q_OK);
        for (int again = 0; again < 3; again++) {
            struct job j = {.wrong = 0};
            if (again == 2) usleep(20000);   /* members have gone to sleep */
            team_start(t, rounds, &j);
            team_finish(t);
            assert_int_equal(j.wrong, 0);
            for (int i = 0; i < parts; i++) assert_int_equal(j.value[i], ROUNDS - 1);
        }
        team_close(t);
    }
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds_of_pauses(int n)
{
    double begin = cpu_s();
    for (int i = 0; i < n; i++) __builtin_ia32_pause();
    return cpu_s() - begin;
}

static void one_round(void *arg, struct team *t) { team_wait(t); }

/* Two members on one processor: nobody may spin for one that cannot run meanwhile. A team that spun its 2000 pauses at each of the four
 * waits of a job would take that much of the processor. */
static void test_one_processor(void **state)
{
    enum { JOBS = 2000 };
    struct q_team *t;
    struct q_err e;
    cpu_set_t one, all;
    int cpu = sched_getcpu();
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(team_open(&t, 2, &e), Q_OK);
    double spin = seconds_of_pauses(2000 * 100) / 100, begin = cpu_s();
    for (int i = 0; i < JOBS; i++) {
        team_start(t, one_round, NULL);
        team_finish(t);
    }
    double took = cpu_s() - begin;
    team_close(t);
    sched_setaffinity(0, sizeof all, &all);
    print_message("%.1f us a job, %.1f us of pauses\n", 1e6 * took / JOBS, 1e6 * spin);
    assert_true(took < JOBS * spin);
}

/* Shares cover everything once, in order, at grain borders. */
static void test_share(void **state)
{
    for (i64 n = 0; n < 70; n++)
        for (int parts = 1; parts < 9; parts++)
            for (i64 grain = 1; grain < 20; grain += 6) {
                i64 at = 0, b, e;
                for (int p = 0; p < parts; p++) {
                    struct team t = {p, parts, NULL};
                    team_share(&t, n, grain, &b, &e);
                    assert_int_equal(b, at);
                    assert_true(b == n || b % grain == 0);
                    at = e;
                }
                assert_int_equal(at, n);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_barriers), cmocka_unit_test(test_one_processor), cmocka_unit_test(test_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
