/* The gate's parts: texts, plan, trace, score, and a child that does not do what it should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/gate_ask.h"
#include "autotune/gate_plan.h"
#include "autotune/gate_score.h"
#include "runtime/gguf.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TINY TEST_SOURCE_DIR "/tests/models/tiny.gguf"

static char dir[] = "/tmp/quarry-gate-XXXXXX", path[64];

static int make_dir(void **state)
{
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/trace", dir);
    return 0;
}

static int remove_dir(void **state)
{
    char program[64];
    snprintf(program, sizeof program, "%s/child", dir);
    unlink(program);
    unlink(path);
    return rmdir(dir);
}

/* --- texts and the plan -------------------------------------------------------------------------------------------------- */

static struct trace *tiny_texts(struct q_model **m, int n_ctx)
{
    struct tokenizer *tok;
    struct trace *t;
    struct q_err e = { 0 };
    assert_int_equal(model_open(m, TINY, &e), Q_OK);
    assert_int_equal(tok_open_gguf(&tok, (*m)->file, &e), Q_OK);
    assert_int_equal(gate_trace_make(&t, path, (*m)->config.n_vocab, &e), Q_OK);
    assert_int_equal(gate_texts(t, tok, 128, n_ctx, &e), Q_OK);
    tok_close(tok);
    return t;
}

static void test_half_of_the_texts_are_korean_and_three_are_long(void **state)
{
    struct q_model *m;
    struct trace *t = tiny_texts(&m, 8192);
    int korean = 0, large = 0, next = 0;
    assert_int_equal(t->n_texts, gate_corpus_n);
    for (int i = 0; i < t->n_texts; i++) {
        assert_string_equal(t->text[i].name, gate_corpus[i].name);
        assert_true(t->text[i].n - t->text[i].n_prompt >= 128);
        korean += !strncmp(t->text[i].name, "ko-", 3);
    }
    for (int u = 0; u < t->n_units; u++) {
        assert_int_equal(t->unit[u].text, next);
        next += t->unit[u].n;
        if (!t->unit[u].large) continue;
        large++;
        assert_true(t->text[t->unit[u].text].n_prompt > 4096);
        assert_true(t->text[t->unit[u].text].n <= GATE_LONG_CTX);
    }
    assert_int_equal(next, t->n_texts);
    assert_int_equal(large, 3);
    assert_true(2 * korean >= t->n_texts);
    gate_trace_close(t);
    model_close(m);
}

static void test_a_short_context_has_no_long_texts(void **state)
{
    struct q_model *m;
    struct trace *t = tiny_texts(&m, 2048);
    for (int u = 0; u < t->n_units; u++) assert_false(t->unit[u].large);
    assert_int_equal(t->n_texts, gate_corpus_n - 3);
    gate_trace_close(t);
    model_close(m);
}

static int chosen(const struct trace *t)
{
    int n = 0;
    for (int u = 0; u < t->n_units; u++) n += t->unit[u].chosen;
    return n;
}

static void test_more_seconds_read_more(void **state)
{
    struct q_model *m;
    struct q_err e = { 0 };
    struct trace *t = tiny_texts(&m, 8192);
    struct gate_speed s = { 40e9, 4 };
    double all = 0;
    for (int u = 0; u < t->n_units; u++) all += gate_unit_work(t, &t->unit[u], m, s.least);
    assert_int_equal(gate_choose(t, m, &s, 1.01 * all / s.rate, 0, &e), Q_OK);
    assert_int_equal(chosen(t), t->n_units);
    assert_int_equal(gate_choose(t, m, &s, 3.4, 0, &e), Q_OK);
    assert_in_range(chosen(t), 2, t->n_units - 1);
    assert_int_equal(gate_choose(t, m, &s, 1e-6, 0, &e), Q_ELIMIT);
    assert_int_equal(gate_choose(t, m, &s, 1e-6, 1, &e), Q_OK);
    assert_int_equal(chosen(t), 1);
    assert_int_equal(t->text[0].n, t->text[0].n_prompt + GATE_LEAST_ANSWER);
    gate_trace_close(t);
    model_close(m);
}

/* --- the trace ----------------------------------------------------------------------------------------------------------- */

enum { VOCAB = 8 };

/* Logits of row i: one large value, the second 0.25 behind. */
static void fill(float *x, int i)
{
    for (int j = 0; j < VOCAB; j++) x[j] = (float)(j == i % VOCAB ? 2 : j == (i + 1) % VOCAB ? 1.75 : -j * 0.125);
}

static struct trace *filled(int rows, int room)
{
    struct trace *t;
    struct q_err e = { 0 };
    float x[VOCAB];
    assert_int_equal(gate_trace_make(&t, path, VOCAB, &e), Q_OK);
    assert_int_equal(gate_trace_reserve(&t, path, room, &e), Q_OK);
    t->n_texts = 1;
    t->text[0] = (struct trace_text){ "text", 0, 4, rows };
    for (int i = 0; i < rows; i++) {
        fill(x, i);
        gate_trace_keep(t, 0, i, x);
    }
    return t;
}

static void test_a_full_trace_keeps_rows_evenly(void **state)
{
    struct trace *t = filled(50, 8);
    float x[VOCAB];
    int kept = 0;
    assert_int_equal(t->n_rows, 50);
    for (int i = 0; i < 50; i++) {
        const float *y = gate_trace_logits(t, i);
        fill(x, i);
        assert_int_equal(t->row[i].first, i % VOCAB);
        assert_true(t->row[i].margin == 0.25f);
        if (y) assert_memory_equal(x, y, sizeof x);
        kept += !!y;
    }
    assert_in_range(kept, 4, 8);
    gate_trace_close(t);
}

/* --- the score ----------------------------------------------------------------------------------------------------------- */

/* Rows as the reference's, but `change` at one of them. */
static struct score scored(const struct trace *t, int at, void (*change)(float *x))
{
    struct scorer c = { .t = t };
    struct q_err e = { 0 };
    float x[VOCAB];
    for (int i = 0; i < t->n_rows; i++) {
        fill(x, i);
        if (i == at) change(x);
        assert_int_equal(score_row(&c, 0, i, x, &e), Q_OK);
    }
    score_finish(&c);
    return c.s;
}

static void other_first(float *x) { x[(4 + 1) % VOCAB] = 3; }
static void not_a_number(float *x) { x[0] = NAN; }
static void infinite(float *x) { x[4 % VOCAB] = INFINITY; }

static void test_scores(void **state)
{
    struct trace *t = filled(10, 10);
    struct score same = scored(t, -1, NULL), other = scored(t, 4, other_first);
    assert_true(same.kld == 0 && fabs(same.angle) < 1e-12 && !same.differ && same.rows == 10);
    assert_true(other.kld > 0 && other.angle > 0);
    assert_int_equal(other.differ, 1);
    assert_int_equal(other.exceptions, 0);      /* the reference was not sure */
    assert_non_null(strstr(other.worst[0], "text position 4: 5 '' instead of 4 '', margin 0.250"));
    assert_true(other.place[0].kld > 0 && other.place[0].rows == 10 && other.place[0].margin == 0.25 && other.place[1].rows == 0);
    assert_true(fabs(other.place[0].drift - (3 - 1.75)) < 1e-6);
    t->row[4].margin = 1;
    assert_int_equal(scored(t, 4, other_first).exceptions, 1);
    assert_true(isnan(scored(t, 4, not_a_number).kld));
    assert_true(isnan(scored(t, 4, infinite).kld));
    gate_trace_close(t);
}

static void test_rows_in_another_order_are_an_error(void **state)
{
    struct trace *t = filled(3, 3);
    struct scorer c = { .t = t };
    struct q_err e = { 0 };
    float x[VOCAB];
    fill(x, 0);
    assert_int_equal(score_row(&c, 0, 1, x, &e), Q_EINTERNAL);
    gate_trace_close(t);
}

/* --- the child ------------------------------------------------------------------------------------------------------------ */

static int ask(const char *script, struct q_err *e)
{
    char program[64];
    cJSON *answer;
    snprintf(program, sizeof program, "%s/child", dir);
    FILE *f = fopen(program, "w");
    fprintf(f, "#!/bin/sh\nread job\n%s\n", script);
    fclose(f);
    chmod(program, 0700);
    struct progress quiet = { .f = NULL };
    struct gate_ask a = { .program = program, .signal_fd = -1, .progress = &quiet, .load_s = 0.3, .silence_s = 0.3 };
    int rc = gate_ask(&a, cJSON_CreateObject(), &answer, e);
    if (!rc) assert_true(cJSON_IsTrue(cJSON_GetObjectItem(answer, "ok")));
    cJSON_Delete(answer);
    return rc;
}

#define ALIVE "echo '{\"text\":\"ko\",\"at\":7}'\n"

static void test_a_child_that_ends_well(void **state)
{
    struct q_err e;
    assert_int_equal(ask(ALIVE "echo '{\"ok\":true}'", &e), Q_OK);
}

static void test_a_child_that_hangs_is_ended(void **state)
{
    struct q_err e;
    assert_int_equal(ask(ALIVE "sleep 60", &e), Q_EINTERNAL);
    assert_string_equal(e.text, "hang: nothing came for 0.3 s after ko at 7");
    assert_int_equal(ask("sleep 60", &e), Q_EINTERNAL);
    assert_string_equal(e.text, "hang: nothing came for 0.3 s after the start");
}

static void test_a_child_that_crashes(void **state)
{
    struct q_err e;
    assert_int_equal(ask(ALIVE "kill -SEGV $$", &e), Q_EINTERNAL);
    assert_string_equal(e.text, "crash: signal 11 (Segmentation fault) after ko at 7");
    assert_int_equal(ask("exit 3", &e), Q_EINTERNAL);
    assert_string_equal(e.text, "end with status 3 after the start");
    assert_int_equal(ask("head -c 100000 /dev/zero", &e), Q_EINTERNAL);
}

static void test_a_child_that_is_killed_is_nobodys_fault(void **state)
{
    struct q_err e;
    assert_int_equal(ask(ALIVE "kill -KILL $$", &e), Q_EIO);
    assert_string_equal(e.text, "gate: its process was ended by signal 9 (Killed) after ko at 7; nothing is written");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_of_the_texts_are_korean_and_three_are_long),
        cmocka_unit_test(test_a_short_context_has_no_long_texts),
        cmocka_unit_test(test_more_seconds_read_more),
        cmocka_unit_test(test_a_full_trace_keeps_rows_evenly),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_rows_in_another_order_are_an_error),
        cmocka_unit_test(test_a_child_that_ends_well),
        cmocka_unit_test(test_a_child_that_hangs_is_ended),
        cmocka_unit_test(test_a_child_that_crashes),
        cmocka_unit_test(test_a_child_that_is_killed_is_nobodys_fault),
    };
    return cmocka_run_group_tests_name("gate", tests, make_dir, remove_dir);
}
