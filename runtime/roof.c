#include "roof.h"
#include "team.h"
#include "clock.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_MIB = 256, PASSES = 6 };

struct reading {
    const uint64_t *data;
    size_t words;
    uint64_t sink[1024];     /* by member: keeps the reads alive */
};

/* Eight sums, so that loads and not additions are waited for. */
static void read_part(void *arg, struct team *t)
{
    struct reading *r = arg;
    i64 from, to;
    uint64_t s[8] = {0};
    team_share(t, (i64)r->words, 512, &from, &to);
    for (const uint64_t *p = r->data + from, *end = r->data + to; p + 8 <= end; p += 8)
        for (int j = 0; j < 8; j++) s[j] += p[j];
    r->sink[t->part & 1023] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

int roof_read_rate(int threads, double *rate, struct q_err *e)
{
    struct q_team *team;
    struct reading r = {.words = (size_t)BLOCK_MIB << 17};
    uint64_t *data = malloc(r.words * sizeof *data);
    if (!data) return q_fail(e, Q_EMEM, "no memory to measure the read bandwidth: %d MiB are needed", BLOCK_MIB);
    memset(data, 1, r.words * sizeof *data);
    r.data = data;
    int rc = team_open(&team, threads, e);
    double best = 0;
    for (int i = 0; i < PASSES && !rc; i++) {
        double t0 = clock_s();
        team_start(team, read_part, &r);
        team_finish(team);
        double got = (double)(r.words * sizeof *data) / (clock_s() - t0);
        best = got > best ? got : best;
    }
    if (!rc) team_close(team);
    free(data);
    *rate = best;
    return rc;
}
