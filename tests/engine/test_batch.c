/* Many answers at once on the trained test model: in strict each has, bit for bit, the tokens, logprobs and text that it has alone, whatever
 * its neighbours, whoever was preempted, and whatever was shared. */
#include "constrain.h"
#include "scheduler.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CTX = 320, N = 14, MOST = 90 };
#define USER "<|im_start|>user\n"
#define PLAIN "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
#define THINK "<|im_end|>\n<|im_start|>assistant\n<think>\n"

/* What an answer brought. */
struct record {
    struct q_answer answer;
    int ids[MOST], n, ended;
    float logprob[MOST];
    struct q_constraint *constraint; /* owned */
    char part[2][2048];
};

static int on_text(void *arg, enum q_part part, const char *s, size_t n)
{
    strncat(((struct record *)arg)->part[part], s, n);
    return 0;
}

static int on_token(void *arg, const struct q_token *t)
{
    struct record *r = arg;
    r->ids[r->n] = t->id;
    r->logprob[r->n++] = t->logprob;
    return 0;
}

static void on_ended(void *arg, const struct q_answer *a, const struct q_err *err)
{
    struct record *r = arg;
    if (err) fail_msg("%s", err->text);
    r->answer = *a;
    r->ended++;
}

static struct q_engine *open_engine(enum q_numerics numerics, int seqs, int snaps, int kv_tokens)
{
    struct q_err e;
    struct q_engine *en;
    struct q_engine_opts o = {.model = TEST_MODEL, .program_dir = TEST_PROGRAMS, .numerics = numerics, .threads = 2, .ctx = CTX, .max_seqs = seqs,
                              .max_snaps = snaps, .max_rows = 64, .kv_tokens = kv_tokens};
    if (q_engine_open(&en, &o, &e)) fail_msg("%s", e.text);
    return en;
}

static const char *const prompts[] = {
    USER "What is the capital of Korea?" PLAIN, USER "Count from 3 to 12." PLAIN, USER "What is 17 + 25?" THINK, USER "Who are you?" PLAIN,
    "Mina has a blue star. Mina", USER "What is the capital of Norway?" PLAIN, USER "What is the capital of Korea?" PLAIN};

/* Answer i: prompts come again, greedy and not, with penalties, stop strings, a budget. */
static struct q_answer_opts options(int i, struct record *r)
{
    static const char *const stop[] = {"Seoul", "8"};
    static const int32_t bias_id[] = {100, 200};
    static const float bias[] = {2, -3};
    struct q_answer_opts o = {.sampling = q_sampling_default(), .max_tokens = MOST - i % 3, .text = on_text, .token = on_token, .arg = r};
    o.sampling.temp = i % 2 ? 0.9f : 0;
    o.sampling.seed = (uint64_t)i;
    if (i % 4 == 3) o.sampling.repeat = 1.2f, o.sampling.frequency = 0.3f, o.sampling.last_n = -1;
    if (i % 5 == 4) o.stop = stop, o.n_stop = 2;
    if (i % 3 == 2) o.bias_id = bias_id, o.bias = bias, o.n_bias = 2;
    o.thinking = prompts[i % 7] == prompts[2];
    o.thinking_limited = i == 9;
    o.think_budget = 4;
    if (i > 9) o.ignore_eos = 1; /* long ones, so that pages run out */
    return o;
}

/* Answers 3 and 9 are JSON; 9 thinks first, and its block is closed by the budget. */
static void constrain(struct q_engine *en, int i, struct q_answer_opts *o, struct record *r)
{
    static const char schema[] = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":12}},\"required\":[\"name\"]}";
    struct q_err e;
    if (i != 3 && i != 9) return;
    if (q_constraint_from_schema(&r->constraint, q_engine_tokenizer(en), schema, sizeof schema - 1, &e)) fail_msg("%s", e.text);
    o->constraint = r->constraint;
}

static void encode(struct q_engine *en, int i, struct tok_ids *ids)
{
    struct q_err e;
    const char *text = prompts[i % 7];
    *ids = (struct tok_ids){0};
    if (tok_encode(q_engine_tokenizer(en), text, strlen(text), TOK_PARSE_CONTROL, ids, &e)) fail_msg("%s", e.text);
}

static void alone(struct record *r)
{
    struct q_engine *en = open_engine(Q_STRICT, 1, 0, 0);
    struct q_talk *t;
    struct q_err e;
    for (int i = 0; i < N; i++) {
        struct tok_ids ids;
        struct q_answer_opts o = options(i, &r[i]);
        encode(en, i, &ids);
        constrain(en, i, &o, &r[i]);
        if (q_talk_open(&t, en, &e) || q_talk_answer(t, ids.at, ids.n, &o, &r[i].answer, &e)) fail_msg("%s", e.text);
        assert_true(r[i].n > 0);
        q_talk_close(t);
        q_constraint_free(r[i].constraint);
        free(ids.at);
    }
    q_engine_close(en);
}

/* A few steps between arrivals. Returns how many were preempted. */
static unsigned long long together(struct q_engine *en, int steps, struct record *r)
{
    struct q_sched_engine se = q_sched_engine_of(en);
    se.promise = 4;
    struct q_sched *s;
    struct q_err e;
    struct tok_ids ids[N];
    if (q_sched_open(&s, &se, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < N; i++) {
        encode(en, i, &ids[i]);
        struct q_answer_opts o = options(i, &r[i]);
        constrain(en, i, &o, &r[i]);
        const struct q_sched_ask a = {.ids = ids[i].at, .n = ids[i].n, .o = o, .client = (unsigned)i % 3, .ended = on_ended, .arg = &r[i]};
        if (q_sched_add(s, &a, &e)) fail_msg("%s", e.text);
        for (int k = 0; k < steps; k++) q_sched_step(s);
    }
    while (q_sched_step(s)) continue;
    unsigned long long preempted = q_sched_counts(s).preempted;
    q_sched_close(s);
    for (int i = 0; i < N; i++) {
        assert_int_equal(r[i].ended, 1);
        q_constraint_free(r[i].constraint);
        free(ids[i].at);
    }
    return preempted;
}

static void same(const struct record *a, const struct record *b, int i)
{
    if (a->n != b->n || memcmp(a->ids, b->ids, sizeof *a->ids * (size_t)a->n)) fail_msg("answer %d has other tokens beside others", i);
    if (memcmp(a->logprob, b->logprob, sizeof *a->logprob * (size_t)a->n)) fail_msg("answer %d has other logprobs beside others", i);
    for (int p = 0; p < 2; p++) assert_string_equal(a->part[p], b->part[p]);
    assert_int_equal(a->answer.finish, b->answer.finish);
    assert_int_equal(a->answer.n_thinking, b->answer.n_thinking);
    assert_int_equal(a->answer.stopped_by, b->answer.stopped_by);
}

static void test_strict_whatever_the_neighbours(void **state)
{
    static struct record want[N];
    static const struct { int seqs, snaps, kv_tokens, steps; } cases[] = {{8, 6, 0, 0}, {3, 2, 0, 2}, {12, 0, 0, 1}, {4, 0, CTX, 3}, {4, 1, CTX, 0}};
    unsigned long long preempted = 0;
    alone(want);
    for (int i = 3; i < 10; i += 6) assert_memory_equal(want[i].part[Q_PART_CONTENT], "{", 1);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        static struct record got[N];
        memset(got, 0, sizeof got);
        struct q_engine *en = open_engine(Q_STRICT, cases[c].seqs, cases[c].snaps, cases[c].kv_tokens);
        preempted += together(en, cases[c].steps, got);
        for (int i = 0; i < N; i++) same(&want[i], &got[i], i);
        q_engine_close(en);
    }
    assert_true(preempted > 0);
}

/* More than the machine has: without `fit` refused, with it there is less room for all together, and one may still be as long as was asked. */
static void test_what_does_not_fit_is_made_smaller(void **state)
{
    struct q_engine *en;
    struct q_err e;
    size_t planned, taken;
    struct q_engine_opts o = {.model = TEST_MODEL, .program_dir = TEST_PROGRAMS, .threads = 1, .ctx = 32768, .max_seqs = 16};
    while (!q_engine_open(&en, &o, &e)) {   /* pages of a CPU cost nothing until they are touched */
        q_engine_close(en);
        o.max_seqs *= 2;
    }
    assert_int_equal(e.code, Q_ELIMIT);
    o.fit = 1;
    if (q_engine_open(&en, &o, &e)) fail_msg("%s", e.text);
    assert_int_equal(q_engine_max_seqs(en), o.max_seqs);
    assert_int_equal(q_engine_ctx(en), 32768);
    assert_in_range(q_engine_pages(en), 32768 / 64, o.max_seqs * 512 - 1);
    q_engine_memory(en, &planned, &taken);
    assert_true(planned > 0);
    q_engine_close(en);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_does_not_fit_is_made_smaller),
                                       cmocka_unit_test(test_strict_whatever_the_neighbours)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
