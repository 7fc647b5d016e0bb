/* json_check: what is JSON and what is not, by a table; the error names the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "err.h"
#include "json_check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check(const char *text, size_t n, struct q_err *e)
{
    /* An exact heap copy, so that a read past the end is seen. */
    char *copy = malloc(n ? n : 1);
    memcpy(copy, text, n);
    int err = json_check(copy, n, 4, "body", e);
    free(copy);
    return err;
}

static void accepts(void **state)
{
    static const char *const good[] = {
        "0", "-0", "-0.0", "10", "1e5", "1E+5", "1.25e-300", "123456789012345678901234567890", "true", "false", "null", " null\r\n\t", "\"\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", "\"\\ud83d\\ude42\"", "\"\xed\x95\x9c\xf0\x9f\x99\x82\"", "\"\\uFFFF\"", "[]", "[[[[]]]]", "[1,2 , 3]",
        "{}", "{\"a\":1,\"b\":{\"a\":1}}", "[{\"a\":1},{\"a\":2}]", "{\"\":1}", "\"\x7f\"", "1e-999"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct q_err e = {0};
        if (check(good[i], strlen(good[i]), &e)) fail_msg("%s: %s", good[i], e.text);
    }
}

static void refuses(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "byte 0: expected a value, found the end"},
        {"nul", "byte 0: expected a value"},
        {"01", "byte 1: expected the end, found '1'"},
        {"1.", "byte 2: expected a digit"},
        {".5", "expected a value, found '.'"},
        {"+1", "expected a value"},
        {"1e", "expected a digit"},
        {"1e999", "byte 0: expected a number within the range of a double"},
        {"-", "expected a value"},
        {"NaN", "expected a value"},
        {"[1,]", "byte 3: expected a value, found ']'"},
        {"[1 2]", "expected ',' or ']', found '2'"},
        {"[1", "expected ',' or ']', found the end"},
        {"{\"a\":1,}", "expected a string"},
        {"{\"a\" 1}", "expected ':'"},
        {"{a:1}", "expected a string, found 'a'"},
        {"{\"a\":1", "expected ',' or '}'"},
        {"{\"a\":1}}", "byte 7: expected the end"},
        {"1 2", "expected the end"},
        {"\"abc", "found the end"},
        {"\"a\nb\"", "no control character in a string, found byte 0x0a"},
        {"\"\\x\"", "expected an escape, found 'x'"},
        {"\"\\u12\"", "4 hex digits"},
        {"\"\\u0000\"", "other than \\u0000"},
        {"\"\\ud83d\"", "second half of a surrogate pair"},
        {"\"\\ud83dx\\ude42\"", "second half"},
        {"\"\\ude42\"", "first half of a surrogate pair"},
        {"\"\xff\"", "valid UTF-8, found byte 0xff"},
        {"\"\xc0\xaf\"", "valid UTF-8"},
        {"\"\xed\xa0\x80\"", "valid UTF-8"},
        {"\"\xf4\x90\x80\x80\"", "valid UTF-8"},
        {"\"\xe2\x82\"", "valid UTF-8"},
        {"[[[[[]]]]]", "byte 4: nested deeper than 4"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "key \"a\" stands there twice"},
        {"{\"a\":1,\"\\u0061\":2}", "key \"a\" stands there twice"},
        {"[{\"k\":{\"x\":1,\"y\":{},\"x\":2}}]", "key \"x\" stands there twice"},
        {"{\"\":1,\"\":2}", "stands there twice"},
        {"\xef\xbb\xbf{}", "expected a value, found byte 0xef"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct q_err e = {0};
        assert_int_equal(check(bad[i].text, strlen(bad[i].text), &e), Q_EINPUT);
        if (!strstr(e.text, bad[i].says)) fail_msg("%s: \"%s\" does not say \"%s\"", bad[i].text, e.text, bad[i].says);
        assert_int_equal(strncmp(e.text, "body: ", 6), 0);
    }
}

static void refuses_raw_nul(void **state)
{
    struct q_err e;
    assert_int_equal(check("\"a\0b\"", 5, &e), Q_EINPUT);
    assert_int_equal(check("1\0", 2, &e), Q_EINPUT);
}

/* Every cut of a text that is whole only at its end is refused. */
static void refuses_every_prefix(void **state)
{
    static const char text[] = "{\"a\\u00e9\":[1.5e3,true,null,\"\xed\x95\x9c\\ud83d\\ude42\"],\"b\":{}}";
    struct q_err e;
    for (size_t n = 0; n < sizeof text - 1; n++) assert_int_equal(check(text, n, &e), Q_EINPUT);
    assert_int_equal(check(text, sizeof text - 1, &e), 0);
}

/* Many keys of one object: sorted once, so this is quick; and the one repeated is found. */
static void finds_one_of_many(void **state)
{
    size_t n = 200000, at = 1;
    char *text = malloc(n * 16 + 64);
    text[0] = '{';
    for (size_t i = 0; i < n; i++) at += (size_t)sprintf(text + at, "\"k%zu\":0,", i);
    at += (size_t)sprintf(text + at, "\"k77\":0}");
    struct q_err e;
    assert_int_equal(json_check(text, at, 4, "body", &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "\"k77\""));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(accepts), cmocka_unit_test(refuses), cmocka_unit_test(refuses_raw_nul),
                                       cmocka_unit_test(refuses_every_prefix), cmocka_unit_test(finds_one_of_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
