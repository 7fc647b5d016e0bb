#include "scheduler_impl.h"
#include "clock.h"
#include "kv.h"
#include "model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BIAS = 1000 };
static const double MOVES = 0.02;
static const double ASK_WAITING_S = 0.05;   /* how often those who wait are asked whether they still do */

struct q_sched_engine q_sched_engine_of(struct q_engine *en)
{
    /* A CPU takes long for a wide step, and reads no faster in it. */
    int most = q_engine_max_rows(en), wide = q_engine_card(en)->kind == Q_CARD_CUDA || most < 256 ? most : 256;
    return (struct q_sched_engine){
        .engine = en, .tokenizer = q_engine_tokenizer(en), .n_vocab = q_engine_model(en)->config.n_vocab, .ctx = q_engine_ctx(en),
        .max_seqs = q_engine_max_seqs(en), .max_rows = wide,
        .pages = q_engine_pages(en), .page_tokens = KV_PAGE, .promise = 1024,
        .seq_open = q_seq_open, .seq_close = q_seq_close, .seq_clear = q_seq_clear, .seq_length = q_seq_length,
        .seq_snapshot = q_seq_snapshot, .seq_restore = q_seq_restore, .submit = q_step_submit, .wait = q_step_wait, .seconds = clock_s,
        .tree = q_tree_engine_of(en), .cache = {.max_snaps = q_engine_max_snaps(en), .device_bytes = SIZE_MAX}, .mark_every = 4096};
}

/* ---- opening ---- */

static int open_slots(struct q_sched *s, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < s->en.max_seqs && !rc; i++) {
        s->slot[i].ids = malloc((size_t)s->en.ctx * sizeof *s->slot[i].ids);
        rc = s->slot[i].ids ? s->en.seq_open(s->en.engine, &s->slot[i].seq, e)
                            : q_fail(e, Q_EMEM, "no memory for the tokens of a context of %d", s->en.ctx);
    }
    return rc;
}

int q_sched_open(struct q_sched **out, const struct q_sched_engine *en, struct q_err *e)
{
    if (en->max_rows < en->max_seqs || en->pages < (en->ctx + en->page_tokens - 1) / en->page_tokens)
        return q_fail(e, Q_EINPUT, "%d rows a step and %d KV pages are too few for %d sequences of at most %d tokens", en->max_rows, en->pages,
                      en->max_seqs, en->ctx);
    struct q_sched *s = calloc(1, sizeof *s);
    if (!s) return q_fail(e, Q_EMEM, "no memory for a scheduler");
    s->en = *en;
    s->counts = (struct sched_counts){.slots = en->max_seqs, .pages = en->pages};
    s->slot = calloc((size_t)en->max_seqs, sizeof *s->slot);
    s->batch = calloc((size_t)en->max_seqs, sizeof *s->batch);
    s->rows = calloc((size_t)en->max_rows, sizeof *s->rows);
    s->keeps = calloc((size_t)en->cache.max_snaps + 1, sizeof *s->keeps);
    s->keeping = calloc((size_t)en->cache.max_snaps + 1, sizeof *s->keeping);
    int rc = Q_OK;
    if (!s->slot || !s->batch || !s->rows || !s->keeps || !s->keeping) rc = q_fail(e, Q_EMEM, "no memory for a scheduler of %d rows", en->max_rows);
    for (int i = 0; !rc && i <= en->cache.max_snaps; i++) s->keeps[i].snap = &s->keeping[i].snap;
    if (!rc) rc = open_slots(s, e);
    if (!rc) rc = q_tree_open(&s->tree, &en->tree, &en->cache, e);
    if (rc) q_sched_close(s);
    else *out = s;
    return rc;
}

/* ---- clients ---- */

/* A new one begins where the least served of the others stands: not behind them for having been away, nor ahead. */
static struct sched_client *join_client(struct q_sched *s, unsigned key)
{
    double least = INFINITY;
    for (struct sched_client *c = s->clients; c; c = c->next) {
        if (c->key == key) return c;
        if (c->served < least) least = c->served;
    }
    struct sched_client *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    *c = (struct sched_client){.next = s->clients, .key = key, .served = isfinite(least) ? least : 0};
    s->clients = c;
    return c;
}

static void leave_client(struct q_sched *s, struct sched_client *c)
{
    if (!c || c->tasks) return;
    struct sched_client **at = &s->clients;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    free(c);
}

/* ---- tasks ---- */

/* What the engine would refuse a whole step for. */
static int check(const struct q_sched *s, const struct q_sched_ask *a, struct q_err *e)
{
    int rc = q_check_prompt(s->en.ctx, a->n, e);
    for (size_t i = 0; i < a->n && !rc; i++)
        if (a->ids[i] < 0 || a->ids[i] >= s->en.n_vocab)
            rc = q_fail(e, Q_EINPUT, "token %zu of the prompt is %d and the vocabulary has %d", i, (int)a->ids[i], s->en.n_vocab);
    if (!rc && a->o.n_bias > MOST_BIAS) rc = q_fail(e, Q_ELIMIT, "%d logit biases, at most %d are possible", a->o.n_bias, MOST_BIAS);
    for (int i = 0; i < a->o.n_bias && !rc; i++)
        if (a->o.bias_id[i] < 0 || a->o.bias_id[i] >= s->en.n_vocab || !isfinite(a->o.bias[i]))
            rc = q_fail(e, Q_EINPUT, "logit bias %d is for id %d of %d, value %g", i, (int)a->o.bias_id[i], s->en.n_vocab, (double)a->o.bias[i]);
    return rc ? rc : q_sampling_check(&a->o.sampling, e);
}

static void free_task(struct q_sched *s, struct sched_task *t)
{
    if (t->client) t->client->tasks--;
    leave_client(s, t->client);
    q_turn_close(&t->turn);
    prompt_marks_free(&t->marks);
    free(t->known.at);
    free(t);
}

/* More than half of the snapshots would push out what others keep, unless the host takes them meanwhile. */
static int most_marks(const struct q_sched *s)
{
    const struct q_tree_opts *c = &s->en.cache;
    size_t host = c->host_bytes / (2 * s->en.tree.state_bytes + 1);
    return (c->max_snaps > 4 ? c->max_snaps / 2 : c->max_snaps < 2 ? c->max_snaps : 2) + (host < 256 ? (int)host : 256);
}

int q_sched_add(struct q_sched *s, const struct q_sched_ask *ask, struct q_err *e)
{
    int rc = check(s, ask, e);
    if (rc) return rc;
    struct sched_task *t = calloc(1, sizeof *t), **end = &s->tasks;
    if (!t) return q_fail(e, Q_EMEM, "no memory for a request");
    t->ask = *ask;
    t->number = s->next_number++;
    t->added_s = s->en.seconds();
    rc = tok_ids_add(&t->known, ask->ids, ask->n, e);
    if (!rc) rc = q_turn_open(&t->turn, s->en.tokenizer, s->en.ctx, (int)ask->n, &t->ask.o, &t->answer, e);
    if (!rc && s->en.cache.max_snaps)
        rc = prompt_marks(&t->marks, s->en.tokenizer, ask->ids, (int)ask->n, s->en.mark_every, most_marks(s), e);
    if (!rc && !(t->client = join_client(s, ask->client))) rc = q_fail(e, Q_EMEM, "no memory for a request");
    if (rc) {
        free_task(s, t);
        return rc;
    }
    t->client->tasks++;
    while (*end) end = &(*end)->next;
    *end = t;
    s->counts.waiting++;
    return Q_OK;
}

/* Takes the task out and tells its maker. e: NULL, or why it failed. */
static void end_task(struct q_sched *s, struct sched_task *t, const struct q_err *e)
{
    struct sched_task **at = &s->tasks;
    struct q_err late;
    double now = s->en.seconds();
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    if (!e && q_turn_end(&t->turn, &late)) e = &late;
    if (t->begun) t->answer.prefill_s = (t->read_s > 0 ? t->read_s : now) - t->begun_s;
    if (t->read_s > 0) t->answer.decode_s = now - t->read_s;
    sched_leave(s, t);
    t->ask.ended(t->ask.arg, &t->answer, e);
    free_task(s, t);
}

void q_sched_close(struct q_sched *s)
{
    if (!s) return;
    while (s->tasks) {
        q_turn_finish(&s->tasks->turn, Q_FINISH_CANCELLED);
        end_task(s, s->tasks, NULL);
    }
    for (int i = 0; s->tree && i < s->en.max_seqs; i++) sched_keep_end(s, &s->slot[i]);
    q_tree_close(s->tree);
    for (int i = 0; s->slot && i < s->en.max_seqs; i++) {
        if (s->slot[i].seq) s->en.seq_close(s->slot[i].seq);
        free(s->slot[i].ids);
    }
    free(s->slot);
    free(s->batch);
    free(s->rows);
    free(s->keeps);
    free(s->keeping);
    free(s);
}

/* ---- a step ---- */

static int cancelled(struct q_sched *s, struct sched_task *t, double now)
{
    const struct q_answer_opts *o = &t->ask.o;
    if (!o->cancelled || (!t->slot && now - t->asked_s < ASK_WAITING_S)) return 0;
    t->asked_s = now;
    return o->cancelled(o->arg);
}

static void drop_cancelled(struct q_sched *s)
{
    double now = s->en.seconds();
    for (struct sched_task *t = s->tasks, *next; t; t = next) {
        next = t->next;
        if (!cancelled(s, t, now)) continue;
        q_turn_finish(&t->turn, Q_FINISH_CANCELLED);
        end_task(s, t, NULL);
    }
}

static void fail(struct q_sched *s, struct sched_task *t, const struct q_err *e)
{
    struct sched_slot *slot = t->slot;
    end_task(s, t, e);
    if (slot) sched_forget_slot(s, slot);
}

/* Nobody knows who is at fault, or what the sequences hold: each reads again what it had, alone. The last one left is at fault. */
static void take_apart(struct q_sched *s, int submitted, const struct q_err *e)
{
    if (s->n_batch == 1) {
        fail(s, s->batch[0], e);
        return;
    }
    for (int i = 0; i < s->n_batch; i++) {
        s->batch[i]->suspect = 1;
        if (submitted) sched_forget_slot(s, s->batch[i]->slot);
    }
}

/* Plans and submits. Where pages are used up, memories give way. 0: there is nothing to do. */
static int submit(struct q_sched *s, enum sched_part part, q_ticket *ticket)
{
    for (;;) {
        struct sched_task *culprit = NULL;
        struct q_err e;
        int rc = sched_admit(s, &culprit, &e);
        if (!rc) rc = sched_plan(s, part, &culprit, &e);
        if (rc) {
            sched_drop_keeps(s);
            fail(s, culprit, &e);
            continue;
        }
        if (!s->n_rows) return 0;
        struct q_step step = {.rows = s->rows, .n_rows = s->n_rows, .keeps = s->keeps, .n_keeps = s->n_keeps};
        int wanted = s->n_keeps;
        rc = s->en.submit(s->en.engine, &step, ticket, &e);
        if (!rc) return 1;
        sched_drop_keeps(s);
        if (rc == Q_ELIMIT && sched_forget_one(s)) continue;
        if (rc == Q_ELIMIT && wanted && !s->no_keeps) {
            s->no_keeps = 1;   /* others of this engine have the snapshots */
            continue;
        }
        take_apart(s, 0, &e);
    }
}

/* The step's snapshots and the slot's tokens are of the same lengths as their states. */
static int keep(struct q_sched *s, struct sched_task *t, double token_s, struct q_err *e)
{
    int rc = sched_put_keeps(s, t, token_s, e), held = s->en.seq_length(t->slot->seq);
    if (!rc && held != t->slot->n) rc = q_fail(e, Q_EINTERNAL, "a sequence holds %d tokens where %d were read", held, t->slot->n);
    return rc;
}

/* The slot holds what the step read for the task. */
static void note_read(struct q_sched *s, struct sched_task *t)
{
    struct sched_slot *l = t->slot;
    memcpy(l->ids + l->n, t->known.at + l->n, (size_t)t->rows * sizeof *l->ids);
    l->n += t->rows;
    l->used = ++s->tick;
    l->used_s = s->en.seconds();
    t->client->served += t->rows;
    t->round = s->round;
    if (t->answer.n_generated == 0 || t->rows > 1) s->counts.read += (unsigned long long)t->rows;
}

/* All that is known was read: the next token, or the end. */
static int draw(struct q_sched *s, struct sched_task *t, const struct q_result *r, int i, struct q_err *e)
{
    t->suspect = 0;
    if (!(t->read_s > 0)) t->read_s = s->en.seconds();
    if (!t->draws) return q_turn_finish(&t->turn, Q_FINISH_LENGTH), Q_OK;
    int rc = q_turn_take(&t->turn, r, i, e);
    int32_t id = t->turn.id;
    s->counts.generated += !rc;
    return rc || t->turn.over ? rc : tok_ids_add(&t->known, &id, 1, e);
}

/* What the step did for one task; i: its entry of the result. */
static void advance(struct q_sched *s, struct sched_task *t, const struct q_result *r, int i, double token_s)
{
    struct q_err e;
    note_read(s, t);
    int rc = keep(s, t, token_s, &e);
    if (rc) {
        fail(s, t, &e);
        return;
    }
    if ((size_t)t->slot->n < t->known.n) return;
    rc = draw(s, t, r, i, &e);
    if (rc || t->turn.over) end_task(s, t, rc ? &e : NULL);
}

static int run(struct q_sched *s, enum sched_part part)
{
    struct q_result r;
    struct q_err e;
    q_ticket ticket;
    double begin = s->en.seconds();
    s->no_keeps = 0;
    if (!submit(s, part, &ticket)) return 0;
    int rc = s->en.wait(s->en.engine, ticket, &r, &e);
    double took = s->en.seconds() - begin, token_s = took / s->n_rows;
    sched_learn(s, took);
    if (rc) {
        sched_drop_keeps(s);
        take_apart(s, 1, &e);
        return 1;
    }
    for (int i = 0, out = 0; i < s->n_batch; i++) {
        struct sched_task *t = s->batch[i];
        int draws = t->draws;
        advance(s, t, &r, out, token_s);
        out += draws;
    }
    return 1;
}

/* Moves between the tree's tiers take a share of the time of steps; what one took too long is missing from the next. */
static void move(struct q_sched *s, double stepped_s)
{
    s->move_s += MOVES * stepped_s;
    if (!(s->move_s > 0)) return;
    double begin = s->en.seconds();
    q_tree_work(s->tree, s->move_s, 0);
    s->move_s -= s->en.seconds() - begin;
    if (s->move_s > 0) s->move_s = 0;
}

int q_sched_step(struct q_sched *s)
{
    double begin = s->en.seconds();
    drop_cancelled(s);
    sched_keep_promises(s);
    s->round++;
    int worked = 0;
    while (run(s, SCHED_DECODES)) worked = 1;
    sched_keep_promises(s);
    worked |= run(s, SCHED_PROMPTS);
    move(s, s->en.seconds() - begin);
    return worked;
}

int q_sched_idle(struct q_sched *s)
{
    if (s->tasks) return 0;
    for (int i = 0; i < s->en.max_seqs; i++) sched_keep_end(s, &s->slot[i]);
    return q_tree_work(s->tree, 0.01, 1);
}

/* ---- looking ---- */

struct sched_counts q_sched_counts(const struct q_sched *s)
{
    struct sched_counts c = s->counts;
    c.waiting = c.reading = 0;
    for (const struct sched_task *t = s->tasks; t; t = t->next) {
        c.waiting += !t->slot;
        c.reading += sched_reads(t);
    }
    c.tree = q_tree_counts(s->tree);
    return c;
}

int q_sched_view(const struct q_sched *s, struct sched_view *v, int n)
{
    double now = s->en.seconds();
    for (int i = 0; i < n && i < s->en.max_seqs; i++) {
        const struct sched_slot *l = &s->slot[i];
        const struct sched_task *t = l->task;
        v[i] = (struct sched_view){.n_held = l->n};
        if (!t) continue;
        v[i] = (struct sched_view){1, t->ask.client, t->answer.n_prompt, l->n, t->answer.n_generated, t->ask.o.max_tokens, now - t->begun_s};
    }
    return s->en.max_seqs;
}
