/* Data files: what is read, and that a file of anybody's ends in one line: endless, huge, nested, no Lua, no table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config.h"
#include "data_file.h"
#include "presets.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(struct data_file *d, const char *text, struct q_err *e) { return data_file_run(d, text, strlen(text), "file", e); }

static void fields_are_read(void **state)
{
    struct data_file d;
    assert_int_equal(run(&d, "-- a comment\nlocal n = 2\nreturn { key = 'a' .. 'b', n = n * 21, [7] = true, list = { 1, 2 } }", NULL), Q_OK);
    assert_string_equal(data_file_text(&d, "key"), "ab");
    assert_null(data_file_text(&d, "n"));
    assert_null(data_file_text(&d, "none"));
    assert_int_equal(data_file_field(&d, 1, "n"), LUA_TNUMBER);
    assert_int_equal(lua_tointeger(d.L, -1), 42);
    assert_int_equal(data_file_field(&d, 1, "list"), LUA_TTABLE);
    assert_int_equal(data_file_field(&d, 1, "7"), LUA_TNIL);
    data_file_close(&d);
    data_file_close(&d);
}

static void nothing_hostile_runs(void **state)
{
    static const struct { const char *text, *part; } rows[] = {
        { "", "one table" }, { "return nil", "one table" }, { "return 'x'", "one table" }, { "return {", "line:1: " }, { "\n\nreturn )", "line:3: " },
        { "while true do end", "too long" }, { "local function f() return f() end return f()", "too long" },
        { "local function f() return 1 + f() end return f()", "" }, { "local t = {} while true do t[#t + 1] = {} end", "" },
        { "local s = 'x' while true do s = s .. s end", "memory" }, { "return os.exit()", "line:1: " }, { "return require 'x'", "line:1: " },
        { "return load 'x'", "line:1: " }, { "return setmetatable({}, {})", "line:1: " }, { "return ('x'):rep(1 << 40)", "line:1: " },
        { "error {}", "line:1: " }, { "\x1bLuaS", "" }, { "return {} + 1", "line:1: " }, { "goto nowhere", "nowhere" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct data_file d;
        struct q_err e = { 0 };
        assert_int_equal(run(&d, rows[i].text, &e), Q_EINPUT);
        assert_null(d.L);
        if (strncmp(e.text, "file: ", 6) || !strstr(e.text, rows[i].part) || strchr(e.text, '\n')) fail_msg("%s: %s", rows[i].text, e.text);
    }
}

/* Texts one to four bytes away from a good one: they run or are refused. */
static void damaged_texts_end_well(void **state)
{
    const struct q_preset *p = &q_presets[0];
    char *text = malloc(*p->size);
    unsigned seed = 1;
    for (int i = 0; i < 3000; i++) {
        struct data_file d;
        memcpy(text, p->text, *p->size);
        for (int j = 0; j <= i % 4; j++) {
            seed = seed * 1664525 + 1013904223;
            text[seed % *p->size] = (char)(seed >> 24);
        }
        if (!data_file_run(&d, text, *p->size, "file", NULL)) data_file_close(&d);
    }
    free(text);
}

static void paths_and_names(void **state)
{
    char stem[16];
    assert_false(data_file_is_path("t4"));
    assert_false(data_file_is_path("qwen3.5-9b"));
    assert_true(data_file_is_path("t4.lua"));
    assert_true(data_file_is_path("./t4"));
    assert_int_equal(data_file_stem(stem, sizeof stem, "a/b.c/qwen3.5-9b.lua", NULL), Q_OK);
    assert_string_equal(stem, "qwen3.5-9b");
    assert_int_equal(data_file_stem(stem, sizeof stem, "t4", NULL), Q_OK);
    static const char *const bad[] = { "", "a/", "a/.lua/", "a b.lua", "a\n.lua", "0123456789012345", "x/\xc3\xa9.lua" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(data_file_stem(stem, sizeof stem, bad[i], NULL), Q_EINPUT);
    struct data_file d;
    assert_int_equal(data_file_open(&d, "/nonexistent/x.lua", NULL), Q_EMISS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read), cmocka_unit_test(nothing_hostile_runs), cmocka_unit_test(damaged_texts_end_well),
        cmocka_unit_test(paths_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
