/* The server's core without sockets or an engine: what a job says becomes the same events however it was cut, and what is kept whole is whole. */
#define _GNU_SOURCE /* before any header: client.c needs it */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>


#include "server/client.c"
#include "server/json_text.c"
#include "server/job.c"
#include "server/track.c"
#include "server/transcript.c"

/* Ids are drawn in the server; here they are counted. */
void openai_id(const char *prefix, char *out, size_t size)
{
    static int n;
    snprintf(out, size, "%s%d", prefix, n++);
}

static const char TOOLS[] = "[{\"type\":\"function\",\"function\":{\"name\":\"save\",\"parameters\":{\"type\":\"object\",\"properties\":{"
                            "\"path\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"}},\"required\":[\"path\"]}}}]";
static const char CALL[] = "Well.\n\n<tool_call>\n<function=save>\n<parameter=path>\na b\n</parameter>\n<parameter=n>\n12\n</parameter>\n</function>\n</tool_call>";
static const char ARGUMENTS[] = "{\"path\": \"a b\", \"n\": 12}";

static void *open_tools(void)
{
    cJSON *list = cJSON_Parse(TOOLS);
    struct q_tools *t;
    struct q_err e;
    assert_int_equal(q_tools_open(&t, list, &e), Q_OK);
    cJSON_Delete(list);
    return t;
}

static void keep(void *arg, const struct event *ev) { transcript_add(arg, ev); }

/* A job that says `thinking`, then `content` in two pieces cut at `cut`, a token a byte, and ends so. */
static struct choice answer(const struct q_tools *tools, const char *thinking, const char *content, size_t cut, enum q_finish how, int stopped_by)
{
    struct choice c = {0};
    struct track t = {0};
    struct job_ask ask = job_ask_default();
    struct job_outcome o = {.end = JOB_ANSWERED, .answer = {.finish = how, .stopped_by = stopped_by}};
    struct q_err e;
    ask.logprobs = 0;
    assert_int_equal(job_open(&t.job, &ask, -1, 0, &e), Q_OK);
    if (tools) assert_int_equal(track_read_calls(&t, tools, &e), Q_OK);
    if (*thinking) job_put(t.job, Q_PART_THINKING, thinking, strlen(thinking));
    for (size_t i = 0; content[i]; i++) {
        job_token(t.job, &(struct q_token){.id = (int)i});
        job_put(t.job, Q_PART_CONTENT, content + i, 1);
        if (i + 1 == cut) assert_int_equal(track_take(&t, 0, keep, &c), JOB_TEXT);
    }
    job_end(t.job, &o);
    while (!t.ended) track_take(&t, 0, keep, &c);
    assert_int_equal(t.outcome.end, JOB_ANSWERED);
    track_close(&t);
    assert_true(transcript_ok(&c, 1));
    return c;
}

static void is_text(const struct text *t, const char *want) { assert_string_equal(text_of(t), want); }

static void test_a_call_is_the_same_at_every_cut(void **state)
{
    struct q_tools *tools = open_tools();
    size_t n = strlen(CALL);
    for (size_t cut = 1; cut <= n; cut++) {
        struct choice c = answer(tools, "", CALL, cut, Q_FINISH_STOP, -1);
        is_text(&c.content, "Well.");
        assert_int_equal(c.n_calls, 1);
        is_text(&c.call[0].name, "save");
        cJSON *got = cJSON_Parse(text_of(&c.call[0].arguments)), *want = cJSON_Parse(ARGUMENTS);
        assert_true(cJSON_Compare(got, want, 1));
        cJSON_Delete(got);
        cJSON_Delete(want);
        assert_int_equal(c.finish, FINISH_CALLS);
        assert_int_equal(c.n_tokens, n); /* none is lost, whatever its text became */
        for (int i = 0; i < c.n_tokens; i++) assert_int_equal(c.token[i].id, i);
        transcript_free(&c, 1);
    }
    q_tools_close(tools);
}

/* Wherever it is cut off: the reason is the length, and a call that is listed is whole. */
static void test_half_a_call_is_never_listed(void **state)
{
    struct q_tools *tools = open_tools();
    char part[sizeof CALL];
    for (size_t n = 1; n <= strlen(CALL); n++) {
        snprintf(part, n + 1, "%s", CALL);
        struct choice c = answer(tools, "", part, 3, Q_FINISH_LENGTH, -1);
        assert_int_equal(c.finish, FINISH_LENGTH);
        if (n < strlen(CALL) - strlen("</tool_call>")) assert_int_equal(c.n_calls, 0);
        if (c.n_calls) assert_string_equal(text_of(&c.call[0].name), "save");
        transcript_free(&c, 1);
    }
    q_tools_close(tools);
}

static void test_without_tools_all_is_text(void **state)
{
    struct choice c = answer(NULL, "Hm.", CALL, 7, Q_FINISH_STOP, 2);
    is_text(&c.thinking, "Hm.");
    is_text(&c.content, CALL);
    assert_int_equal(c.n_calls, 0);
    assert_int_equal(c.finish, FINISH_STOP);
    assert_int_equal(c.stopped_by, 2);
    transcript_free(&c, 1);
}

static void test_an_answer_that_says_nothing_ends_all_the_same(void **state)
{
    struct q_tools *tools = open_tools();
    struct choice c = answer(tools, "", "", 0, Q_FINISH_STOP, -1);
    is_text(&c.content, "");
    assert_int_equal(c.finish, FINISH_STOP);
    assert_int_equal(c.n_tokens, 0);
    transcript_free(&c, 1);
    q_tools_close(tools);
}

/* What ends without an answer says nothing of an end. */
static void count_ends(void *arg, const struct event *ev) { *(int *)arg += ev->kind == EVENT_END; }

static void test_no_end_is_told_of_what_failed(void **state)
{
    static const enum job_end ends[] = {JOB_FAILED, JOB_CANCELLED, JOB_SHUTDOWN};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct track t = {0};
        struct job_ask ask = job_ask_default();
        struct q_err e;
        int n = 0;
        assert_int_equal(job_open(&t.job, &ask, -1, 0, &e), Q_OK);
        job_put(t.job, Q_PART_CONTENT, "a", 1);
        job_end(t.job, &(struct job_outcome){.end = ends[i]});
        assert_int_equal(track_take(&t, 0, count_ends, &n), JOB_TEXT);
        assert_int_equal(track_take(&t, 0, count_ends, &n), JOB_DONE);
        assert_true(t.ended && t.outcome.end == ends[i] && n == 0);
        track_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_is_the_same_at_every_cut),
        cmocka_unit_test(test_half_a_call_is_never_listed),
        cmocka_unit_test(test_without_tools_all_is_text),
        cmocka_unit_test(test_an_answer_that_says_nothing_ends_all_the_same),
        cmocka_unit_test(test_no_end_is_told_of_what_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
