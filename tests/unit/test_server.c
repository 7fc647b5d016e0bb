/* The parts of the server that need no socket of HTTP: jobs and their queue, the look at a client, fields, spans of JSON. */
#define _GNU_SOURCE /* before any header: client.c needs it */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "runtime/clock.h"
#include "server/client.c"
#include "server/errors.c"
#include "server/exposition.c"
#include "server/job.c"
#include "server/json_text.c"
#include "server/queue.c"
#include "server/request.c"
#include "runtime/span.h"
#include <unistd.h>

static struct job *new_job(int fd)
{
    struct job_ask ask = job_ask_default();
    struct job *j;
    assert_int_equal(job_open(&j, &ask, fd, 0, NULL), Q_OK);
    return j;
}

/* ---- jobs ---- */

static void test_pieces_come_out_in_order_and_joined(void **state)
{
    struct job *j = new_job(-1);
    struct text t = {0};
    enum q_part part;
    struct job_outcome o = {.end = JOB_ANSWERED, .answer.n_generated = 3};
    job_put(j, Q_PART_THINKING, "ab", 2);
    job_put(j, Q_PART_THINKING, "c", 1);
    job_put(j, Q_PART_CONTENT, "d", 1);
    job_end(j, &o);
    job_end(j, &(struct job_outcome){.end = JOB_FAILED});
    assert_int_equal(job_take(j, 0, &part, &t), JOB_TEXT);
    assert_int_equal(part, Q_PART_THINKING);
    assert_string_equal(t.at, "abc");
    assert_int_equal(job_take(j, 0, &part, &t), JOB_TEXT);
    assert_int_equal(part, Q_PART_CONTENT);
    assert_string_equal(t.at, "abcd");
    assert_int_equal(job_take(j, 0, &part, &t), JOB_DONE);
    assert_int_equal(job_wait(j), JOB_DONE);
    memset(&o, 0, sizeof o);
    job_outcome(j, &o);
    assert_int_equal(o.end, JOB_ANSWERED); /* the first end counts */
    assert_int_equal(o.answer.n_generated, 3);
    text_free(&t);
    job_drop(j);
}

static void test_tokens_come_with_their_text(void **state)
{
    struct job *j = new_job(-1);
    struct text t = {0};
    enum q_part part;
    const struct q_token *tk;
    job_token(j, &(struct q_token){.id = 1});
    job_token(j, &(struct q_token){.id = 2}); /* a character in two tokens */
    job_put(j, Q_PART_CONTENT, "é", 2);
    job_token(j, &(struct q_token){.id = 3});
    job_put(j, Q_PART_CONTENT, "a", 1);
    assert_int_equal(job_take(j, 0, &part, &t), JOB_TEXT);
    assert_int_equal(job_tokens(j, &tk), 3);
    for (int i = 0; i < 3; i++) assert_int_equal(tk[i].id, i + 1);
    job_put(j, Q_PART_CONTENT, "b", 1);
    job_token(j, &(struct q_token){.id = 9}); /* an end token */
    job_end(j, &(struct job_outcome){.end = JOB_ANSWERED});
    assert_int_equal(job_take(j, 0, &part, &t), JOB_TEXT);
    assert_int_equal(job_tokens(j, &tk), 0);
    assert_int_equal(job_take(j, 0, &part, &t), JOB_DONE);
    assert_string_equal(t.at, "éab");
    text_free(&t);
    job_drop(j);
}

static void test_waiting_ends_with_the_time_or_the_client(void **state)
{
    struct text t = {0};
    enum q_part part;
    struct job *j = new_job(-1);
    double begin = clock_s();
    assert_int_equal(job_take(j, 0.05, &part, &t), JOB_QUIET);
    assert_true(clock_s() - begin >= 0.045);
    job_cancel(j);
    assert_int_equal(job_take(j, 10, &part, &t), JOB_GONE);
    assert_int_equal(job_wait(j), JOB_GONE);
    assert_true(job_unwanted(j));
    job_drop(j);
    j = new_job(-1);
    job_shut(j);
    assert_true(job_unwanted(j));
    assert_int_equal(job_take(j, 0, &part, &t), JOB_QUIET); /* the client is there and will be told */
    job_end(j, &(struct job_outcome){.end = JOB_CANCELLED});
    struct job_outcome o;
    job_outcome(j, &o);
    assert_int_equal(o.end, JOB_SHUTDOWN);
    job_drop(j);
}

/* ---- a client that leaves, at once or later ---- */

static void test_a_close_after_the_grace_is_gone(void **state)
{
    int fd[2];
    struct client c;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    client_init(&c, fd[0], 0);
    c.end -= 1;
    assert_false(client_gone(&c));
    assert_int_equal(write(fd[1], "next request", 12), 12); /* what is sent meanwhile does not hide the end */
    assert_false(client_gone(&c));
    shutdown(fd[1], SHUT_WR);
    assert_true(client_gone(&c));
    close(fd[0]);
    close(fd[1]);
}

static void test_an_early_end_of_sending_is_not_gone_until_it_closes(void **state)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    int fd[2];
    struct client c;
    char got[64] = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    client_init(&c, fd[0], 1);
    shutdown(fd[1], SHUT_WR);
    assert_false(client_gone(&c));
    c.end -= 1;
    assert_false(client_gone(&c));
    assert_int_equal(recv(fd[1], got, sizeof got - 1, 0), (int)sizeof interim - 1); /* once */
    assert_string_equal(got, interim);
    close(fd[1]);
    assert_true(client_gone(&c));
    close(fd[0]);
}

/* ---- the queue ---- */

static void test_first_come_first_served_and_bounded(void **state)
{
    struct queue *q;
    struct job *j[4];
    for (int i = 0; i < 4; i++) j[i] = new_job(-1);
    assert_int_equal(queue_open(&q, 2, NULL), Q_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(queue_push(q, j[i]), QUEUE_TAKEN); /* one of them for the free slot */
    assert_int_equal(queue_push(q, j[3]), QUEUE_FULL);
    assert_ptr_equal(queue_take(q, QUEUE_FOREVER), j[0]);
    queue_begin(q, j[0]);
    assert_int_equal(queue_push(q, j[3]), QUEUE_FULL);
    queue_set_slots(q, 2);
    assert_int_equal(queue_push(q, j[3]), QUEUE_TAKEN);
    queue_remove(q, j[1]); /* a waiting one leaves from the middle */
    queue_remove(q, j[0]); /* a taken one is not touched */
    struct queue_counts c = queue_counts(q);
    assert_int_equal(c.waiting, 2);
    assert_int_equal(c.running, 1);
    assert_int_equal(c.cancelled, 1);
    queue_done(q, j[0], &(struct job_outcome){.end = JOB_ANSWERED});
    queue_close(q);
    assert_int_equal(queue_push(q, j[1]), QUEUE_CLOSED);
    for (int i = 2; i < 4; i++) assert_ptr_equal(queue_take(q, 0), j[i]);
    assert_null(queue_take(q, 0));
    assert_int_equal(queue_counts(q).waiting, 2); /* taken, not begun */
    queue_done(q, j[3], &(struct job_outcome){.end = JOB_FAILED});
    queue_begin(q, j[2]);
    queue_done(q, j[2], &(struct job_outcome){.end = JOB_FAILED});
    assert_null(queue_take(q, QUEUE_FOREVER));
    c = queue_counts(q);
    assert_int_equal(c.answered, 1);
    assert_int_equal(c.failed, 2);
    assert_int_equal(c.running + c.waiting, 0);
    queue_free(q);
    for (int i = 0; i < 4; i++) job_drop(j[i]);
}

static void test_shut_ends_what_waits_and_asks_what_runs(void **state)
{
    struct queue *q;
    struct job *runs = new_job(-1), *waits = new_job(-1);
    struct job_outcome o;
    assert_int_equal(queue_open(&q, 2, NULL), Q_OK);
    queue_push(q, runs);
    queue_push(q, waits);
    assert_ptr_equal(queue_take(q, QUEUE_FOREVER), runs);
    queue_begin(q, runs);
    queue_shut(q);
    assert_true(job_unwanted(runs));
    job_outcome(waits, &o);
    assert_int_equal(o.end, JOB_SHUTDOWN);
    queue_done(q, runs, &(struct job_outcome){.end = JOB_CANCELLED});
    job_outcome(runs, &o);
    assert_int_equal(o.end, JOB_SHUTDOWN);
    assert_null(queue_take(q, QUEUE_FOREVER));
    queue_free(q);
    job_drop(runs);
    job_drop(waits);
}

/* A job that is queued and taken by one thread while another cancels it, a thousand times: each has one end. */
static void *takes(void *arg)
{
    struct queue *q = arg;
    for (struct job *j; (j = queue_take(q, QUEUE_FOREVER));) {
        queue_begin(q, j);
        queue_done(q, j, &(struct job_outcome){.end = JOB_ANSWERED});
    }
    return NULL;
}

static void test_a_race_of_cancel_and_answer(void **state)
{
    enum { N = 1000 };
    struct queue *q;
    pthread_t t;
    assert_int_equal(queue_open(&q, 4, NULL), Q_OK);
    assert_int_equal(pthread_create(&t, NULL, takes, q), 0);
    for (int i = 0; i < N; i++) {
        struct job *j = new_job(-1);
        struct text out = {0};
        enum q_part part;
        while (queue_push(q, j) != QUEUE_TAKEN) sched_yield();
        queue_remove(q, j);
        assert_int_equal(job_take(j, 10, &part, &out), JOB_DONE);
        job_drop(j);
    }
    queue_close(q);
    pthread_join(t, NULL);
    struct queue_counts c = queue_counts(q);
    assert_int_equal(c.answered + c.cancelled, N);
    queue_free(q);
}

/* ---- JSON ---- */

static struct span of(const char *s) { return (struct span){s, strlen(s)}; }

static void assert_span(struct span s, const char *want)
{
    assert_non_null(s.at);
    assert_int_equal(s.n, strlen(want));
    assert_memory_equal(s.at, want, s.n);
}

static struct span element(struct span array, int i)
{
    struct span s = span_next(array, (struct span){0});
    while (s.at && i--) s = span_next(array, s);
    return s;
}

static void test_spans_keep_the_callers_text(void **state)
{
    const char *o = "{ \"a\\u0062\" : 1.000000000000000000001 , \"x\":[ {\"k\":\"]}\\\"\"} ,\"s\", -5e+10,null , [[]] ],\"\\\"\":{},\"z\":true}";
    struct span x = span_member(of(o), "x");
    assert_span(span_member(of(o), "ab"), "1.000000000000000000001");
    assert_span(x, "[ {\"k\":\"]}\\\"\"} ,\"s\", -5e+10,null , [[]] ]");
    assert_span(element(x, 0), "{\"k\":\"]}\\\"\"}");
    assert_span(element(x, 1), "\"s\"");
    assert_span(element(x, 2), "-5e+10");
    assert_span(element(x, 3), "null");
    assert_span(element(x, 4), "[[]]");
    assert_null(element(x, 5).at);
    assert_span(span_member(of(o), "\""), "{}");
    assert_span(span_member(of(o), "z"), "true");
    assert_null(span_member(of(o), "a").at);
    assert_null(span_member(of(o), "abc").at);
    assert_null(span_member(of("{}"), "a").at);
    assert_null(element(of("[ ]"), 0).at);
}

static void test_json_strings(void **state)
{
    struct text t = {0};
    text_json(&t, "a\"\\\n\x01\x7F\0b", 8);
    text_json(&t, "한글", 6);
    text_json(&t, "x\xFFy", 3);
    text_json_z(&t, NULL);
    assert_string_equal(t.at, "\"a\\\"\\\\\\n\\u0001\\u007f\\u0000b\"\"한글\"\"x?y\"null");
    text_free(&t);
}

static void count_line(void *arg, const char *line) { ++*(int *)arg; }

static void test_fields_are_typed_and_the_first_fault_stays(void **state)
{
    const char *body = "{\"n\":5,\"x\":1.5,\"b\":true,\"s\":\"t\",\"null\":null,\"N\":7}";
    struct api_error x = {0};
    struct fields f;
    cJSON *root;
    assert_int_equal(body_parse(body, strlen(body), &root, &x), 0);
    fields_begin(&f, root, &x);
    assert_int_equal(field_int(&f, "n", 0, 10, -1), 5);
    assert_true(field_number(&f, "x", 0, 2, -1) == 1.5);
    assert_int_equal(field_bool(&f, "b", 0), 1);
    assert_string_equal(field_string(&f, "s"), "t");
    assert_int_equal(field_int(&f, "null", 0, 10, -1), -1);
    assert_int_equal(field_int(&f, "B", 0, 10, -1), -1); /* names have their case */
    assert_false(fields_bad(&f));
    field_int(&f, "x", 0, 10, -1);
    assert_true(fields_bad(&f));
    field_int(&f, "s", 0, 10, -1);
    assert_string_equal(x.param, "x");
    assert_int_equal(x.status, 400);
    cJSON_Delete(root);
}

static void test_what_is_refused_ignored_and_told(void **state)
{
    static const struct unsupported table[] = {{"hard", NULL}, {"one", "1"}, {"word", "auto"}, {"on", "true"}};
    static const struct { const char *body; int refused; } cases[] = {
        {"{\"new\":1,\"hard\":null}", 0}, {"{\"new\":2,\"hard\":[]}", 0}, {"{\"hard\":{},\"one\":1,\"word\":\"auto\",\"on\":true}", 0},
        {"{\"hard\":0,\"one\":0,\"word\":\"\",\"on\":false}", 0}, {"{\"hard\":1}", 1}, {"{\"hard\":[0]}", 1}, {"{\"one\":2}", 1},
        {"{\"word\":\"other\"}", 1}, {"{\"hard\":true}", 1}, {"{\"one\":\"2\"}", 1},
    };
    int lines = 0;
    struct once *told;
    assert_int_equal(once_open(&told, count_line, &lines, NULL), Q_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct api_error x = {0};
        struct fields f;
        cJSON *root;
        assert_int_equal(body_parse(cases[i].body, strlen(cases[i].body), &root, &x), 0);
        fields_begin(&f, root, &x);
        assert_int_equal(fields_finish(&f, table, 4, told) != 0, cases[i].refused);
        assert_int_equal(x.status, cases[i].refused ? 400 : 0);
        cJSON_Delete(root);
    }
    assert_int_equal(lines, 1);
    once_close(told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_come_out_in_order_and_joined),
        cmocka_unit_test(test_tokens_come_with_their_text),
        cmocka_unit_test(test_waiting_ends_with_the_time_or_the_client),
        cmocka_unit_test(test_a_close_after_the_grace_is_gone),
        cmocka_unit_test(test_an_early_end_of_sending_is_not_gone_until_it_closes),
        cmocka_unit_test(test_first_come_first_served_and_bounded),
        cmocka_unit_test(test_shut_ends_what_waits_and_asks_what_runs),
        cmocka_unit_test(test_a_race_of_cancel_and_answer),
        cmocka_unit_test(test_spans_keep_the_callers_text),
        cmocka_unit_test(test_json_strings),
        cmocka_unit_test(test_fields_are_typed_and_the_first_fault_stays),
        cmocka_unit_test(test_what_is_refused_ignored_and_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
