/* Stop strings: however the text is cut, what comes out is what a search of the whole text gives. */
#include "stop_strings.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct cut {
    struct q_stops s;
    struct tok_text out;
};

static void open_stops(struct cut *c, const char *const *stop, int n)
{
    struct q_err e;
    memset(c, 0, sizeof *c);
    assert_int_equal(q_stops_open(&c->s, stop, n, &e), Q_OK);
}

static void close_stops(struct cut *c)
{
    q_stops_close(&c->s);
    free(c->out.at);
}

static void push(struct cut *c, const char *text)
{
    struct q_err e;
    assert_int_equal(q_stops_push(&c->s, text, strlen(text), &c->out, &e), Q_OK);
}

static void flush(struct cut *c)
{
    struct q_err e;
    assert_int_equal(q_stops_flush(&c->s, &c->out, &e), Q_OK);
}

static void assert_out(const struct cut *c, const char *want)
{
    assert_int_equal(c->out.n, strlen(want));
    if (c->out.n) assert_memory_equal(c->out.at, want, c->out.n);
}

static void test_spanning_pieces(void **state)
{
    static const char *const stop[] = {"a gam"};
    struct cut c;
    open_stops(&c, stop, 1);
    push(&c, "alpha be");
    assert_out(&c, "alpha be");
    push(&c, "ta");
    assert_out(&c, "alpha bet"); /* the a may begin a stop string */
    push(&c, " ga");
    assert_out(&c, "alpha bet");
    push(&c, "mma delta");
    assert_true(c.s.met);
    push(&c, "more");
    flush(&c);
    assert_out(&c, "alpha bet");
    close_stops(&c);
}

static void test_a_false_start_is_let_through(void **state)
{
    static const char *const stop[] = {"aab"};
    struct cut c;
    open_stops(&c, stop, 1);
    push(&c, "aaa");
    assert_out(&c, "a");
    push(&c, "c");
    assert_out(&c, "aaac");
    push(&c, "aa");
    assert_out(&c, "aaac");
    flush(&c);
    assert_out(&c, "aaacaa");
    assert_false(c.s.met);
    close_stops(&c);
}

static void test_one_a_prefix_of_another(void **state)
{
    static const char *const stop[] = {"###END", "###"};
    struct cut c;
    open_stops(&c, stop, 2);
    push(&c, "x ###END");
    assert_true(c.s.met);
    assert_out(&c, "x ");
    close_stops(&c);
}

static void test_the_longest_of_those_complete_at_once(void **state)
{
    static const char *const stop[] = {"cd", "bcd"};
    struct cut c;
    open_stops(&c, stop, 2);
    push(&c, "abcde");
    assert_out(&c, "a");
    close_stops(&c);
}

static void test_newline_and_characters_of_several_bytes(void **state)
{
    static const char *const stop[] = {"\n", "다."};
    struct cut c;
    open_stops(&c, stop, 2);
    push(&c, "서울입니다");
    assert_out(&c, "서울입니");
    push(&c, ".");
    assert_true(c.s.met);
    assert_out(&c, "서울입니");
    close_stops(&c);
    open_stops(&c, stop, 2);
    push(&c, "\n");
    assert_true(c.s.met);
    assert_out(&c, "");
    close_stops(&c);
}

static void test_none(void **state)
{
    struct cut c;
    open_stops(&c, NULL, 0);
    push(&c, "anything\n");
    assert_out(&c, "anything\n");
    close_stops(&c);
}

static void test_an_empty_one_is_refused(void **state)
{
    static const char *const stop[] = {"a", ""};
    struct q_stops s;
    struct q_err e;
    assert_int_equal(q_stops_open(&s, stop, 2, &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "stop string 1"));
}

/* The text that the rule gives: the first end at which any stop string is complete, less the longest such string. */
static size_t by_search(const char *text, const char *const *stop, int n_stop)
{
    size_t n = strlen(text);
    for (size_t end = 1; end <= n; end++) {
        size_t longest = 0;
        for (int i = 0; i < n_stop; i++) {
            size_t m = strlen(stop[i]);
            if (m <= end && m > longest && !memcmp(text + end - m, stop[i], m)) longest = m;
        }
        if (longest) return end - longest;
    }
    return n;
}

static void random_text(char *to, int most)
{
    int n = rand() % most + 1;
    for (int i = 0; i < n; i++) to[i] = (char)('a' + rand() % 3);
    to[n] = 0;
}

static void test_any_text_cut_anywhere(void **state)
{
    srand(4);
    int met = 0;
    for (int round = 0; round < 4000; round++) {
        char text[41], stops[3][7];
        const char *stop[3] = {stops[0], stops[1], stops[2]};
        struct cut c;
        random_text(text, 40);
        for (int i = 0; i < 3; i++) random_text(stops[i], 6);
        size_t want = by_search(text, stop, 3), n = strlen(text);
        open_stops(&c, stop, 3);
        for (size_t at = 0, m; at < n; at += m) {
            struct q_err e;
            m = (size_t)rand() % 5 + 1;
            if (m > n - at) m = n - at;
            assert_int_equal(q_stops_push(&c.s, text + at, m, &c.out, &e), Q_OK);
            assert_true(c.out.n <= want);
        }
        flush(&c);
        assert_int_equal(c.out.n, want);
        assert_memory_equal(c.out.at ? c.out.at : "", text, want);
        met += c.s.met;
        close_stops(&c);
    }
    assert_in_range(met, 1000, 3999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_spanning_pieces),
                                       cmocka_unit_test(test_a_false_start_is_let_through),
                                       cmocka_unit_test(test_one_a_prefix_of_another),
                                       cmocka_unit_test(test_the_longest_of_those_complete_at_once),
                                       cmocka_unit_test(test_newline_and_characters_of_several_bytes),
                                       cmocka_unit_test(test_none),
                                       cmocka_unit_test(test_an_empty_one_is_refused),
                                       cmocka_unit_test(test_any_text_cut_anywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
