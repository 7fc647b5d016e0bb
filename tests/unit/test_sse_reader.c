/* Events are the same however their bytes are cut. */
#include "sse_reader.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct seen {
    char text[256];
    int stop_at, n;
};

static int on_event(void *arg, const char *data, size_t n)
{
    struct seen *s = arg;
    size_t at = strlen(s->text);
    assert_int_equal(n, strlen(data));
    snprintf(s->text + at, sizeof s->text - at, "[%s]", data);
    return ++s->n == s->stop_at ? 7 : 0;
}

static const char stream[] = "data: a\n\n: a comment\n\ndata:b\r\ndata:  c\r\n\r\nevent: x\nid: 3\ndata: {\"d\":1}\n\ndata\n\ndata: \r\rdata: [DONE]\n\ndata: cut";
static const char expected[] = "[a][b\n c][{\"d\":1}][][[DONE]]";

static void test_every_cut(void **state)
{
    (void)state;
    size_t n = sizeof stream - 1;
    for (size_t i = 0; i <= n; i++)
        for (size_t k = i; k <= n; k += 3) {
            struct sse_reader r = {0};
            struct seen s = {0};
            assert_int_equal(sse_push(&r, stream, i, on_event, &s), 0);
            assert_int_equal(sse_push(&r, stream + i, k - i, on_event, &s), 0);
            assert_int_equal(sse_push(&r, stream + k, n - k, on_event, &s), 0);
            assert_string_equal(s.text, expected);
            sse_free(&r);
        }
}

static void test_stops(void **state)
{
    (void)state;
    struct sse_reader r = {0};
    struct seen s = {.stop_at = 2};
    assert_int_equal(sse_push(&r, stream, sizeof stream - 1, on_event, &s), 7);
    assert_string_equal(s.text, "[a][b\n c]");
    sse_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_cut), cmocka_unit_test(test_stops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
