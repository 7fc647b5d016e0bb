/* Parts of the server's edge that need no server: keys, endpoints that are not there, Prometheus's text, connections that take too long. */
#include "server/absent.c"
#include "server/connections.c"
#include "server/errors.c"
#include "server/exposition.c"
#include "server/json_text.c"
#include "server/keys.c"
#include "runtime/plain.h"
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

static void test_which_key_it_is(void **state)
{
    struct keys *k;
    struct q_err e;
    assert_int_equal(keys_open(&k, &e), 0);
    assert_int_equal(keys_match(k, ""), 0);
    assert_int_equal(keys_add(k, "one", &e), 0);
    assert_int_equal(keys_add(k, "two", &e), 0);
    assert_int_equal(keys_match(k, "one"), 1);
    assert_int_equal(keys_match(k, "two"), 2);
    const char *const others[] = {"", "on", "onee", "One", "one ", "three"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_int_equal(keys_match(k, others[i]), 0);
    assert_int_not_equal(keys_add_file(k, "/nonexistent", &e), 0);
    keys_close(k);
}

/* A key file of n bytes; whether it was taken, and which key `given` is then. */
static int taken(const char *bytes, size_t n, const char *given, int *which)
{
    char path[] = "keys-XXXXXX";
    struct keys *k;
    struct q_err e;
    int fd = mkstemp(path);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
    assert_int_equal(keys_open(&k, &e), 0);
    int rc = keys_add_file(k, path, &e);
    *which = keys_match(k, given);
    keys_close(k);
    unlink(path);
    return !rc;
}
#define TAKEN(bytes, given, which) taken(bytes, sizeof(bytes) - 1, given, which)

static void test_files_of_keys(void **state)
{
    static char huge[5000];
    int which;
    assert_true(TAKEN("# team\r\n\n one two\t\r\nlast", "one two", &which) && which == 1);
    assert_true(TAKEN("a\n \t \nlast", "last", &which) && which == 2);
    assert_true(TAKEN("\xEF\xBB\xBFkey\n", "key", &which) && which == 1);
    /* Neither is half a key one, nor are those behind it lost without a word. */
    assert_false(TAKEN("good\nab\0cd\nmore\n", "ab", &which));
    assert_int_equal(which, 0);
    assert_false(TAKEN("\x1b[31mkey\n", "key", &which));
    assert_false(TAKEN("", "", &which));
    assert_false(TAKEN("\xEF\xBB\xBF#\n", "", &which));
    memset(huge, 'a', sizeof huge);
    assert_false(taken(huge, sizeof huge, "a", &which));
}

/* What terminals obey is not shown to them; whole characters whose bytes look alike are. */
static void test_lines_are_plain(void **state)
{
    char line[] = "a\x1b[31m\xc2\x9b" "2J\xc2\x85\x7f\n\t \xc2\xa0\xc2\xb5\xec\x95\x88\xf0\x9f\x98\x80", cut[] = "x\xc2";
    plain_line(line);
    assert_string_equal(line, "a?[31m??2J????? \xc2\xa0\xc2\xb5\xec\x95\x88\xf0\x9f\x98\x80");
    plain_line(cut);
    assert_string_equal(cut, "x\xc2");
}

static void test_what_is_not_here_has_a_reason(void **state)
{
    assert_non_null(absent_why("/v1/embeddings"));
    assert_non_null(absent_why("/embeddings"));
    assert_non_null(absent_why("/completion"));
    assert_null(absent_why("/v1/completions"));
    assert_non_null(absent_why("/v1/files/abc"));
    assert_null(absent_why("/v1/chat/completions"));
    assert_null(absent_why("/v1/scores"));
    assert_null(absent_why("/"));
    assert_null(absent_why(""));
}

static void test_labels_are_escaped_and_values_stand_behind_them(void **state)
{
    struct text t = {0}, labels = {0};
    expo_head(&t, "x", "gauge", "What it is.");
    expo_label(&labels, "a", "q\"\\\n");
    expo_label(&labels, "b", "");
    expo_value(&t, "x", "", &labels, 2.5);
    assert_string_equal(t.at, "# HELP quarry_x What it is.\n# TYPE quarry_x gauge\nquarry_x{a=\"q\\\"\\\\\\n\",b=\"\"} 2.5\n");
    assert_int_equal(labels.n, 0);
    text_free(&labels);
    text_free(&t);
}

static void test_a_histogram_adds_up(void **state)
{
    struct text t = {0};
    struct expo_hist h = {0};
    const double values[] = {0.001, 0.005, 0.3, 1e9};
    for (int i = 0; i < 4; i++) expo_hist_add(&h, values[i]);
    expo_hist_put(&t, "s", &h, "p=\"/\"");
    assert_non_null(strstr(t.at, "quarry_s_bucket{p=\"/\",le=\"0.005\"} 2\n"));
    assert_non_null(strstr(t.at, "quarry_s_bucket{p=\"/\",le=\"0.25\"} 2\n"));
    assert_non_null(strstr(t.at, "quarry_s_bucket{p=\"/\",le=\"600\"} 3\n"));
    assert_non_null(strstr(t.at, "quarry_s_bucket{p=\"/\",le=\"+Inf\"} 4\n"));
    assert_non_null(strstr(t.at, "quarry_s_count{p=\"/\"} 4\n"));
    text_free(&t);
}

/* One of each phase, more than its time old at the next look. */
static void test_who_takes_too_long_is_shut_and_told(void **state)
{
    static const enum connection_phase phases[] = {CONNECTION_NEW, CONNECTION_IDLE, CONNECTION_HEADER, CONNECTION_BODY, CONNECTION_ANSWER};
    static const int late[] = {0, 0, 1, 1, 0}, shut_down[] = {1, 1, 1, 1, 0};
    const struct connection_limits limits = {.header_s = 1, .body_s = 1, .idle_s = 1, .many = 100};
    struct connections *cs;
    struct connection *c[5];
    struct q_err e;
    int fd[5][2];
    char got[1000];
    assert_int_equal(connections_open(&cs, &limits, &e), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd[i]), 0);
        assert_non_null(c[i] = connection_add(cs, fd[i][0]));
        connection_phase(c[i], phases[i]);
    }
    assert_int_equal(connections_count(cs), 5);
    usleep(1800000);
    for (int i = 0; i < 5; i++) {
        ssize_t n = recv(fd[i][1], got, sizeof got - 1, MSG_DONTWAIT);
        assert_int_equal(connection_late(c[i]), late[i]);
        assert_int_equal(n >= 0, shut_down[i]);
        got[n > 0 ? n : 0] = 0;
        assert_int_equal(!strncmp(got, "HTTP/1.1 408 ", 13), late[i]);
        connection_remove(c[i]);
        close(fd[i][0]);
        close(fd[i][1]);
    }
    assert_int_equal(connections_count(cs), 0);
    connections_close(cs);
}

static void test_idle_ones_give_way_in_a_crowd(void **state)
{
    const struct connection_limits limits = {.header_s = 100, .body_s = 100, .idle_s = 100, .many = 1};
    struct connections *cs;
    struct q_err e;
    int idle[2], busy[2];
    char byte;
    assert_int_equal(connections_open(&cs, &limits, &e), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, idle) | socketpair(AF_UNIX, SOCK_STREAM, 0, busy), 0);
    struct connection *a = connection_add(cs, idle[0]);
    assert_int_equal(connections_crowded(cs), 0);
    struct connection *b = connection_add(cs, busy[0]);
    connection_phase(b, CONNECTION_BODY);
    assert_int_equal(connections_crowded(cs), 1);
    usleep(2800000);
    assert_int_equal(recv(idle[1], &byte, 1, MSG_DONTWAIT), 0);
    assert_int_equal(recv(busy[1], &byte, 1, MSG_DONTWAIT), -1);
    connection_remove(a);
    connection_remove(b);
    connections_close(cs);
    for (int i = 0; i < 2; i++) close(idle[i]), close(busy[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_key_it_is), cmocka_unit_test(test_files_of_keys), cmocka_unit_test(test_lines_are_plain),
        cmocka_unit_test(test_what_is_not_here_has_a_reason),
        cmocka_unit_test(test_labels_are_escaped_and_values_stand_behind_them),
        cmocka_unit_test(test_a_histogram_adds_up),
        cmocka_unit_test(test_who_takes_too_long_is_shut_and_told),
        cmocka_unit_test(test_idle_ones_give_way_in_a_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
