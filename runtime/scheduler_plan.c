/* The rows of a step: a row of everybody who decodes, or rows of prompts.
 *
 * They are steps of their own, one after the other: a few rows run faster apart from many (matrices times few vectors, one list of launches),
 * and a decoded row has the same kernels, so in pinned the same bits, whether or not somebody reads. What it costs, another pass over the
 * weights, is small beside a chunk that is worth reading. */
#include "scheduler_impl.h"

enum { LEAST_CHUNK = 16, LEAST_WIDE = 32, MOST_DECODES = 64 };   /* the last: rows that one form serves (forward.h) */
static const double BESIDE_OTHERS_S = 0.05;   /* what others wait for a token while somebody reads; three decode steps if that is longer */
static const double ALONE_S = 1;              /* what somebody who comes or goes waits while only prompts are read */

static int add(struct q_sched *s, struct sched_task *t, int n, struct q_err *e)
{
    const struct sched_slot *l = t->slot;
    int first = s->n_rows, last = first + n - 1;
    t->rows = n;
    t->draws = n == sched_left(t) && t->ask.o.max_tokens;
    for (int i = 0; i < n; i++)
        s->rows[first + i] = (struct q_row){.seq = l->seq, .token = t->known.at[l->n + i], .pos = {-1, -1, -1}, .parent = -1};
    s->batch[s->n_batch++] = t;
    s->n_rows += n;
    sched_want_keeps(s, t, first);
    return t->draws ? q_turn_draw(&t->turn, &s->rows[last], e) : Q_OK;
}

static struct sched_task *first_suspect(const struct q_sched *s)
{
    for (struct sched_task *t = s->tasks; t; t = t->next)
        if (t->slot && t->suspect) return t;
    return NULL;
}

/* Of those with prompt left and no rows yet: the client served least, then who came first. */
static struct sched_task *next_reader(const struct q_sched *s)
{
    struct sched_task *best = NULL;
    for (struct sched_task *t = s->tasks; t; t = t->next)
        if (sched_reads(t) && !t->rows && (!best || t->client->served < best->client->served)) best = t;
    return best;
}

static int add_decodes(struct q_sched *s, struct sched_task **culprit, struct q_err *e)
{
    int rc = Q_OK;
    for (struct sched_task *t = s->tasks; t && !rc && s->n_rows < MOST_DECODES; t = t->next) {
        if (!t->slot || sched_left(t) != 1 || t->suspect || t->round == s->round) continue;
        *culprit = t;
        rc = add(s, t, 1, e);
    }
    return rc;
}

static int anybody_decodes(const struct q_sched *s)
{
    for (const struct sched_task *t = s->tasks; t; t = t->next)
        if (t->slot && sched_left(t) == 1) return 1;
    return 0;
}

/* Rows of prompts beside decodes. A chunk takes what its rows add to a pass over the weights, which a decode step is about. At most twice
 * the last: the first guess may be far off. */
static int chunk(const struct q_sched *s)
{
    double decode = s->counts.decode_step_s, may = 3 * decode > BESIDE_OTHERS_S ? 3 * decode : BESIDE_OTHERS_S;
    double rows = s->counts.row_s > 0 ? (may - 2 * decode) / s->counts.row_s : LEAST_CHUNK;
    int most = 2 * (s->chunk > LEAST_CHUNK ? s->chunk : LEAST_CHUNK);
    if (rows > most) rows = most;
    return rows < LEAST_CHUNK ? LEAST_CHUNK : rows < s->en.max_rows ? (int)rows : s->en.max_rows;
}

/* Rows where nobody decodes: all, or on a slow machine a half, a quarter ..., the same for the same prompt as long as times are alike. */
static int wide(const struct q_sched *s)
{
    int rows = s->en.max_rows;
    while (rows > LEAST_WIDE && rows * s->counts.row_s > ALONE_S) rows /= 2;
    return rows;
}

static int add_prompts(struct q_sched *s, struct sched_task **culprit, struct q_err *e)
{
    int budget = anybody_decodes(s) ? chunk(s) : wide(s), rc = Q_OK;
    for (struct sched_task *t; !rc && budget > 0 && (t = next_reader(s));) {
        int n = sched_left(t) < budget ? sched_left(t) : budget;
        *culprit = t;
        rc = add(s, t, n, e);
        budget -= n;
    }
    return rc;
}

int sched_plan(struct q_sched *s, enum sched_part part, struct sched_task **culprit, struct q_err *e)
{
    struct sched_task *suspect = part == SCHED_PROMPTS ? first_suspect(s) : NULL;
    s->n_batch = s->n_rows = s->n_keeps = 0;
    for (struct sched_task *t = s->tasks; t; t = t->next) t->rows = t->draws = 0;
    if (suspect) {
        int left = sched_left(suspect);
        *culprit = suspect;
        return add(s, suspect, left < s->en.max_rows ? left : s->en.max_rows, e);
    }
    return part == SCHED_DECODES ? add_decodes(s, culprit, e) : add_prompts(s, culprit, e);
}

static void follow(double *mean, double x) { *mean = *mean > 0 ? *mean * 0.7 + x * 0.3 : x; }

void sched_learn(struct q_sched *s, double seconds)
{
    s->counts.busy_s += seconds;
    s->counts.steps++;
    if (s->n_rows == s->n_batch) {
        follow(&s->counts.decode_step_s, seconds);
        return;
    }
    /* At least a tenth of its share, for times vary. */
    double share = seconds / s->n_rows, row = (seconds - s->counts.decode_step_s) / s->n_rows;
    follow(&s->counts.row_s, row > 0.1 * share ? row : 0.1 * share);
    s->chunk = s->n_rows;
}
