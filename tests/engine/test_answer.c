/* Answers on the trained test model: what is re-used gives, in strict, the bits of a fresh reading; where an answer ends and why. */
#include "answer.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CTX = 320, ROWS = 16, MOST = 320 };
#define USER "<|im_start|>user\n"
#define PLAIN "<|im_start|>assistant\n<think>\n\n</think>\n\n"
#define THINK "<|im_start|>assistant\n<think>\n"
#define CAPITAL USER "What is the capital of Korea?<|im_end|>\n"
#define COUNT USER "Count from 3 to 12.<|im_end|>\n"

static struct q_engine *engine; /* two sequences, two snapshots */

static struct q_engine *open_engine(int snaps)
{
    struct q_err e;
    struct q_engine *en;
    struct q_engine_opts o = {.model = TEST_MODEL, .program_dir = TEST_PROGRAMS, .numerics = Q_STRICT, .threads = 2, .ctx = CTX,
                              .max_seqs = 2, .max_snaps = snaps, .max_rows = ROWS};
    if (q_engine_open(&en, &o, &e)) fail_msg("%s", e.text);
    return en;
}

static struct q_talk *open_talk(struct q_engine *en)
{
    struct q_talk *t;
    struct q_err e;
    if (q_talk_open(&t, en, &e)) fail_msg("%s", e.text);
    return t;
}

/* What an answer brought, and when the caller has had enough of it: after so many questions, texts or tokens. */
struct record {
    struct q_answer answer;
    int ids[MOST];
    float logprob[MOST];
    struct q_token token[MOST];
    int n, asked, texts, cancel_at, leave_at_text, leave_at_token;
    char part[2][4096];
};

static int on_cancelled(void *arg)
{
    struct record *r = arg;
    return ++r->asked == r->cancel_at;
}

static int on_text(void *arg, enum q_part part, const char *s, size_t n)
{
    struct record *r = arg;
    assert_true(n > 0);
    assert_false(part == Q_PART_THINKING && r->part[Q_PART_CONTENT][0]);
    strncat(r->part[part], s, n);
    assert_false(r->leave_at_text && r->texts >= r->leave_at_text); /* not called again */
    return ++r->texts == r->leave_at_text;
}

static int on_token(void *arg, const struct q_token *t)
{
    struct record *r = arg;
    assert_in_range(r->n, 0, MOST - 1);
    r->ids[r->n] = t->id;
    r->token[r->n] = *t;
    r->logprob[r->n++] = t->logprob;
    return r->n == r->leave_at_token;
}

static struct q_answer_opts options(struct record *r)
{
    return (struct q_answer_opts){.sampling = q_sampling_default(), .max_tokens = -1, .cancelled = on_cancelled, .text = on_text, .token = on_token, .arg = r};
}

static struct tok_ids encode(const char *text)
{
    struct tok_ids ids = {0};
    struct q_err e;
    if (tok_encode(q_engine_tokenizer(engine), text, strlen(text), TOK_PARSE_CONTROL, &ids, &e)) fail_msg("%s", e.text);
    return ids;
}

static void ask_ids(struct q_talk *t, const int32_t *ids, size_t n, const struct q_answer_opts *o, struct record *r)
{
    struct q_err e;
    if (q_talk_answer(t, ids, n, o, &r->answer, &e)) fail_msg("%s", e.text);
    assert_int_equal(r->answer.n_generated, r->n);
    assert_int_equal(r->answer.n_prompt, n);
    assert_true(r->answer.n_cached < r->answer.n_prompt);
}

static void ask(struct q_talk *t, const char *prompt, const struct q_answer_opts *o, struct record *r)
{
    struct tok_ids ids = encode(prompt);
    ask_ids(t, ids.at, ids.n, o, r);
    free(ids.at);
}

static void same(const struct record *a, const struct record *b)
{
    assert_int_equal(a->n, b->n);
    assert_true(a->n > 0);
    assert_memory_equal(a->ids, b->ids, (size_t)a->n * sizeof *a->ids);
    assert_memory_equal(a->logprob, b->logprob, (size_t)a->n * sizeof *a->logprob);
    for (int p = 0; p < 2; p++) assert_string_equal(a->part[p], b->part[p]);
    assert_int_equal(a->answer.finish, b->answer.finish);
}

/* Answers by `t` and by a talk that has read nothing; returns how much t had read before. */
static int ask_and_compare_ids(struct q_talk *t, const int32_t *ids, size_t n, float temp, struct record *kept)
{
    struct record a = {0}, b = {0};
    struct q_answer_opts o = options(&a);
    struct q_talk *fresh = open_talk(engine);
    o.sampling.temp = temp;
    o.sampling.seed = 7;
    ask_ids(t, ids, n, &o, &a);
    o.arg = &b;
    ask_ids(fresh, ids, n, &o, &b);
    assert_int_equal(b.answer.n_cached, 0);
    same(&a, &b);
    q_talk_close(fresh);
    if (kept) *kept = a;
    return a.answer.n_cached;
}

static int ask_and_compare(struct q_talk *t, const char *prompt, float temp)
{
    struct tok_ids ids = encode(prompt);
    int cached = ask_and_compare_ids(t, ids.at, ids.n, temp, NULL);
    free(ids.at);
    return cached;
}

static int tokens(const char *text)
{
    struct tok_ids ids = encode(text);
    free(ids.at);
    return (int)ids.n;
}

/* ---- re-use ---- */

/* Tokens up to and with the last <|im_end|> of a text that ends in one and a newline. */
static int place(const char *turns) { return tokens(turns) - 1; }

#define TURN_2 CAPITAL "<|im_start|>assistant\nThe capital of Korea is Seoul.<|im_end|>\n" COUNT
#define TURN_3 TURN_2 "<|im_start|>assistant\n3, 4, 5, 6, 7, 8, 9, 10, 11, 12<|im_end|>\n" USER "Who are you?<|im_end|>\n"

static void test_a_turn_reads_only_what_is_new(void **state)
{
    for (int temp = 0; temp < 2; temp++) {
        struct q_talk *t = open_talk(engine);
        assert_int_equal(ask_and_compare(t, CAPITAL PLAIN, (float)temp), 0);
        assert_int_equal(ask_and_compare(t, TURN_2 PLAIN, (float)temp), place(CAPITAL));
        assert_int_equal(ask_and_compare(t, TURN_3 PLAIN, (float)temp), place(TURN_2));
        assert_int_equal(ask_and_compare(t, TURN_3 PLAIN, (float)temp), place(TURN_3)); /* again */
        q_talk_close(t);
    }
}

static void test_thinking_on_and_off_share_a_turn(void **state)
{
    struct q_talk *t = open_talk(engine);
    assert_int_equal(ask_and_compare(t, CAPITAL PLAIN, 0), 0);
    assert_int_equal(ask_and_compare(t, CAPITAL THINK, 0), place(CAPITAL));
    q_talk_close(t);
}

static void test_a_prompt_that_goes_on_where_the_answer_ended(void **state)
{
    struct q_talk *t = open_talk(engine);
    struct record a;
    struct tok_ids first = encode(CAPITAL PLAIN), more = encode("\n" COUNT PLAIN);
    int32_t ids[CTX];
    size_t n = 0;
    ask_and_compare_ids(t, first.at, first.n, 0, &a);
    for (size_t i = 0; i < first.n; i++) ids[n++] = first.at[i];
    for (int i = 0; i < a.n; i++) ids[n++] = a.ids[i];
    for (size_t i = 0; i < more.n; i++) ids[n++] = more.at[i];
    /* All but the end token, which was drawn and never read. */
    assert_int_equal(ask_and_compare_ids(t, ids, n, 0, NULL), (int)first.n + a.n - 1);
    free(first.at);
    free(more.at);
    q_talk_close(t);
}

/* Whether the conversation's beginning was kept: all of it or nothing. */
static int comes_back(struct q_talk *t, const char *prompt, int place)
{
    int cached = ask_and_compare(t, prompt, 0);
    assert_true(cached == 0 || cached == place);
    return cached == place;
}

/* There are places for two: what goes for a third, and whether the newest is worth more than another, measured seconds say. Whatever it is,
 * answers stay the same. */
static void test_two_conversations_in_turn(void **state)
{
    struct q_talk *t = open_talk(engine);
    int kept = 0;
    assert_int_equal(ask_and_compare(t, CAPITAL PLAIN, 0), 0);
    assert_int_equal(ask_and_compare(t, COUNT PLAIN, 0), 0);
    for (int i = 0; i < 4; i++) {
        kept += comes_back(t, CAPITAL THINK, place(CAPITAL));
        kept += comes_back(t, COUNT THINK, place(COUNT));
        if (i == 1) ask_and_compare(t, USER "Hi<|im_end|>\n" PLAIN, 0);
    }
    assert_in_range(kept, 2, 8);
    q_talk_close(t);
}

static void test_a_prompt_without_turns_comes_back(void **state)
{
    struct q_talk *t = open_talk(engine);
    static const char text[] = "Mina has a blue star. Mina";
    assert_int_equal(ask_and_compare(t, text, 0), 0);
    assert_int_equal(ask_and_compare(t, text, 0), tokens(text) - 1);
    q_talk_close(t);
}

/* The place is the whole prompt then: it is of use to longer prompts only, since one token must be read for an answer. */
static void test_a_prompt_that_ends_with_a_turn(void **state)
{
    struct q_talk *t = open_talk(engine);
    static const char turn[] = USER "What is the capital of Korea?<|im_end|>";
    assert_int_equal(ask_and_compare(t, turn, 0), 0);
    assert_int_equal(ask_and_compare(t, turn, 0), 0);
    assert_int_equal(ask_and_compare(t, CAPITAL PLAIN, 0), place(CAPITAL));
    q_talk_close(t);
}

/* Draws are keyed by seed and place in the text: given the first part of an answer as a prompt, the rest is the same. */
static void test_a_sampled_answer_goes_on_the_same(void **state)
{
    struct q_talk *t = open_talk(engine);
    struct tok_ids ids = encode(COUNT PLAIN);
    struct record a = {0}, rest = {0};
    struct q_answer_opts o = options(&a);
    int32_t longer[CTX];
    o.sampling.temp = 3;
    o.sampling.seed = 11;
    o.max_tokens = 24;
    ask_ids(t, ids.at, ids.n, &o, &a);
    assert_true(a.n > 12);
    for (size_t i = 0; i < ids.n; i++) longer[i] = ids.at[i];
    for (int i = 0; i < 9; i++) longer[ids.n + (size_t)i] = a.ids[i];
    o.arg = &rest;
    o.max_tokens = a.n - 9;
    ask_ids(t, longer, ids.n + 9, &o, &rest);
    assert_int_equal(rest.n, a.n - 9);
    assert_memory_equal(rest.ids, a.ids + 9, (size_t)rest.n * sizeof *rest.ids);
    free(ids.at);
    q_talk_close(t);
}

static void test_without_snapshots(void **state)
{
    struct q_engine *en = open_engine(0), *with = engine;
    struct q_talk *t = open_talk(en);
    engine = en;
    assert_int_equal(ask_and_compare(t, CAPITAL PLAIN, 0), 0);
    assert_int_equal(ask_and_compare(t, TURN_2 PLAIN, 0), 0);
    engine = with;
    q_talk_close(t);
    q_engine_close(en);
}

/* Snapshots hold pages: with two long ones kept, a third long prompt fits only if they go. */
static void test_places_give_way_to_what_must_be_read(void **state)
{
    struct q_talk *t = open_talk(engine);
    static const char *const words[] = {"one ", "two ", "six ", "ten "};
    for (int round = 0; round < 8; round++) {
        char prompt[4096] = USER;
        struct record r = {0};
        struct q_answer_opts o = options(&r);
        o.max_tokens = 2;
        while (tokens(prompt) < CTX - 30) strcat(prompt, words[round % 4]);
        strcat(prompt, "<|im_end|>\n" PLAIN);
        ask(t, prompt, &o, &r);
        assert_int_equal(r.n, 2);
    }
    assert_int_equal(ask_and_compare(t, CAPITAL PLAIN, 0), 0);
    q_talk_close(t);
}

/* ---- ends ---- */

static void test_cancelled_anywhere_and_usable_after(void **state)
{
    struct q_talk *t = open_talk(engine);
    int steps = (tokens(TURN_3 PLAIN) + ROWS - 1) / ROWS;
    for (int at = 1; at < steps + 6; at++) {
        struct record r = {.cancel_at = at};
        struct q_answer_opts o = options(&r);
        ask(t, TURN_3 PLAIN, &o, &r);
        assert_int_equal(r.answer.finish, Q_FINISH_CANCELLED);
        assert_int_equal(r.asked, at);
        if (at == 1) assert_int_equal(r.n, 0);
        ask_and_compare(t, TURN_3 PLAIN, 0);
        ask_and_compare(t, COUNT PLAIN, 0);
    }
    q_talk_close(t);
}

static void test_a_cancelled_prompt_is_not_read_twice(void **state)
{
    struct q_talk *t = open_talk(engine);
    struct record r = {.cancel_at = 4};
    struct q_answer_opts o = options(&r);
    ask(t, TURN_3 PLAIN, &o, &r);
    assert_int_equal(r.n, 0);
    assert_int_equal(ask_and_compare(t, TURN_3 PLAIN, 0), 3 * ROWS);
    q_talk_close(t);
}

static void test_a_callback_that_has_had_enough(void **state)
{
    struct q_talk *t = open_talk(engine);
    struct record text = {.leave_at_text = 2}, token = {.leave_at_token = 3};
    struct q_answer_opts o = options(&text);
    ask(t, CAPITAL PLAIN, &o, &text);
    assert_int_equal(text.answer.finish, Q_FINISH_CANCELLED);
    assert_int_equal(text.texts, 2);
    o.arg = &token;
    ask(t, CAPITAL PLAIN, &o, &token);
    assert_int_equal(token.answer.finish, Q_FINISH_CANCELLED);
    assert_int_equal(token.n, 3);
    ask_and_compare(t, CAPITAL PLAIN, 0);
    q_talk_close(t);
}

static void expect(struct q_talk *t, const char *prompt, const struct q_answer_opts *with, enum q_finish finish, const char *thought, const char *content)
{
    struct record r = {0};
    struct q_answer_opts o = *with;
    o.arg = &r;
    ask(t, prompt, &o, &r);
    assert_string_equal(r.part[Q_PART_THINKING], thought);
    assert_string_equal(r.part[Q_PART_CONTENT], content);
    assert_int_equal(r.answer.finish, finish);
    assert_true(r.answer.stopped_by < o.n_stop);
}

static void test_stop_strings(void **state)
{
    struct q_talk *t = open_talk(engine);
    struct q_answer_opts o = options(NULL);
    expect(t, CAPITAL PLAIN, &o, Q_FINISH_STOP, "", "The capital of Korea is Seoul.");
    static const struct { const char *stop[2]; int n; const char *content; } cases[] = {
        {{"l of"}, 1, "The capita"},
        {{"al of Korea i"}, 1, "The capit"},
        {{"nothing like it", "."}, 2, "The capital of Korea is Seoul"},
        {{"Korea is Busan", "Korea is"}, 2, "The capital of "},
        {{"The"}, 1, ""},
        {{"Seoul.?"}, 1, "The capital of Korea is Seoul."}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        o.stop = cases[i].stop;
        o.n_stop = cases[i].n;
        expect(t, CAPITAL PLAIN, &o, Q_FINISH_STOP, "", cases[i].content);
    }
    q_talk_close(t);
}

static void test_thinking_apart(void **state)
{
    struct q_talk *t = open_talk(engine);
    struct record r = {0};
    struct q_answer_opts o = options(&r);
    static const char prompt[] = USER "What is 17 + 25?<|im_end|>\n" THINK;
    o.thinking = 1;
    ask(t, prompt, &o, &r);
    assert_true(strlen(r.part[Q_PART_THINKING]) > 4);
    assert_non_null(strstr(r.part[Q_PART_CONTENT], "42"));
    assert_null(strchr(r.part[Q_PART_THINKING], '<'));
    assert_true(r.part[Q_PART_CONTENT][0] != '\n');
    /* Cut inside the block, all is thinking. */
    char thought[64];
    o.max_tokens = 3;
    struct record cut = {0};
    o.arg = &cut;
    ask(t, prompt, &o, &cut);
    snprintf(thought, sizeof thought, "%.*s", (int)strlen(cut.part[Q_PART_THINKING]), r.part[Q_PART_THINKING]);
    assert_true(cut.part[Q_PART_THINKING][0]);
    expect(t, prompt, &o, Q_FINISH_LENGTH, thought, "");
    /* A stop string ends thinking as it ends content, but the newlines that the template writes are none. */
    o.max_tokens = -1;
    char first[2] = {r.part[Q_PART_THINKING][1], 0};
    snprintf(thought, sizeof thought, "%c", r.part[Q_PART_THINKING][0]);
    const char *stops[] = {first};
    o.stop = stops;
    o.n_stop = 1;
    expect(t, prompt, &o, Q_FINISH_STOP, thought, "");
    stops[0] = "\n\n";
    expect(t, prompt, &o, Q_FINISH_STOP, r.part[Q_PART_THINKING], r.part[Q_PART_CONTENT]);
    q_talk_close(t);
}

static void test_a_thinking_budget_closes_the_block(void **state)
{
    struct q_talk *t = open_talk(engine);
    static const char prompt[] = USER "What is 17 + 25?<|im_end|>\n" THINK;
    struct record whole = {0};
    struct q_answer_opts o = options(&whole);
    o.thinking = 1;
    ask(t, prompt, &o, &whole);
    struct tok_ids close = encode("\n</think>\n\n");
    int natural = whole.answer.n_thinking;
    assert_in_range(natural, 5, whole.n - 1);
    for (int budget = 0; budget < natural + 2; budget += budget > 1 && budget < natural - 3 ? 4 : 1) {
        struct record r = {0};
        o.arg = &r;
        o.thinking_limited = 1;
        o.think_budget = budget;
        ask(t, prompt, &o, &r);
        assert_true(r.part[Q_PART_CONTENT][0] && r.part[Q_PART_CONTENT][0] != '\n');
        assert_non_null(strstr(whole.part[Q_PART_THINKING], r.part[Q_PART_THINKING]));
        assert_int_equal(r.answer.finish, Q_FINISH_STOP);
        if (budget >= natural) {
            same(&whole, &r);
            continue;
        }
        assert_memory_equal(r.ids, whole.ids, (size_t)budget * sizeof *r.ids);
        int at = budget; /* a budget that ends between the newline and the tag is the model's own close */
        while (r.ids[at] != close.at[0]) assert_in_range(++at, 0, budget + 3);
        assert_memory_equal(r.ids + at, close.at, close.n * sizeof *close.at);
        assert_int_equal(r.answer.n_thinking, at + 2);
        for (int i = 0; i < r.n - 1; i++) assert_int_equal(r.token[i].part, i < at + (int)close.n ? Q_PART_THINKING : Q_PART_CONTENT);
    }
    free(close.at);
    q_talk_close(t);
}

static void test_biases_and_ends_that_do_not_count(void **state)
{
    struct q_talk *t = open_talk(engine);
    struct record plain = {0}, biased = {0}, on = {0};
    struct q_answer_opts o = options(&plain);
    ask(t, CAPITAL PLAIN, &o, &plain);
    const int32_t never[] = {plain.ids[1]};
    const float much[] = {-100};
    o.arg = &biased;
    o.bias_id = never, o.bias = much, o.n_bias = 1;
    o.max_tokens = 12;
    ask(t, CAPITAL PLAIN, &o, &biased);
    assert_int_equal(biased.ids[0], plain.ids[0]);
    for (int i = 0; i < biased.n; i++) assert_int_not_equal(biased.ids[i], never[0]);
    o = options(&on);
    o.ignore_eos = 1;
    o.max_tokens = plain.n + 20;
    ask(t, CAPITAL PLAIN, &o, &on);
    assert_int_equal(on.n, plain.n + 20);
    assert_int_equal(on.answer.finish, Q_FINISH_LENGTH);
    assert_memory_equal(on.ids, plain.ids, (size_t)(plain.n - 1) * sizeof *on.ids);
    q_talk_close(t);
}

/* The 17 that come from all logits begin with the 16 that the device picks, and greedy draws the first. */
static void test_logprobs(void **state)
{
    struct q_talk *t = open_talk(engine);
    struct record few = {0}, many = {0};
    struct q_answer_opts o = options(&few);
    o.n_top = Q_TOP;
    ask(t, CAPITAL PLAIN, &o, &few);
    o.arg = &many;
    o.n_top = Q_TOP + 1;
    ask(t, CAPITAL PLAIN, &o, &many);
    same(&few, &many);
    for (int i = 0; i < few.n; i++) {
        const struct q_token *a = &few.token[i], *b = &many.token[i];
        assert_int_equal(a->n_top, Q_TOP);
        assert_int_equal(b->n_top, Q_TOP + 1);
        assert_int_equal(a->top_id[0], a->id);
        assert_memory_equal(a->top_id, b->top_id, sizeof(int) * Q_TOP);
        assert_true(a->top_logprob[0] - a->logprob < 1e-5f && a->logprob - a->top_logprob[0] < 1e-5f);
        for (int k = 0; k < Q_TOP; k++) assert_true(a->top_logprob[k] - b->top_logprob[k] < 1e-4f && b->top_logprob[k] - a->top_logprob[k] < 1e-4f);
        for (int k = 0; k < Q_TOP; k++) assert_true(b->top_logprob[k] >= b->top_logprob[k + 1]);
    }
    q_talk_close(t);
}

static void test_raw_is_all_content(void **state)
{
    struct q_talk *t = open_talk(engine);
    struct record r = {0};
    struct q_answer_opts o = options(&r);
    o.thinking = o.raw = 1;
    ask(t, USER "What is 17 + 25?<|im_end|>\n" THINK, &o, &r);
    assert_string_equal(r.part[Q_PART_THINKING], "");
    assert_non_null(strstr(r.part[Q_PART_CONTENT], "\n</think>\n\n"));
    assert_null(strstr(r.part[Q_PART_CONTENT], "<|im_end|>"));
    q_talk_close(t);
}

static void test_limits(void **state)
{
    struct q_talk *t = open_talk(engine);
    for (int most = 0; most < 4; most++) {
        struct record r = {0};
        struct q_answer_opts o = options(&r);
        o.max_tokens = most;
        ask(t, CAPITAL PLAIN, &o, &r);
        assert_int_equal(r.n, most);
        assert_int_equal(r.answer.finish, Q_FINISH_LENGTH);
    }
    /* A full context: every token of it is read, and one more is drawn. */
    struct record r = {0};
    struct q_answer_opts o = options(&r);
    o.sampling = (struct q_sampling_params){.temp = 30, .top_p = 1, .repeat = 1, .seed = 5};
    ask(t, CAPITAL PLAIN, &o, &r);
    assert_int_equal(r.answer.finish, Q_FINISH_LENGTH);
    assert_int_equal(r.answer.n_prompt + r.answer.n_generated, CTX + 1);
    q_talk_close(t);
}

static void test_refusals_leave_it_usable(void **state)
{
    struct q_talk *t = open_talk(engine);
    struct record r = {0};
    struct q_answer_opts o = options(&r);
    struct q_answer a;
    struct q_err e;
    int32_t ids[CTX + 1];
    for (int i = 0; i <= CTX; i++) ids[i] = 65;
    assert_int_equal(q_talk_answer(t, ids, CTX + 1, &o, &a, &e), Q_ELIMIT);
    assert_non_null(strstr(e.text, "321"));
    assert_non_null(strstr(e.text, "320"));
    assert_int_equal(q_talk_answer(t, ids, 0, &o, &a, &e), Q_EINPUT);
    ids[ROWS + 4] = 1 << 20;
    assert_int_equal(q_talk_answer(t, ids, ROWS + 8, &o, &a, &e), Q_EINPUT);
    o.n_stop = 1;
    o.stop = (const char *const[]){""};
    assert_int_equal(q_talk_answer(t, ids, 4, &o, &a, &e), Q_EINPUT);
    o.n_stop = 0;
    o.sampling.temp = -1;
    assert_int_equal(q_talk_answer(t, ids, 4, &o, &a, &e), Q_EINPUT);
    assert_int_equal(r.n, 0);
    ask_and_compare(t, CAPITAL PLAIN, 0);
    q_talk_close(t);
}

static int setup(void **state)
{
    engine = open_engine(2);
    return 0;
}

static int teardown(void **state)
{
    q_engine_close(engine);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_turn_reads_only_what_is_new),
                                       cmocka_unit_test(test_thinking_on_and_off_share_a_turn),
                                       cmocka_unit_test(test_a_prompt_that_goes_on_where_the_answer_ended),
                                       cmocka_unit_test(test_two_conversations_in_turn),
                                       cmocka_unit_test(test_a_prompt_without_turns_comes_back),
                                       cmocka_unit_test(test_a_prompt_that_ends_with_a_turn),
                                       cmocka_unit_test(test_a_sampled_answer_goes_on_the_same),
                                       cmocka_unit_test(test_without_snapshots),
                                       cmocka_unit_test(test_places_give_way_to_what_must_be_read),
                                       cmocka_unit_test(test_cancelled_anywhere_and_usable_after),
                                       cmocka_unit_test(test_a_cancelled_prompt_is_not_read_twice),
                                       cmocka_unit_test(test_a_callback_that_has_had_enough),
                                       cmocka_unit_test(test_stop_strings),
                                       cmocka_unit_test(test_thinking_apart),
                                       cmocka_unit_test(test_a_thinking_budget_closes_the_block),
        cmocka_unit_test(test_biases_and_ends_that_do_not_count),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_raw_is_all_content),
                                       cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_refusals_leave_it_usable)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
