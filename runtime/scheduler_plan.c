/* The rows of one step: a row for everybody who decodes, and prompts for what is left of the budget. */
#include "scheduler_impl.h"

enum { LEAST_CHUNK = 16 };
static const double BESIDE_OTHERS_S = 0.05;   /* a step beside others lasts this long, or two decode steps if that is longer */

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
    sched_want_place(s, t, first);
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
    for (struct sched_task *t = s->tasks; t && !rc; t = t->next) {
        if (!t->slot || sched_left(t) != 1) continue;
        *culprit = t;
        rc = add(s, t, 1, e);
    }
    s->decoding = s->n_rows;
    return rc;
}

/* Rows of prompts beside decodes. At most twice the last: the first guess may be far off. */
static int chunk(const struct q_sched *s)
{
    double decode = s->counts.decode_step_s, may = 2 * decode > BESIDE_OTHERS_S ? 2 * decode : BESIDE_OTHERS_S;
    double rows = s->counts.row_s > 0 ? (may - decode) / s->counts.row_s : LEAST_CHUNK, most = s->chunk > LEAST_CHUNK ? 2 * s->chunk : 2 * LEAST_CHUNK;
    if (rows > most) rows = most;
    return rows < LEAST_CHUNK ? LEAST_CHUNK : rows < s->en.max_rows ? (int)rows : s->en.max_rows;
}

static int add_prompts(struct q_sched *s, struct sched_task **culprit, struct q_err *e)
{
    int most = s->en.max_rows - s->n_rows, rc = Q_OK;
    int budget = s->decoding && chunk(s) < most ? chunk(s) : most;
    for (struct sched_task *t; !rc && budget > 0 && (t = next_reader(s));) {
        int n = sched_left(t) < budget ? sched_left(t) : budget;
        *culprit = t;
        rc = add(s, t, n, e);
        budget -= n;
    }
    return rc;
}

int sched_plan(struct q_sched *s, struct sched_task **culprit, struct q_err *e)
{
    struct sched_task *suspect = first_suspect(s);
    s->n_batch = s->n_rows = s->n_keeps = s->decoding = 0;
    for (struct sched_task *t = s->tasks; t; t = t->next) t->rows = t->draws = 0;
    if (suspect) {
        int left = sched_left(suspect);
        *culprit = suspect;
        return add(s, suspect, left < s->en.max_rows ? left : s->en.max_rows, e);
    }
    int rc = add_decodes(s, culprit, e);
    return rc ? rc : add_prompts(s, culprit, e);
}

static void follow(double *mean, double x) { *mean = *mean > 0 ? *mean * 0.7 + x * 0.3 : x; }

/* A prompt's rows cost what a step of decodes alone would not have taken; at least a tenth of their share, for times vary. */
void sched_learn(struct q_sched *s, double seconds)
{
    int prompt_rows = s->n_rows - s->decoding;
    s->counts.busy_s += seconds;
    s->counts.steps++;
    if (!prompt_rows) {
        follow(&s->counts.decode_step_s, seconds);
        return;
    }
    double least = 0.1 * seconds / s->n_rows, row = (seconds - s->counts.decode_step_s) / prompt_rows;
    follow(&s->counts.row_s, row > least ? row : least);
    s->chunk = prompt_rows;
}
