/* What explain reads out of a journal: the latest search alone, of the problems that were asked for, and of hostile lines nothing. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/evidence.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CARD "cpu:other-0-0,isa=avx2+sse42+scalar,l1=32,l2=256,l3=4096,t=4"
#define GENERATOR "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OBJECT "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const struct store_key few = { "matvec", "n=64,k=64", 1, 0, "pinned", CARD, GENERATOR };
static const struct store_key many = { "matvec", "n=64,k=64", 8, 0, "pinned", CARD, GENERATOR };
static char state[Q_PATH], dir[Q_PATH];

static int begin(void **arg)
{
    struct q_err e;
    *arg = NULL;
    if (dir_temp(state, "/tmp/quarry-evidence-", &e)) fail_msg("%s", e.text);
    setenv("XDG_STATE_HOME", state, 1);
    return journal_dir(dir, NULL, CARD, NULL);
}

static int end(void **arg)
{
    (void)arg;
    dir_remove(state);
    return 0;
}

static struct journal *session(void)
{
    struct journal_opts o = { .card = CARD, .signal_fd = -1 };
    struct journal *j;
    struct q_err e;
    int waited;
    if (journal_open(&j, &o, &waited, &e)) fail_msg("%s", e.text);
    return j;
}

static void search(struct journal *j, const struct store_key *k, int total)
{
    cJSON *reasons = cJSON_Parse("[[\"the tile fits\",3],[\"the card has the path\",4]]");
    journal_problem(j, k, total, total - 7, reasons);
}

static void tried(struct journal *j, const struct store_key *k, const char *params, double us)
{
    struct journal_candidate c = { k, params, OBJECT };
    journal_start(j, &c, "check");
    journal_checked(j, &c, "0123456789abcdef");
    journal_time(j, &c, (const int[]){ 1, 1, 0 }, (const double[]){ us, us + 2, us + 1 }, 3);
    journal_time(j, &c, (const int[]){ 1, 1, 512 }, (const double[]){ 2 * us }, 1);
}

static void read_both(struct evidence v[2], struct journal_foreign *foreign)
{
    struct q_err e;
    const struct store_key k[2] = { few, many };
    if (evidence_read(v, k, 2, foreign, &e)) fail_msg("%s", e.text);
}

static void the_latest_search_is_told_of_each_problem(void **arg)
{
    struct evidence v[2];
    struct journal_foreign foreign;
    (void)arg;
    struct journal *j = session();
    search(j, &few, 100);
    tried(j, &few, "tm=9", 1);
    search(j, &many, 50);
    tried(j, &many, "tm=4", 8);
    journal_close(j, 1);
    j = session();
    search(j, &few, 30);
    tried(j, &few, "tm=1", 20);
    tried(j, &few, "tm=2", 10);
    struct journal_candidate bad = { &few, "tm=3", OBJECT };
    journal_start(j, &bad, "check");
    journal_bad(j, &bad, "hang", "did not end within 20 s");
    journal_close(j, 0);
    read_both(v, &foreign);
    assert_int_equal(foreign.files + foreign.lines, 0);
    assert_int_equal(v[0].total, 30);
    assert_int_equal(v[0].legal, 23);
    assert_int_equal(v[0].n_reasons, 2);
    assert_string_equal(v[0].reason[1].text, "the card has the path");
    assert_int_equal(v[0].reason[1].n, 4);
    assert_int_equal(v[0].n, 3);
    assert_string_equal(v[0].c[0]->params, "tm=1");
    assert_float_equal(evidence_median(v[0].c[0], 1, 0), 21, 1e-9);
    assert_int_equal(v[0].c[1]->n_sizes, 2);
    assert_float_equal(evidence_median(v[0].c[1], 1, 512), 20, 1e-9);
    assert_true(isinf(evidence_median(v[0].c[1], 2, 512)));
    assert_int_equal(v[0].c[1]->size[1].past, 512);
    assert_string_equal(v[0].c[2]->bad, "hang: did not end within 20 s");
    assert_int_equal(v[1].total, 50);
    assert_int_equal(v[1].n, 1);
    evidence_free(v, 2);
}

static void samples_are_bounded_and_of_the_latest_race(void **arg)
{
    struct evidence v[2];
    struct journal_foreign foreign;
    (void)arg;
    struct journal *j = session();
    struct journal_candidate c = { &few, "tm=1", OBJECT };
    search(j, &few, 30);
    double many_us[EVIDENCE_SAMPLES + 10];
    for (int i = 0; i < EVIDENCE_SAMPLES + 10; i++) many_us[i] = 11 + i;
    journal_time(j, &c, (const int[]){ 1, 1, 0 }, (const double[]){ 500 }, 1);
    journal_time(j, &c, (const int[]){ 1, 1, 0 }, many_us, EVIDENCE_SAMPLES + 10);
    for (int i = 0; i < EVIDENCE_SIZES + 3; i++) journal_time(j, &c, (const int[]){ 2 + i, 1, 0 }, (const double[]){ 1 }, 1);
    journal_close(j, 0);
    read_both(v, &foreign);
    assert_int_equal(v[0].c[0]->size[0].n, EVIDENCE_SAMPLES);
    assert_float_equal(v[0].c[0]->size[0].us[0], 11, 1e-9);
    assert_int_equal(v[0].c[0]->n_sizes, EVIDENCE_SIZES);
    evidence_free(v, 2);
}

static void hostile_lines_are_nothing(void **arg)
{
    static const char *const lines[] = {
        "{\"ev\":\"problem\",%s,\"total\":1e300,\"legal\":-5,\"reasons\":[[1,2],{},[\"x\"],7]}",
        "{\"ev\":\"time\",%s,\"params\":\"tm=1\",\"size\":[1e99,-1],\"us\":[\"a\",-1,null,3]}",
        "{\"ev\":\"time\",%s,\"params\":7,\"size\":{},\"us\":4}",
        "{\"ev\":\"bad\",%s,\"params\":\"tm=2\\u001b[2J\",\"kind\":[],\"why\":\"\\u001bc\"}",
        "{\"ev\":\"won\",%s,\"duel\":[],\"ties\":[1,{}],\"base\":{\"measured\":[7,{},{\"rows\":1e99},[],{},{}]}}",
    };
    struct evidence v[2];
    struct journal_foreign foreign;
    char path[Q_PATH + 40];
    (void)arg;
    journal_close(session(), 0);
    snprintf(path, sizeof path, "%s/00000001.jsonl", dir);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        fprintf(f, lines[i], "\"op\":\"matvec\",\"shape\":\"n=64,k=64\",\"rows\":1,\"ctx\":0,\"profile\":\"pinned\",\"generator\":\"" GENERATOR "\"");
        fputc('\n', f);
    }
    fclose(f);
    read_both(v, &foreign);
    assert_int_equal(v[0].total, 0);
    assert_int_equal(v[0].n, 2);
    assert_int_equal(v[0].c[0]->size[0].n, 1);
    assert_string_equal(v[0].c[1]->params, "tm=2?[2J");
    assert_string_equal(v[0].c[1]->bad, "?c");
    assert_int_equal(v[0].n_ties, 0);
    assert_int_equal(v[0].n_base, RECORD_TIMES);
    assert_int_equal(v[0].base[2].rows, 0);
    assert_int_equal(v[1].n, 0);
    evidence_free(v, 2);
}

static void no_journal_is_no_evidence(void **arg)
{
    struct evidence v[2];
    struct journal_foreign foreign;
    (void)arg;
    read_both(v, &foreign);
    assert_int_equal(v[0].n + v[1].n + v[0].total, 0);
    evidence_free(v, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_latest_search_is_told_of_each_problem, begin, end),
        cmocka_unit_test_setup_teardown(samples_are_bounded_and_of_the_latest_race, begin, end),
        cmocka_unit_test_setup_teardown(hostile_lines_are_nothing, begin, end),
        cmocka_unit_test_setup_teardown(no_journal_is_no_evidence, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
