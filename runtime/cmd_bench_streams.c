#include "cmd_bench_streams.h"
#include "cli.h"
#include "clock.h"
#include "model.h"
#include <stdlib.h>

int streams_open(struct streams *s, struct q_engine *en, int n, int depth, struct q_err *e)
{
    *s = (struct streams){.engine = en, .seq = calloc((size_t)n, sizeof *s->seq), .row = calloc((size_t)n, sizeof *s->row)};
    int rc = s->seq && s->row ? Q_OK : q_fail(e, Q_EMEM, "no memory for %d sequences", n);
    while (!rc && s->n < n) {
        rc = q_seq_open(en, &s->seq[s->n], e);
        if (!rc) rc = q_seq_pretend(s->seq[s->n++], depth, e);
    }
    if (rc) streams_close(s);
    return rc;
}

void streams_close(struct streams *s)
{
    for (int i = 0; i < s->n; i++) q_seq_close(s->seq[i]);
    free(s->seq);
    free(s->row);
    *s = (struct streams){0};
}

/* Ids spread over the vocabulary, the same every run. */
static int any_id(const struct streams *s, long i)
{
    return (int)((unsigned)(i + 1) * 2654435761u % (unsigned)q_engine_model(s->engine)->config.n_vocab);
}

int streams_prefill(struct streams *s, long tokens, double *seconds, struct q_err *e)
{
    int *ids = malloc((size_t)tokens * sizeof *ids);
    if (!ids) return q_fail(e, Q_EMEM, "no memory for a prompt of %ld tokens", tokens);
    for (long i = 0; i < tokens; i++) ids[i] = any_id(s, i);
    double t0 = clock_s();
    int rc = q_prefill(s->engine, s->seq[0], ids, (int)tokens, 0, Q_WANT_ID, NULL, NULL, e);
    *seconds = clock_s() - t0;
    free(ids);
    return rc;
}

/* A token of each. */
static int step(struct streams *s, struct q_err *e)
{
    const struct q_step all = {.rows = s->row, .n_rows = s->n};
    struct q_result r;
    q_ticket t;
    int rc = q_step_submit(s->engine, &all, &t, e);
    if (!rc) rc = q_step_wait(s->engine, t, &r, e);
    for (int i = 0; i < s->n && !rc; i++) s->row[i].token = r.id[i];
    return rc;
}

int streams_decode(struct streams *s, long tokens, double *seconds, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < s->n; i++)
        s->row[i] = (struct q_row){.seq = s->seq[i], .token = any_id(s, 6 + i), .pos = {-1, -1, -1}, .parent = -1, .want = Q_WANT_ID};
    double t0 = clock_s();
    for (long i = 0; i < tokens && !rc; i++) rc = step(s, e);
    *seconds = clock_s() - t0;
    return rc;
}
