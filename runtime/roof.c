#include "roof.h"
#include "roof_passes.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_MIB = 256 };

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

int roof_read_rate(int threads, double *rate, int *sure, struct q_err *e)
{
    struct q_team *team;
    struct reading r = {.words = (size_t)BLOCK_MIB << 17};
    uint64_t *data = malloc(r.words * sizeof *data);
    if (!data) return q_fail(e, Q_EMEM, "no memory to measure the read bandwidth: %d MiB are needed", BLOCK_MIB);
    memset(data, 1, r.words * sizeof *data);
    r.data = data;
    int rc = team_open(&team, threads, e);
    *rate = 0;
    *sure = 0;
    if (!rc) *sure = roof_best(team, read_part, &r, (double)(r.words * sizeof *data), rate);
    if (!rc) team_close(team);
    free(data);
    return rc;
}

int roof_measure_host(int threads, unsigned isa, struct q_roofs *r, struct q_err *e)
{
    int sure_read = 1, sure_ops = 1, rc = roof_read_rate(threads, &r->read, &sure_read, e);
    if (!rc) rc = roof_op_rate(threads, isa, &r->int8, &r->fp32, &sure_ops, e);
    r->doubtful = !sure_read + !sure_ops;
    return rc;
}
