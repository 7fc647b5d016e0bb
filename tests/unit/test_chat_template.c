#define _GNU_SOURCE /* memmem */
/* Chat templates: bounds, errors, the guard, how messages are normalised. What text comes out of which template is
 * compared with jinja2 in tests/py/test_chat_template.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "chat_template.h"
#include "err.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHOW "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}"

static struct chat_template *open_ok(const char *jinja)
{
    struct chat_template *t;
    struct q_err e = {0};
    if (chat_template_open(&t, jinja, strlen(jinja), "T", &e)) fail_msg("%s: %s", jinja, e.text);
    return t;
}

static void open_says(const char *jinja, const char *line)
{
    struct chat_template *t;
    struct q_err e = {0};
    assert_int_not_equal(chat_template_open(&t, jinja, strlen(jinja), "T", &e), 0);
    assert_null(t);
    assert_string_equal(e.text, line);
}

/* Renders once; the text or, behind "!", the error. Freed by the next call. */
static const char *rendered(const char *jinja, const char *messages, const char *options)
{
    static char out[4096];
    struct chat_template *t = open_ok(jinja);
    struct chat_request r = {.messages = messages, .options = options};
    struct q_err e = {0};
    char *text;
    size_t n;
    int err = chat_template_render(t, &r, &text, &n, &e);
    if (!err) assert_int_equal(strlen(text), n);
    snprintf(out, sizeof out, "%s%s", err ? "!" : "", err ? e.text : text);
    free(text);
    chat_template_close(t);
    return out;
}

#define USER "[{\"role\":\"user\",\"content\":\"hi\"}]"

static void compile_errors_name_the_line(void **state)
{
    open_says("a\n\n{% if x %}", "T, line 3: {% if %} is not closed");
    open_says("a\n{{ x ", "T, line 2: a tag is not closed: expected '}}'");
    open_says("\n{{ x y }}", "T, line 2: expected print_end, found 'y'");
    open_says("{% include 'x' %}", "T, line 1: {% include %} is not supported here");
    open_says("\n{% call f() %}{% endcall %}", "T, line 2: {% call %} is not supported here");
    open_says("{% for x in y recursive %}{% endfor %}", "T, line 1: a recursive loop is not supported");
    open_says("{% break %}", "T, line 1: {% break %} outside a loop");
    open_says("{{ f(*x) }}", "T, line 1: '*' arguments are not supported");
    open_says("{{ 'a }}", "T, line 1: a string is not closed");
    open_says("{# x", "T, line 1: a comment is not closed: expected '#}'");
    open_says("{{ (1 }}", "T, line 1: unexpected '}'");
    open_says("\xff", "T: expected UTF-8 text");
    open_says("{{ 99999999999999999999 }}", "T, line 1: number is too large");
}

static void own_errors_reach_the_caller(void **state)
{
    assert_string_equal(rendered("{{ raise_exception('No ' ~ messages[0].role) }}", USER, NULL), "!T: No user");
    assert_string_equal(rendered("\n{{ nothing.at.all }}", USER, NULL), "!T, line 2: 'nothing' is undefined");
    assert_string_equal(rendered("\n\n{{ messages[0].x.y }}", USER, NULL), "!T, line 3: 'dict object' has no attribute 'x'");
    assert_string_equal(rendered("{{ 1|nofilter }}", USER, NULL), "!T, line 1: there is no filter named 'nofilter'");
    assert_string_equal(rendered("{{ 9223372036854775807 + 1 }}", USER, NULL), "!T, line 1: integer is too large");
}

static void numbers_print_as_written(void **state)
{
    const char *options = "{\"a\":1.10,\"b\":123456789012345678901234567890,\"c\":1e2,\"d\":{\"x\":0.30000000000000001}}";
    assert_string_equal(rendered("{{ a }} {{ b }} {{ c }} {{ d|tojson }} {{ c + 1 }}", USER, options),
                        "1.10 123456789012345678901234567890 1e2 {\"x\": 0.30000000000000001} 101.0");
}

static void bad_requests_are_named(void **state)
{
    static const struct {
        const char *messages, *says;
    } cases[] = {
        {"[]", "!messages: expected at least one message, found none"},
        {"{}", "!messages: expected a list, found dict"},
        {"[1]", "!messages[0]: expected an object, found int"},
        {"[{\"content\":\"x\"}]", "!messages[0].role: expected a string, found none"},
        {"[{\"role\":\"user\",\"content\":5}]", "!messages[0].content: expected a string or a list of parts, found int"},
        {"[{\"role\":\"user\",\"content\":[5]}]", "!messages[0].content[0]: expected a content part, found int"},
        {"[{\"role\":\"user\"},{\"role\":\"system\",\"content\":[{\"type\":\"image\"}]}]", "!messages[1].content[0]: a system message may only hold text"},
        {"[{\"role\":\"user\"},{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":[1]}}]}]",
         "!messages[1].tool_calls[0].function.arguments: expected an object or its JSON text, found list"},
        {"[{\"role\":\"user\"}", "!messages: JSON at byte 16: expected ',' or ']', found the end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_string_equal(rendered(SHOW, cases[i].messages, NULL), cases[i].says);
}

static void arguments_become_a_mapping(void **state)
{
    static const char *const forms[] = {"\"{\\\"a\\\": 1.50, \\\"b\\\": \\\"x\\\"}\"", "{\"a\":1.50,\"b\":\"x\"}"};
    static const char *const empty[] = {"\"\"", "\"{}\"", "\"null\"", "null", "{}", "\" \""};
    const char *jinja = "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments is mapping }}{% for k, v in "
                        "c.function.arguments.items() %} {{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}";
    char messages[512];
    const char *call = "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":%s}}]}]";
    for (size_t i = 0; i < 2; i++) {
        snprintf(messages, sizeof messages, call, forms[i]);
        assert_string_equal(rendered(jinja, messages, NULL), "True a=1.50 b=x");
    }
    for (size_t i = 0; i < 6; i++) {
        snprintf(messages, sizeof messages, call, empty[i]);
        assert_string_equal(rendered(jinja, messages, NULL), "True");
    }
}

/* A call that was cut short stays in sight, and the conversation goes on. */
static void arguments_that_are_no_object_are_text(void **state)
{
    const char *jinja = SHOW "{% for c in messages[0].tool_calls %}{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}";
    assert_string_equal(rendered(jinja, "[{\"role\":\"assistant\",\"content\":\"Yes.\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"path\\\":\"}},"
                                        "{\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}},{\"function\":{\"name\":\"h\",\"arguments\":\"[1]\"}}]}]", NULL),
                        "assistant=Yes.\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"path\":}\n</tool_call>\n"
                        "<tool_call>\n{\"name\": \"h\", \"arguments\": [1]}\n</tool_call>;g{}");
    assert_string_equal(rendered(jinja, "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}]", NULL),
                        "assistant=<tool_call>\n{\"name\": \"f\", \"arguments\": {}\n</tool_call>;");
}

static void text_parts_are_one_string(void **state)
{
    const char *jinja = "{% for m in messages %}{{ m.content if m.content is string else m.content|length }};{% endfor %}";
    assert_string_equal(rendered(jinja, "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},\"b\",{\"type\":\"refusal\",\"refusal\":\"c\"}]},"
                                        "{\"role\":\"tool\",\"content\":[]},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\"}]}]", NULL),
                        "abc;;2;");
}

/* One template that keeps thinking when told to, one that never does, one that has no thinking. */
static void earlier_thinking_is_kept_on_demand(void **state)
{
#define TURNS(kept) "{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' and (" kept ") %}<think>\n{{ m.reasoning_content or '' }}\n</think>\n\n{% endif %}" \
                    "{{ m.content if m.reasoning_content is string else m.content.split('</think>')[-1].lstrip('\n') }};{% endfor %}"
    static const char *const templates[] = {TURNS("loop.last or preserve_thinking"), TURNS("loop.last")};
    const char *messages = "[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"A\"},{\"role\":\"assistant\","
                           "\"content\":\"b\",\"reasoning\":\"B\"},{\"role\":\"assistant\",\"content\":\"c\"},{\"role\":\"user\",\"content\":\"v\"},"
                           "{\"role\":\"assistant\",\"content\":\"d\",\"reasoning_content\":\"D\"}]";
    const char *kept = "user:u;assistant:<think>\nA\n</think>\n\na;assistant:<think>\nB\n</think>\n\nb;assistant:<think>\n\n</think>\n\nc;user:v;assistant:<think>\nD\n</think>\n\nd;";
    const char *dropped = "user:u;assistant:a;assistant:b;assistant:c;user:v;assistant:<think>\nD\n</think>\n\nd;";
    for (int i = 0; i < 2; i++) {
        assert_string_equal(rendered(templates[i], messages, "{\"preserve_thinking\":true}"), kept);
        assert_string_equal(rendered(templates[i], messages, "{\"preserve_thinking\":false}"), dropped);
        assert_string_equal(rendered(templates[i], messages, NULL), dropped);
    }
    assert_string_equal(rendered(templates[1], "[{\"role\":\"user\"},{\"role\":\"assistant\",\"content\":\"<think>\\nA\\n</think>\\n\\na\"},{\"role\":\"user\"}]",
                                 "{\"preserve_thinking\":true}"), "user:;assistant:<think>\nA\n</think>\n\na;user:;");
}

static void an_effort_gives_way_to_the_nearest_word(void **state)
{
    const char *jinja = "{% if reasoning_effort|default('low') not in ['low', 'medium', 'xhigh'] %}{{ raise_exception('No ' ~ reasoning_effort) }}{% endif %}{{ reasoning_effort }}";
    static const char *const cases[][2] = {{"low", "low"}, {"high", "xhigh"}, {"max", "xhigh"}, {"medium", "medium"}, {"minimal", "low"}, {"none", "low"}, {"odd", "!T: No odd"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char options[64];
        snprintf(options, sizeof options, "{\"reasoning_effort\":\"%s\"}", cases[i][0]);
        assert_string_equal(rendered(jinja, USER, options), cases[i][1]);
    }
    assert_string_equal(rendered("{{ raise_exception('No ' ~ reasoning_effort) }}", USER, "{\"reasoning_effort\":\"high\"}"), "!T: No high");
}

static void bare_tools_get_their_function(void **state)
{
    struct chat_template *t = open_ok("{{ tools|tojson }}");
    struct chat_request r = {.messages = USER, .tools = "[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}},{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]"};
    char *text;
    size_t n;
    assert_int_equal(chat_template_render(t, &r, &text, &n, NULL), 0);
    assert_string_equal(text, "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}, {\"type\": \"function\", \"function\": {\"name\": \"g\"}}]");
    free(text);
    chat_template_close(t);
}

static void every_instruction_reaches_the_prompt(void **state)
{
    const char *messages = "[{\"role\":\"developer\",\"content\":\"A\"},{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"B\"}]},"
                           "{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"system\",\"content\":\"C\"},{\"role\":\"user\",\"content\":null}]";
    const char *kept = "system=A\n\nB;user=hi;system=C;user=;", *merged = "system=A\n\nB\n\nC;user=hi;user=;";
    assert_string_equal(rendered(SHOW, messages, NULL), kept);
    /* one that refuses a later system message, one that drops it, one that drops the first for it */
    assert_string_equal(rendered("{% set ns = namespace(s='') %}{% for m in messages if m.role == 'system' %}{% set ns.s = m.content %}{% endfor %}system={{ ns.s }};"
                                 "{% for m in messages if m.role != 'system' %}{{ m.role }}={{ m.content }};{% endfor %}", messages, NULL), merged);
    assert_string_equal(rendered("{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('no') }}{% endif %}{% endfor %}" SHOW,
                                 messages, NULL), merged);
    assert_string_equal(rendered("{% for m in messages if m.role != 'system' or loop is defined or m == messages[0] %}{{ m.role }}={{ m.content }};{% endfor %}",
                                 messages, NULL), merged);
    /* no leading one: the later one moves to the front */
    assert_string_equal(rendered("{% if messages[1:]|selectattr('role', 'eq', 'system')|list %}{{ raise_exception('no') }}{% endif %}" SHOW,
                                 "[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"developer\",\"content\":\"D\"}]", NULL), "system=D;user=hi;");
}

/* Breaks "<|" with a mark; says no to the word REFUSE. */
static int guard(void *ctx, const char *s, size_t n, char **out, size_t *out_n, struct q_err *e)
{
    ++*(int *)ctx;
    if (n == 6 && memcmp(s, "REFUSE", 6) == 0) return q_fail(e, Q_EINPUT, "guard: refused");
    const char *at = memmem(s, n, "<|", 2);
    if (!at) return 0;
    char *to = malloc(n + 1);
    size_t head = (size_t)(at - s) + 1;
    memcpy(to, s, head);
    to[head] = '^';
    memcpy(to + head + 1, s + head, n - head);
    *out = to, *out_n = n + 1;
    return 0;
}

static void the_guard_sees_every_string(void **state)
{
    int calls = 0;
    struct chat_text_guard g = {guard, &calls};
    struct chat_template *t = open_ok("{% for m in messages %}{{ m.content }}{{ m.tool_calls|tojson }}{% endfor %}{{ tools|tojson }}{{ o }}");
    struct chat_request r = {.messages = "[{\"role\":\"user\",\"content\":\"<|a\",\"tool_calls\":[{\"function\":{\"name\":\"<|b\",\"arguments\":"
                                         "\"{\\\"\\\\u003c|c\\\":\\\"\\\\u003c|d\\\"}\"}}]}]",
                             .tools = "[{\"<|e\":\"<|f\"}]", .options = "{\"o\":\"<|g\"}", .guard = &g};
    struct q_err e = {0};
    char *text;
    size_t n;
    assert_int_equal(chat_template_render(t, &r, &text, &n, &e), 0);
    assert_string_equal(text, "<^|a[{\"function\": {\"name\": \"<^|b\", \"arguments\": {\"<^|c\": \"<^|d\"}}}][{\"<^|e\": \"<^|f\"}]<^|g");
    free(text);
    assert_true(calls > 10);
    r.options = "{\"o\":\"REFUSE\"}";
    assert_int_equal(chat_template_render(t, &r, &text, &n, &e), Q_EINPUT);
    assert_string_equal(e.text, "guard: refused");
    assert_null(text);
    chat_template_close(t);
}

/* What never ends, or grows without end, stops with one line, and the template goes on working. */
static void bounds_hold(void **state)
{
    static const struct {
        const char *jinja, *says;
    } cases[] = {
        {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "the template does not come to an end"},
        {"{% set ns = namespace(s='xxxxxxxx') %}{% for a in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", "rendering needs more than 32 MiB"},
        {"{{ 'x' * 99999999 }}", "rendering needs more than 32 MiB"},
        {"{{ 'x' * 9999999999 }}", "a text of more than 2 GiB"},
        {"{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", "macro 'm' calls itself deeper than 100 times"},
        {"{% set ns = namespace(v=[]) %}{% for a in range(99999) %}{% set ns.v = [ns.v] %}{% endfor %}{% for a in range(99999) %}{% set ns.v = [ns.v] %}{% endfor %}{{ ns.v }}",
         "T"},
        {"{% set ns = namespace(v=[1]) %}{% for a in range(60) %}{% set ns.v = [ns.v, ns.v] %}{% endfor %}{{ ns.v }}", "T"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char jinja[512];
        snprintf(jinja, sizeof jinja, "{%% if go %%}%s{%% endif %%}ok", cases[i].jinja);
        struct chat_template *t = open_ok(jinja);
        chat_template_limits(t, 32 << 20, 20 * 1000 * 1000);
        struct chat_request r = {.messages = USER, .options = "{\"go\":true}"};
        struct q_err e = {0};
        char *text;
        size_t n;
        int err = chat_template_render(t, &r, &text, &n, &e);
        if (err != Q_ELIMIT && err != Q_EINPUT) fail_msg("%s: %d %s", jinja, err, err ? e.text : text);
        if (!strstr(e.text, cases[i].says)) fail_msg("\"%s\" does not say \"%s\"", e.text, cases[i].says);
        r.options = NULL;
        assert_int_equal(chat_template_render(t, &r, &text, &n, &e), 0);
        assert_string_equal(text, "ok");
        free(text);
        chat_template_close(t);
    }
}

static char *repeated(const char *head, const char *unit, int count, const char *tail)
{
    char *s = malloc(strlen(head) + strlen(unit) * (size_t)count + strlen(tail) + 1), *p = stpcpy(s, head);
    while (count--) p = stpcpy(p, unit);
    strcpy(p, tail);
    return s;
}

static void deep_and_long_sources(void **state)
{
    char *round = repeated("1", ")", 5000, " }}"), *square = repeated("1", "]", 5000, " }}");
    char *deep[] = {repeated("{{ ", "(", 5000, round), repeated("{{ ", "not ", 5000, "x }}"), repeated("{{ ", "-", 5000, "1 }}"),
                    repeated("", "{% if x %}", 5000, ""), repeated("{{ ", "[", 5000, square), repeated("{{ x", "[-", 5000, square)};
    free(round), free(square);
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        struct chat_template *t;
        struct q_err e = {0};
        assert_int_equal(chat_template_open(&t, deep[i], strlen(deep[i]), "T", &e), Q_EINPUT);
        assert_string_equal(e.text, "T, line 1: nested deeper than 200");
        free(deep[i]);
    }
    char *wide[] = {repeated("{{ 0", " + 1", 20000, " }}"), repeated("{{ 0", " ~ 1", 20000, " }}"), repeated("", "{% set a = 1 %}", 15000, ""),
                    repeated("{{ ''", "|trim", 20000, " }}"), repeated("{% if 0 %}", "{% elif 0 %}", 15000, "{% endif %}"), repeated("{{ [", "1,", 60000, "]|length }}")};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        struct chat_template *t = open_ok(wide[i]);
        chat_template_close(t);
        free(wide[i]);
    }
    char *big = repeated("", "x", CHAT_TEMPLATE_MAX + 1, "");
    struct chat_template *t;
    struct q_err e = {0};
    assert_int_equal(chat_template_open(&t, big, strlen(big), "T", &e), Q_ELIMIT);
    free(big);
}

/* Renders under every memory bound from nothing up to enough: each ends in the line or in the text. */
static void any_memory_bound(void **state)
{
    struct chat_template *t = open_ok("{% for m in messages %}{{ m.content|upper }}{{ m|tojson }}{% endfor %}");
    struct chat_request r = {.messages = USER, .options = "{\"reasoning_effort\":\"high\"}"};
    int limited = 0, done = 0;
    for (size_t memory = 100 << 10; memory < 2 << 20 && !done; memory += 1 << 10) {
        chat_template_limits(t, memory, 1000 * 1000);
        struct q_err e = {0};
        char *text;
        size_t n;
        int err = chat_template_render(t, &r, &text, &n, &e);
        assert_true(err == 0 || err == Q_ELIMIT);
        limited += err != 0, done += err == 0;
        free(text);
    }
    assert_true(limited > 0 && done > 0);
    chat_template_close(t);
}

static void two_templates_live_apart(void **state)
{
    struct chat_template *a = open_ok("{% set x = 1 %}{{ x }}{{ y is defined }}"), *b = open_ok("{{ x is defined }}");
    struct chat_request r = {.messages = USER};
    char *text;
    size_t n;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(chat_template_render(a, &r, &text, &n, NULL), 0);
        assert_string_equal(text, "1False");
        free(text);
        assert_int_equal(chat_template_render(b, &r, &text, &n, NULL), 0);
        assert_string_equal(text, "False");
        free(text);
    }
    chat_template_close(a), chat_template_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compile_errors_name_the_line), cmocka_unit_test(own_errors_reach_the_caller), cmocka_unit_test(numbers_print_as_written),
        cmocka_unit_test(bad_requests_are_named), cmocka_unit_test(arguments_become_a_mapping),
        cmocka_unit_test(arguments_that_are_no_object_are_text), cmocka_unit_test(text_parts_are_one_string), cmocka_unit_test(earlier_thinking_is_kept_on_demand),
        cmocka_unit_test(an_effort_gives_way_to_the_nearest_word), cmocka_unit_test(bare_tools_get_their_function), cmocka_unit_test(every_instruction_reaches_the_prompt),
        cmocka_unit_test(the_guard_sees_every_string), cmocka_unit_test(bounds_hold), cmocka_unit_test(deep_and_long_sources),
        cmocka_unit_test(any_memory_bound), cmocka_unit_test(two_templates_live_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
