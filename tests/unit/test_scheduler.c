/* The scheduler on a made-up engine and clock: whose turn it is, how long others wait, what is read twice and what is not.
 *
 * The engine's model is a hash: the next id depends on every token of the sequence and on nothing else, so an answer that is right proves
 * that its sequence held the right tokens in the right order, whatever was shared, preempted or read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "scheduler.h"

enum { VOCAB = 1000, PAGE = 64, POISON = 999, MOST_SEQS = 200 };

/* ---- the engine ---- */

struct q_seq {
    struct q_engine *en;
    int n, *ids; /* [ctx] */
};
struct q_snap {
    struct q_engine *en;
    int n, *ids;
    uint32_t hash; /* of one that was written */
};
struct q_engine {
    struct q_sched_engine v;
    int pages_used, seqs, snaps;
    double step_s, row_s;
    double refuse_at; /* steps from this one on are refused where POISON is in them */
    /* of the step in flight */
    int out[MOST_SEQS], row[MOST_SEQS], n_out, rows, poisoned;
    float logprob[MOST_SEQS];
    /* for the test */
    int steps, most_rows, last_seqs;
    unsigned long long read;
};
static double now;

static double seconds(void) { return now; }
static int pages(int n) { return (n + PAGE - 1) / PAGE; }

static int seq_open(struct q_engine *en, struct q_seq **s, struct q_err *e)
{
    *s = calloc(1, sizeof **s);
    (*s)->en = en;
    (*s)->ids = calloc((size_t)en->v.ctx, sizeof(int));
    en->seqs++;
    return Q_OK;
}

static void seq_clear(struct q_seq *s)
{
    s->en->pages_used -= pages(s->n);
    s->n = 0;
}

static void seq_close(struct q_seq *s)
{
    seq_clear(s);
    s->en->seqs--;
    free(s->ids);
    free(s);
}

static int seq_length(const struct q_seq *s) { return s->n; }

/* Copies on the host: a state is a hash of all tokens, a page is its tokens. */
static uint32_t hash(const int *ids, int n)
{
    uint32_t h = 1;
    for (int i = 0; i < n; i++) h = h * 31 + (uint32_t)ids[i];
    return h;
}

/* Real pages would be shared: this takes more. */
static int seq_restore(struct q_seq *s, const struct q_snap *p, struct q_err *e)
{
    if (p->hash) assert_int_equal(p->hash, hash(p->ids, p->n));
    seq_clear(s);
    memcpy(s->ids, p->ids, (size_t)p->n * sizeof(int));
    s->n = p->n;
    s->en->pages_used += pages(s->n);
    return Q_OK;
}

static int snap_length(const struct q_snap *p) { return p->n; }
static void snap_close(struct q_snap *p)
{
    p->en->pages_used -= pages(p->n);
    p->en->snaps--;
    free(p->ids);
    free(p);
}

static int next_id(const int *ids, int n)
{
    uint32_t h = 2166136261u;
    for (int i = 0; i < n; i++) h = (h ^ (uint32_t)ids[i]) * 16777619u;
    return (int)((h >> 8) % (VOCAB - 1));
}

/* Pages that the step takes: of sequences as they grow, and of snapshots. */
static int needed(const struct q_step *st)
{
    int n = 0, length = 0;
    for (int i = 0, k = 0; i < st->n_rows; i++) {
        const struct q_seq *s = st->rows[i].seq;
        length = i && st->rows[i - 1].seq == s ? length + 1 : s->n + 1;
        n += pages(length) - pages(length - 1);
        if (k < st->n_keeps && st->keeps[k].row == i) k++, n += pages(length);
    }
    return n;
}

static void keep(struct q_seq *s, struct q_snap **to)
{
    struct q_snap *p = calloc(1, sizeof *p);
    *p = (struct q_snap){.en = s->en, .n = s->n, .ids = malloc((size_t)s->n * sizeof(int))};
    memcpy(p->ids, s->ids, (size_t)s->n * sizeof(int));
    s->en->pages_used += pages(s->n);
    s->en->snaps++;
    *to = p;
}

static int seq_snapshot(struct q_seq *s, struct q_snap **to, struct q_err *e)
{
    assert_true(s->en->snaps < s->en->v.cache.max_snaps);
    if (s->en->pages_used + pages(s->n) > s->en->v.pages) return q_fail(e, Q_ELIMIT, "no pages");
    keep(s, to);
    return Q_OK;
}

static int read_state(const struct q_tree_engine *en, const struct q_snap *p, size_t at, size_t n, void *to, struct q_err *e)
{
    uint32_t h = hash(p->ids, p->n);
    memcpy(to, (const char *)&h + at, n);
    return Q_OK;
}
static int read_page(const struct q_tree_engine *en, const struct q_snap *p, int page, void *to, struct q_err *e)
{
    int n = p->n - page * PAGE;
    memcpy(to, p->ids + page * PAGE, (size_t)(n < PAGE ? n : PAGE) * sizeof(int));
    return Q_OK;
}
static int make_snap(const struct q_tree_engine *en, const struct q_snap *base, int shared, int n, struct q_snap **out, struct q_err *e)
{
    if (en->engine->pages_used + pages(n) > en->engine->v.pages) return q_fail(e, Q_ELIMIT, "no pages");
    assert_true(en->engine->snaps < en->engine->v.cache.max_snaps);
    struct q_snap *p = calloc(1, sizeof *p);
    *p = (struct q_snap){en->engine, n, calloc((size_t)pages(n) * PAGE, sizeof(int)), 0};
    if (shared) memcpy(p->ids, base->ids, (size_t)shared * PAGE * sizeof(int));
    en->engine->pages_used += pages(n);
    en->engine->snaps++;
    *out = p;
    return Q_OK;
}
static int write_state(const struct q_tree_engine *en, struct q_snap *p, size_t at, size_t n, const void *from, struct q_err *e)
{
    memcpy((char *)&p->hash + at, from, n);
    return Q_OK;
}
static int write_page(const struct q_tree_engine *en, struct q_snap *p, int page, const void *from, struct q_err *e)
{
    memcpy(p->ids + page * PAGE, from, PAGE * sizeof(int));
    return Q_OK;
}

static int submit(struct q_engine *en, const struct q_step *st, q_ticket *t, struct q_err *e)
{
    assert_in_range(st->n_rows, 1, en->v.max_rows);
    assert_true(en->snaps + st->n_keeps <= en->v.cache.max_snaps);
    en->poisoned = 0;
    for (int i = 0; i < st->n_rows; i++) en->poisoned |= st->rows[i].token == POISON;
    if (en->poisoned && en->steps >= en->refuse_at) return q_fail(e, Q_EINPUT, "poison");
    if (en->pages_used + needed(st) > en->v.pages) return q_fail(e, Q_ELIMIT, "no pages");
    en->n_out = en->last_seqs = 0;
    for (int i = 0, k = 0; i < st->n_rows; i++) {
        struct q_seq *s = st->rows[i].seq;
        en->last_seqs += !i || st->rows[i - 1].seq != s;
        assert_true(s->n < en->v.ctx);
        en->pages_used += pages(s->n + 1) - pages(s->n);
        s->ids[s->n++] = st->rows[i].token;
        if (k < st->n_keeps && st->keeps[k].row == i) keep(s, st->keeps[k++].snap);
        if (!st->rows[i].want) continue;
        assert_true(en->n_out < en->v.max_seqs);
        en->row[en->n_out] = i;
        en->logprob[en->n_out] = -1;
        en->out[en->n_out++] = next_id(s->ids, s->n);
    }
    en->rows = st->n_rows;
    return Q_OK;
}

static int wait(struct q_engine *en, q_ticket t, struct q_result *r, struct q_err *e)
{
    now += en->step_s + en->row_s * en->rows;
    en->steps++;
    en->read += (unsigned long long)en->rows;
    if (en->rows > en->most_rows) en->most_rows = en->rows;
    if (en->poisoned) return q_fail(e, Q_EINPUT, "the values of a row are NaN");
    *r = (struct q_result){.n_out = en->n_out, .n_vocab = VOCAB, .row = en->row, .id = en->out, .logprob = en->logprob};
    return Q_OK;
}

static struct q_engine make(int seqs, int snaps, int n_pages)
{
    now = 100;
    struct q_engine en = {.step_s = 0.001, .row_s = 0.0001, .refuse_at = 1e9};
    en.v = (struct q_sched_engine){.n_vocab = VOCAB, .ctx = 10000, .max_seqs = seqs, .max_rows = 512, .pages = n_pages, .page_tokens = PAGE, .promise = 1024,
        .cache = {.max_snaps = snaps, .device_bytes = SIZE_MAX}, .mark_every = 4096,
        .seq_open = seq_open, .seq_close = seq_close, .seq_clear = seq_clear, .seq_length = seq_length,
        .seq_snapshot = seq_snapshot, .seq_restore = seq_restore,
        .tree = {.page_tokens = PAGE, .state_bytes = 4, .page_bytes = PAGE * sizeof(int), .length = snap_length, .close = snap_close,
                 .read_state = read_state, .read_page = read_page, .make = make_snap,
                 .write_state = write_state, .write_page = write_page, .seconds = seconds}, .submit = submit, .wait = wait, .seconds = seconds};
    return en;
}

/* ---- askers ---- */

struct asker {
    int n_prompt, ids[9000], most;
    unsigned client;
    int got[2000], n, begun, ended, cancel, failed;
    double last, gap; /* longest between two tokens */
    int begun_step;
    struct q_engine *en;
    struct q_answer answer;
};

static int on_token(void *arg, const struct q_token *t)
{
    struct asker *a = arg;
    a->got[a->n++] = t->id;
    if (a->last > 0 && now - a->last > a->gap) a->gap = now - a->last;
    a->last = now;
    return 0;
}
static int on_cancelled(void *arg) { return ((struct asker *)arg)->cancel; }
static void on_begun(void *arg)
{
    struct asker *a = arg;
    a->begun++;
    a->begun_step = a->en->steps;
}
static void on_ended(void *arg, const struct q_answer *an, const struct q_err *err)
{
    struct asker *a = arg;
    a->ended++;
    a->failed = err != NULL;
    a->answer = *an;
}

static struct asker *asker(struct q_engine *en, int n_prompt, int seed, int most, unsigned client)
{
    struct asker *a = calloc(1, sizeof *a);
    a->n_prompt = n_prompt;
    a->most = most;
    a->client = client;
    a->en = en;
    for (int i = 0; i < n_prompt; i++) a->ids[i] = (int)((unsigned)(i + 1) * 2654435761u * (unsigned)(seed + 1) >> 7) % (VOCAB - 1);
    return a;
}

static int try_add(struct q_sched *s, struct asker *a, struct q_err *e)
{
    const struct q_sched_ask ask = {.ids = a->ids, .n = (size_t)a->n_prompt, .client = a->client, .begun = on_begun, .ended = on_ended, .arg = a,
        .o = {.sampling = q_sampling_default(), .max_tokens = a->most, .cancelled = on_cancelled, .token = on_token, .arg = a}};
    return q_sched_add(s, &ask, e);
}

static void add(struct q_sched *s, struct asker *a) { assert_int_equal(try_add(s, a, NULL), Q_OK); }

static struct asker *ask(struct q_sched *s, struct q_engine *en, int n_prompt, int seed, int most, unsigned client)
{
    struct asker *a = asker(en, n_prompt, seed, most, client);
    add(s, a);
    return a;
}

static struct q_sched *open_sched(struct q_engine *en)
{
    struct q_sched *s;
    en->v.engine = en->v.tree.engine = en;
    assert_int_equal(q_sched_open(&s, &en->v, NULL), Q_OK);
    return s;
}

static void close_sched(struct q_sched *s, struct q_engine *en)
{
    q_sched_close(s);
    assert_int_equal(en->seqs + en->snaps + en->pages_used, 0);
}

static void run(struct q_sched *s)
{
    for (int i = 0; q_sched_step(s); i++) assert_in_range(i, 0, 100000);
    struct sched_counts c = q_sched_counts(s);
    assert_int_equal(c.running + c.waiting + c.promised, 0);
}

/* Ended once, with the model's own tokens. */
static void right(struct asker *a)
{
    int n = a->n_prompt;
    assert_int_equal(a->ended, 1);
    assert_false(a->failed);
    assert_int_equal(a->n, a->answer.n_generated);
    if (!a->cancel) assert_int_equal(a->n, a->most);
    for (int i = 0; i < a->n; i++) {
        assert_int_equal(a->got[i], next_id(a->ids, n));
        a->ids[n++] = a->got[i];
    }
    free(a);
}

/* ---- tests ---- */

static void test_one_and_many(void **state)
{
    struct q_engine en = make(4, 4, 4 * 157);
    struct q_sched *s = open_sched(&en);
    struct asker *a[9];
    for (int i = 0; i < 9; i++) a[i] = ask(s, &en, 5 + 40 * i, i, i * 3, (unsigned)i);
    run(s);
    for (int i = 0; i < 9; i++) assert_int_equal(a[i]->begun, 1);
    for (int i = 0; i < 9; i++) right(a[i]);
    assert_int_equal(q_sched_step(s), 0);
    close_sched(s, &en);
}

/* Clients of llama-server's save slot 0 behind a first conversation. */
static void test_the_first_empty_slot_is_taken(void **state)
{
    struct q_engine en = make(4, 0, 4 * 157);
    struct q_sched *s = open_sched(&en);
    struct sched_view v[4];
    for (int i = 0; i < 3; i++) {
        struct asker *a = ask(s, &en, 40, i, 3, 0);
        run(s);
        right(a);
        q_sched_view(s, v, 4);
        for (int k = 0; k < 4; k++) assert_int_equal(v[k].n_held > 0, k <= i);
    }
    close_sched(s, &en);
}

static void gaps(double step_s, double row_s)
{
    struct q_engine en = make(4, 4, 4 * 157);
    en.step_s = step_s;
    en.row_s = row_s;
    struct q_sched *s = open_sched(&en);
    struct asker *a[3];
    for (int i = 0; i < 3; i++) a[i] = ask(s, &en, 30, i, 1500, (unsigned)i);
    for (int i = 0; i < 20; i++) q_sched_step(s);
    for (int i = 0; i < 3; i++) a[i]->gap = 0;
    struct asker *big = ask(s, &en, 8000, 9, 2, 9);
    double begin = now, decode = step_s + 3 * row_s;
    while (!big->ended) assert_int_equal(q_sched_step(s), 1);
    double may = 3 * decode > 0.05 ? 3 * decode : 0.05, least = decode + step_s + 16 * row_s;
    for (int i = 0; i < 3; i++)
        if (a[i]->gap > 1.01 * (may > least ? may : least)) fail_msg("a gap of %.3f s where a step takes %.4f s and a row %.4f s", a[i]->gap, step_s, row_s);
    /* Nor is the big one starved: it gets most of the time. */
    assert_true(now - begin < 8000 * row_s * 4 + 500 * step_s + 1);
    for (int i = 0; i < 3; i++) a[i]->cancel = 1;
    run(s);
    right(big);
    for (int i = 0; i < 3; i++) right(a[i]);
    close_sched(s, &en);
}

static void test_a_long_prompt_freezes_nobody(void **state)
{
    gaps(0.0003, 0.00003); /* the test model */
    gaps(0.002, 0.0001);
    gaps(0.03, 0.001);
    gaps(0.3, 0.02); /* 9B on a CPU */
}

static void test_alone_it_is_read_in_the_widest_steps(void **state)
{
    struct q_engine en = make(4, 0, 4 * 157);
    struct q_sched *s = open_sched(&en);
    struct asker *a = ask(s, &en, 512 * 8, 1, 1, 0);
    run(s);
    assert_int_equal(en.steps, 8);
    right(a);
    close_sched(s, &en);
}

static void test_very_many(void **state)
{
    struct q_engine en = make(150, 10, 150 * 157);
    struct q_sched *s = open_sched(&en);
    static struct asker *a[170];
    for (int i = 0; i < 170; i++) a[i] = ask(s, &en, 5 + i, i, 20, (unsigned)i);
    for (int i = 0; i < 60; i++) q_sched_step(s);
    assert_in_range(en.most_rows, 65, 512);
    run(s);
    for (int i = 0; i < 170; i++) right(a[i]);
    close_sched(s, &en);
}

/* A model that takes 20 ms for a row: who comes or goes while a prompt is read alone waits about a second, not ten. */
static void test_alone_on_a_slow_machine(void **state)
{
    struct q_engine en = make(4, 0, 4 * 157);
    en.step_s = 0.3;
    en.row_s = 0.02;
    struct q_sched *s = open_sched(&en);
    struct asker *a = ask(s, &en, 3000, 1, 1, 0);
    q_sched_step(s);
    for (int more = 1; more;) {
        double begin = now;
        more = q_sched_step(s);
        assert_true(now - begin < 1.4);
    }
    right(a);
    close_sched(s, &en);
}

static void test_clients_not_requests_share(void **state)
{
    struct q_engine en = make(2, 0, 2 * 157);
    struct q_sched *s = open_sched(&en);
    struct asker *many[12], *one;
    for (int i = 0; i < 12; i++) many[i] = ask(s, &en, 20, i, 50, 1);
    for (int i = 0; i < 5; i++) q_sched_step(s);
    one = ask(s, &en, 20, 77, 10, 2);
    while (!one->ended) assert_int_equal(q_sched_step(s), 1);
    int begun = 0;
    for (int i = 0; i < 12; i++) begun += many[i]->begun;
    assert_in_range(begun, 2, 4); /* it went before all that waited */
    run(s);
    for (int i = 0; i + 1 < 12; i++) assert_true(many[i]->begun_step <= many[i + 1]->begun_step);
    for (int i = 0; i < 12; i++) right(many[i]);
    right(one);
    close_sched(s, &en);
}

/* Two clients' prompts advance alike, though one has three of them. */
static void test_prompt_rows_are_shared_by_clients(void **state)
{
    struct q_engine en = make(4, 0, 4 * 157);
    struct q_sched *s = open_sched(&en);
    struct asker *a[4];
    for (int i = 0; i < 4; i++) a[i] = ask(s, &en, 4096, i, 1, i < 3 ? 1 : 2);
    while (!a[3]->ended) q_sched_step(s);
    assert_in_range(en.read, 4096, 4096 * 2 + 1024);
    run(s);
    for (int i = 0; i < 4; i++) right(a[i]);
    close_sched(s, &en);
}

static void test_n_answers_to_one_prompt_read_it_once(void **state)
{
    struct q_engine en = make(4, 6, 4 * 157);
    struct q_sched *s = open_sched(&en);
    struct asker *a[8];
    for (int i = 0; i < 8; i++) a[i] = ask(s, &en, 3000, 5, 4, 1);
    run(s);
    assert_in_range(en.read, 3000, 3000 + 8 * 6);
    assert_int_equal(a[7]->answer.n_cached, 2999);
    for (int i = 0; i < 8; i++) right(a[i]);
    close_sched(s, &en);
}

static void test_a_conversation_is_not_read_again(void **state)
{
    struct q_engine en = make(2, 4, 2 * 157);
    struct q_sched *s = open_sched(&en);
    struct asker *a = ask(s, &en, 500, 5, 20, 1), *b = asker(&en, 520, 5, 3, 1);
    run(s);
    memcpy(b->ids + 500, a->got, 20 * sizeof(int));
    struct asker *noise = ask(s, &en, 400, 6, 2, 1); /* in the other slot */
    run(s);
    unsigned long long before = en.read;
    add(s, b);
    run(s);
    assert_int_equal(b->answer.n_cached, 519); /* the last token was drawn and never read */
    assert_int_equal(en.read - before, 3);
    right(a);
    right(b);
    right(noise);
    close_sched(s, &en);
}

static void test_a_cancelled_one_is_gone_before_the_next_step(void **state)
{
    struct q_engine en = make(2, 0, 2 * 157);
    struct q_sched *s = open_sched(&en);
    struct asker *a[4];
    for (int i = 0; i < 4; i++) a[i] = ask(s, &en, 2000, i, 100, (unsigned)i);
    q_sched_step(s);
    a[0]->cancel = a[3]->cancel = 1; /* one that reads, one that waits */
    int steps = en.steps;
    q_sched_step(s);
    assert_int_equal(a[0]->ended, 1);
    assert_int_equal(a[2]->begun_step, steps);
    for (int i = 0; i < 8; i++) q_sched_step(s);
    assert_int_equal(a[3]->ended, 1);
    assert_int_equal(a[3]->begun, 0);
    assert_int_equal(a[0]->answer.finish, Q_FINISH_CANCELLED);
    run(s);
    for (int i = 0; i < 4; i++) right(a[i]);
    close_sched(s, &en);
}

static void test_admission_waits_for_pages(void **state)
{
    struct q_engine en = make(4, 2, 200);
    struct q_sched *s = open_sched(&en);
    struct asker *a[4];
    for (int i = 0; i < 4; i++) a[i] = ask(s, &en, 4000, i, 1000, (unsigned)i); /* 79 pages each, with the one that may be shared */
    q_sched_step(s);
    struct sched_counts c = q_sched_counts(s);
    assert_int_equal(c.running, 2);
    assert_int_equal(c.waiting, 2);
    run(s);
    assert_int_equal(q_sched_counts(s).preempted, 0);
    for (int i = 0; i < 4; i++) right(a[i]);
    close_sched(s, &en);
}

/* Answers that turn out longer than was promised: the youngest waits, and nobody fails or changes. */
static void test_preemption(void **state)
{
    struct q_engine en = make(4, 2, 158);
    en.v.ctx = 5000;
    struct q_sched *s = open_sched(&en);
    struct asker *a[4];
    for (int i = 0; i < 4; i++) a[i] = ask(s, &en, 1200, i, 1999, (unsigned)i); /* begins at 36 pages, ends at 51 */
    run(s);
    assert_true(q_sched_counts(s).preempted > 0);
    for (int i = 0; i < 4; i++) assert_int_equal(a[i]->begun, 1);
    for (int i = 0; i < 4; i++) right(a[i]);
    close_sched(s, &en);
}

static void poisoned(double refuse_at)
{
    struct q_engine en = make(4, 4, 4 * 157);
    en.refuse_at = refuse_at;
    struct q_sched *s = open_sched(&en);
    struct asker *a[6];
    for (int i = 0; i < 6; i++) a[i] = asker(&en, 600, i, 30, (unsigned)i);
    a[2]->ids[400] = POISON;
    for (int i = 0; i < 6; i++) add(s, a[i]);
    run(s);
    assert_int_equal(a[2]->ended, 1);
    assert_true(a[2]->failed);
    for (int i = 0; i < 6; i++)
        if (i != 2) right(a[i]);
    free(a[2]);
    close_sched(s, &en);
}

static void test_a_step_that_fails_fails_who_made_it_fail(void **state)
{
    poisoned(1e9); /* the step ran */
    poisoned(0);   /* it was refused */
}

static void test_bad_questions_are_refused_alone(void **state)
{
    struct q_engine en = make(2, 0, 2 * 157);
    struct q_sched *s = open_sched(&en);
    struct q_err e;
    struct asker *a = ask(s, &en, 10, 1, 5, 1), *bad = asker(&en, 10, 2, 5, 1);
    bad->ids[7] = VOCAB;
    assert_int_equal(try_add(s, bad, &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "1000"));
    bad->ids[7] = 1;
    bad->n_prompt = 0;
    assert_int_equal(try_add(s, bad, &e), Q_EINPUT);
    bad->n_prompt = 10;
    assert_int_equal(try_add(s, bad, &e), Q_OK);
    run(s);
    assert_int_equal(bad->ended, 1);
    right(a);
    right(bad);
    close_sched(s, &en);
}

static void test_closing_ends_what_is_left(void **state)
{
    struct q_engine en = make(2, 2, 2 * 157);
    struct q_sched *s = open_sched(&en);
    struct asker *a[4];
    for (int i = 0; i < 4; i++) a[i] = ask(s, &en, 1000, i, 10, 1);
    for (int i = 0; i < 3; i++) q_sched_step(s);
    close_sched(s, &en);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(a[i]->ended, 1);
        assert_int_equal(a[i]->answer.finish, Q_FINISH_CANCELLED);
        free(a[i]);
    }
}

/* Anything at any time: prompts that share beginnings, cancels, few pages, few snapshots. */
static void test_anything(void **state)
{
    for (unsigned seed = 1; seed <= 60; seed++) {
        srand(seed);
        struct q_engine en = make(1 + rand() % 8, rand() % 6, 160 + rand() % 300);
        en.v.ctx = 6000;
        struct q_sched *s = open_sched(&en);
        struct asker *a[40];
        int n = 0;
        while (n < 40) {
            if (rand() % 3 == 0) {
                a[n] = asker(&en, 1 + rand() % 900, rand() % 4, rand() % 200, (unsigned)rand() % 3);
                if (rand() % 8 == 0) a[n]->most = 1500;
                if (n && rand() % 3 == 0) { /* goes on where an earlier one is */
                    struct asker *old = a[rand() % n];
                    memcpy(a[n]->ids, old->ids, (size_t)old->n_prompt * sizeof(int));
                    memcpy(a[n]->ids + old->n_prompt, old->got, (size_t)old->n * sizeof(int));
                    a[n]->n_prompt = old->n_prompt + old->n + rand() % 20;
                    if (a[n]->n_prompt + a[n]->most > 4000) a[n]->n_prompt = 3;
                }
                add(s, a[n++]);
            }
            if (n && rand() % 40 == 0) {
                struct asker *x = a[rand() % n];
                if (!x->ended) x->cancel = 1;
            }
            q_sched_step(s);
        }
        run(s);
        for (int i = 0; i < 40; i++) right(a[i]);
        close_sched(s, &en);
    }
}

/* A system text for all, kept with it: what comes after need not agree. */
static void test_long_prompts_are_kept_on_the_way(void **state)
{
    struct q_engine en = make(2, 16, 6 * 157);
    en.v.mark_every = 500;
    struct q_sched *s = open_sched(&en);
    struct asker *a = ask(s, &en, 3000, 5, 4, 1), *b = asker(&en, 3000, 5, 4, 2);
    for (int i = 1700; i < 3000; i++) b->ids[i] = 7;
    run(s);
    int other = a->ids[1700];
    add(s, b);
    run(s);
    assert_int_equal(b->answer.n_cached, 1500);
    assert_int_equal(b->answer.n_shared, 1700);
    assert_int_equal(b->answer.other, other);
    assert_int_equal(b->answer.reuse, Q_REUSE_DEVICE);
    right(a);
    right(b);
    close_sched(s, &en);
}

/* What is kept moves to the host and back, in time that steps leave, and the ends of answers when nobody asks. */
static void test_the_host_takes_what_slots_cannot(void **state)
{
    struct q_engine en = make(1, 3, 2 * 157);
    en.v.cache.host_bytes = 64 << 20;
    struct q_sched *s = open_sched(&en);
    struct asker *a[8], *b[8];
    for (int i = 0; i < 8; i++) {
        a[i] = ask(s, &en, 600, i, 30, 1);
        run(s);
        for (int k = 0; q_sched_idle(s); k++) assert_in_range(k, 0, 1000);
    }
    unsigned long long read = en.read;
    for (int i = 0; i < 8; i++) {
        b[i] = asker(&en, 640, i, 2, 1);
        memcpy(b[i]->ids + 600, a[i]->got, 30 * sizeof(int));
        add(s, b[i]);
        run(s);
        assert_in_range(b[i]->answer.n_cached, 599, 629);
    }
    assert_in_range(en.read - read, 8 * 11, 8 * 45);
    assert_true(q_sched_counts(s).tree.tier[Q_TIER_HOST].got >= 4);
    for (int i = 0; i < 8; i++) right(a[i]), right(b[i]);
    close_sched(s, &en);
}

/* A thousand small worlds: prompts that share beginnings, forks, evictions to the host, cancels, few slots, few pages. */
static void test_random_interleavings(void **state)
{
    for (unsigned seed = 1; seed <= 1000; seed++) {
        srand(seed);
        struct q_engine en = make(1 + rand() % 4, rand() % 6, 20 + rand() % 40);
        en.v.ctx = 640;
        en.v.pages += (en.v.ctx + PAGE - 1) / PAGE;
        en.v.mark_every = rand() % 3 * 50;
        en.v.cache.host_bytes = (size_t)(rand() % 3) * 4000;
        struct q_sched *s = open_sched(&en);
        struct asker *a[12];
        for (int n = 0; n < 12;) {
            if (rand() % 3 == 0) {
                a[n] = asker(&en, 1 + rand() % 300, rand() % 2, rand() % 12, (unsigned)rand() % 3);
                int fork = rand() % 300;
                for (int i = fork; i < a[n]->n_prompt; i++) a[n]->ids[i] = (a[n]->ids[i] + (int)(seed % 3)) % (VOCAB - 1);
                add(s, a[n++]);
            }
            if (n && rand() % 12 == 0 && !a[n - 1]->ended) a[n - 1]->cancel = 1;
            if (!q_sched_step(s) && rand() % 2) q_sched_idle(s);
            now += 0.01 * (rand() % 100);
        }
        run(s);
        for (int i = 0; i < 12; i++) right(a[i]);
        close_sched(s, &en);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_and_many),
        cmocka_unit_test(test_a_long_prompt_freezes_nobody),
        cmocka_unit_test(test_alone_it_is_read_in_the_widest_steps),
        cmocka_unit_test(test_very_many),
        cmocka_unit_test(test_alone_on_a_slow_machine),
        cmocka_unit_test(test_clients_not_requests_share),
        cmocka_unit_test(test_prompt_rows_are_shared_by_clients),
        cmocka_unit_test(test_n_answers_to_one_prompt_read_it_once),
        cmocka_unit_test(test_a_conversation_is_not_read_again),
        cmocka_unit_test(test_a_cancelled_one_is_gone_before_the_next_step),
        cmocka_unit_test(test_admission_waits_for_pages),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_a_step_that_fails_fails_who_made_it_fail),
        cmocka_unit_test(test_bad_questions_are_refused_alone),
        cmocka_unit_test(test_closing_ends_what_is_left),
        cmocka_unit_test(test_anything),
        cmocka_unit_test(test_long_prompts_are_kept_on_the_way),
        cmocka_unit_test(test_the_first_empty_slot_is_taken),
        cmocka_unit_test(test_the_host_takes_what_slots_cannot),
        cmocka_unit_test(test_random_interleavings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
