/* Tool calls in answers: each answer whole, cut at every place, at every two places, and byte by byte, through the split into thinking and
 * content as the server does it.
 *
 * What comes out is written as one text: "§t TEXT" thinking, "§c TEXT" content, "§NAME ARGUMENTS" a complete call, "§NAME... ARGUMENTS"
 * one that is incomplete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "json_check.h"
#include "reply.h"
#include "text.h"
#include "tool_calls.h"
#include <cjson/cJSON.h>
#include <stdio.h>

static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"save\",\"parameters\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
    "\"body\":{\"type\":\"string\"},\"n\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}},\"required\":[\"path\",\"body\"]}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"now\"}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"typed\",\"parameters\":{\"type\":\"object\",\"$defs\":{\"size\":{\"type\":\"object\"},\"loop\":"
    "{\"$ref\":\"#/$defs/loop\"}},\"properties\":{\"s\":{\"type\":\"string\"},\"i\":{\"type\":\"integer\"},\"x\":{\"type\":\"number\"},"
    "\"b\":{\"type\":\"boolean\"},\"a\":{\"type\":\"array\",\"items\":{}},\"o\":{\"$ref\":\"#/$defs/size\"},\"any\":{},\"sn\":{\"type\":[\"string\",\"null\"]},"
    "\"si\":{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]},\"e\":{\"enum\":[\"5\",\"6\"]},\"m\":{\"enum\":[5,\"auto\"]},"
    "\"sa\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\"}]},\"nb\":{\"type\":\"boolean\",\"nullable\":true},\"all\":{\"allOf\":[{\"type\":"
    "[\"string\",\"integer\"]},{\"type\":[\"integer\",\"null\"]}]},\"loop\":{\"$ref\":\"#/$defs/loop\"}},\"additionalProperties\":{\"type\":\"integer\"}}}}]";

#define CALL(name, args) "<tool_call>\n<function=" name ">\n" args "</function>\n</tool_call>"
#define ARG(key, value) "<parameter=" key ">\n" value "\n</parameter>\n"
#define SAVE(body) CALL("save", ARG("path", "a") ARG("body", body))
#define SAVED(body) "§save {\"path\":\"a\",\"body\":\"" body "\"}"
#define END "</parameter>\n</function>\n</tool_call>"

static const struct sample {
    int thinking, cut;
    const char *text, *want;
} samples[] = {
    /* as templates write it */
    {0, 0, SAVE("b"), SAVED("b")},
    {0, 0, "I save it.\n\n" SAVE("b"), "§c I save it." SAVED("b")},
    {0, 0, SAVE("b") "\n", SAVED("b")},
    {0, 0, SAVE("b") "\n" SAVE("c") "\n" CALL("now", ""), SAVED("b") SAVED("c") "§now {}"},
    {0, 0, SAVE("line 1\n\n  line 2\n\ttab \"q\" \\ end\n"), SAVED("line 1\\n\\n  line 2\\n\\ttab \\\"q\\\" \\\\ end\\n")},
    {0, 0, SAVE("생각 🙂"), SAVED("생각 🙂")},
    {0, 0, SAVE(""), SAVED("")},
    {0, 0, SAVE("\n"), SAVED("\\n")},
    {0, 0, CALL("now", ""), "§now {}"},
    {0, 0, "No call.", "§c No call."},
    {0, 0, "", ""},
    {1, 0, "I think.\n</think>\n\n" SAVE("b"), "§t I think." SAVED("b")},
    {1, 0, "I think.\n</think>\n\nNow.\n\n" SAVE("b"), "§t I think.§c Now." SAVED("b")},
    /* text behind calls, between them */
    {0, 0, SAVE("b") "\n\nDone.\n", SAVED("b") "§c Done.\n"},
    {0, 0, SAVE("b") "\nand\n" SAVE("c"), SAVED("b") "§c and" SAVED("c")},
    {0, 0, "a < b\n\n" SAVE("b") "\n\n<b>Done</b>", "§c a < b" SAVED("b") "§c <b>Done</b>"},
    /* closing tags inside values */
    {0, 0, SAVE("Close it with </parameter> and </tool_call>."), SAVED("Close it with </parameter> and </tool_call>.")},
    {0, 0, SAVE("a\n</parameter>\nb"), SAVED("a\\n</parameter>\\nb")},
    {0, 0, SAVE("a\n</function>\n</tool_call>\nb"), SAVED("a\\n</function>\\n</tool_call>\\nb")},
    {0, 0, SAVE("a\n</tool_call>"), SAVED("a\\n</tool_call>")},
    {0, 0, SAVE("a\n" END "\nb"), SAVED("a\\n</parameter>\\n</function>\\n</tool_call>\\nb")},
    {0, 0, SAVE("a\n" END "\nb\n" END "\nc"),
     SAVED("a\\n</parameter>\\n</function>\\n</tool_call>\\nb\\n</parameter>\\n</function>\\n</tool_call>\\nc")},
    {0, 0, SAVE("a\n</parameter>\n<parameter=path>\nb"), SAVED("a\\n</parameter>\\n<parameter=path>\\nb")},
    {0, 0, SAVE("a</parameter><parameter=zzz>b"), SAVED("a</parameter><parameter=zzz>b")},
    {0, 0, SAVE("The end is </parameter>"), SAVED("The end is </parameter>")},
    {0, 0, SAVE("Like this:\n" SAVE("x") "\nSee?"),
     SAVED("Like this:\\n<tool_call>\\n<function=save>\\n<parameter=path>\\na\\n</parameter>\\n<parameter=body>\\nx\\n</parameter>\\n</function>\\n</tool_call>\\nSee?")},
    {0, 0, SAVE("<tool_call>\n<function=save>\n<parameter=n>\n1\n" END) "\n" SAVE("c"),
     SAVED("<tool_call>\\n<function=save>\\n<parameter=n>\\n1\\n</parameter>\\n</function>\\n</tool_call>") SAVED("c")},
    {0, 0, SAVE("x\n" CALL("now", ARG("a", "1")) "\ny") "\n" SAVE("c"),
     SAVED("x\\n<tool_call>\\n<function=now>\\n<parameter=a>\\n1\\n</parameter>\\n</function>\\n</tool_call>\\ny") SAVED("c")},
    {0, 0, SAVE(CALL("now", ARG("a", "1")) "\n" CALL("now", ARG("a", "2"))),
     SAVED("<tool_call>\\n<function=now>\\n<parameter=a>\\n1\\n</parameter>\\n</function>\\n</tool_call>\\n"
           "<tool_call>\\n<function=now>\\n<parameter=a>\\n2\\n</parameter>\\n</function>\\n</tool_call>")},
    {0, 0, SAVE("Some write <function=NAME>, others <tool_call>."), SAVED("Some write <function=NAME>, others <tool_call>.")},
    {0, 0, SAVE("it begins <tool_call>\n<function=save>\n<parameter=n>\n1"), SAVED("it begins <tool_call>\\n<function=save>\\n<parameter=n>\\n1")},
    {0, 0, SAVE("</think> and <think>"), SAVED("</think> and <think>")},
    {0, 0, SAVE("if a < b: c << 1; d </ 2 <"), SAVED("if a < b: c << 1; d </ 2 <")},
    /* calls in thinking */
    {1, 0, "I should save it.\n" SAVE("b"), "§t I should save it." SAVED("b")},
    {1, 0, "I should save it.\n" SAVE("b") "\n</think>\n\n", "§t I should save it." SAVED("b")},
    {1, 0, "I should.\n" SAVE("b") "\n</think>\n\nDone.", "§t I should." SAVED("b") "§c Done."},
    {1, 0, "I should.\n" SAVE("b") "\n" SAVE("c"), "§t I should." SAVED("b") SAVED("c")},
    {1, 0, "Draft: " SAVE("b") "\n</think>\n\n" SAVE("c"), "§t Draft: " SAVE("b") SAVED("c")},
    {1, 0, "First.\n" CALL("now", "") "\n</think>\n\n" SAVE("c"), "§t First.§now {}" SAVED("c")},
    {0, 0, "<think>Some models write <function=NAME>, others <tool_call>. I need neither.</think>Done.",
     "§t Some models write <function=NAME>, others <tool_call>. I need neither.§c Done."},
    {1, 0, "It would be " SAVE("b") " but no.\n</think>\n\nDone.", "§t It would be " SAVE("b") " but no.§c Done."},
    {1, 0, "So " SAVE("b") "\n" CALL("zzz", ARG("a", "b")) "</think>Done.", "§t So " SAVE("b") "\n" CALL("zzz", ARG("a", "b")) "§c Done."},
    {1, 0, "I write <tool_call>\n<function=save>\n<parameter=path>\na\n</parameter>, no.</think>Done.",
     "§t I write <tool_call>\n<function=save>\n<parameter=path>\na\n</parameter>, no.§c Done."},
    {1, 0, "It would be " SAVE("b") " now.", "§t It would be " SAVE("b") " now." SAVED("b")},
    {1, 0, "It would be " SAVE("b") " or " SAVE("c") "\nnow.\n</think>\n\n", "§t It would be " SAVE("b") " or " SAVE("c") "\nnow." SAVED("c")},
    {1, 1, "It would be " SAVE("b") " now.", "§t It would be " SAVE("b") " now."},
    {1, 0, "It would be " SAVE("b") " and\n" CALL("now", ""), "§t It would be " SAVE("b") " and§now {}"},
    {1, 0, "No body: " CALL("save", ARG("path", "a")) "</think>Done.", "§t No body: " CALL("save", ARG("path", "a")) "§c Done."},
    {1, 0, "<tool_call>{\"name\":\"save\",\"arguments\":{\"path\":\"a\",\"body\":\"b\"}}</tool_call>", SAVED("b")},
    {1, 0, "<tool_call>{\"name\":\"save\",\"arguments\":{\"path\":\"a\"}}</tool_call>",
     "§t <tool_call>{\"name\":\"save\",\"arguments\":{\"path\":\"a\"}}</tool_call>"},
    /* cut short */
    {1, 1, "primes go on", "§t primes go on"},
    {1, 1, "I do it.\n<tool_call>\n<function=save>\n<parameter=path>\na", "§t I do it.\n<tool_call>\n<function=save>\n<parameter=path>\na"},
    {0, 1, "Yes.\n\n<tool_call>\n<function=sa", "§c Yes.\n\n<tool_call>\n<function=sa"},
    {0, 1, "<tool_call>\n<function=save>\n<parameter=pa", "§c <tool_call>\n<function=save>\n<parameter=pa"},
    {0, 1, "<tool_call>\n<function=save>\n<parameter=path>\nab", "§save... {\"path\":\"ab"},
    {0, 1, "<tool_call>\n<function=save>\n<parameter=path>\nab\n</para", "§save... {\"path\":\"ab"},
    {0, 1, "<tool_call>\n<function=save>\n<parameter=path>\na\n</parameter>\n", "§save... {\"path\":\"a"},
    {0, 1, "<tool_call>\n<function=save>\n<parameter=path>\na\n</parameter>\n<parameter=n>\n12", "§save... {\"path\":\"a\",\"n\":"},
    {0, 1, "<tool_call>\n<function=save>\n<parameter=path>\na\n</parameter>\n</function>", "§save... {\"path\":\"a"},
    {0, 0, "<tool_call>\n<function=save>\n<parameter=path>\na\n</parameter>\n</function>", "§save {\"path\":\"a\"}"},
    {0, 0, "<tool_call>\n<function=save>\n<parameter=path>\na\n</parameter>\n", "§save... {\"path\":\"a"},
    {0, 1, "<tool_call>\n<function=save>\n<parameter=path>\na <function=b c", "§save... {\"path\":\"a <function=b c"},
    {0, 1, SAVE("b"), SAVED("b")},
    {0, 1, SAVE("b") "\n<tool_call>\n<function=save>\n<parameter=path>\nc", SAVED("b") "§save... {\"path\":\"c"},
    {0, 1, "<tool_call>{\"name\":\"save\",\"arguments\":{\"path\":\"a\"", "§c <tool_call>{\"name\":\"save\",\"arguments\":{\"path\":\"a\""},
    /* faults of form that are tolerated */
    {0, 0, SAVE("b\n</parameter>"), SAVED("b")},
    {0, 0, CALL("save", ARG("path", "a")), "§save {\"path\":\"a\"}"},
    {0, 0, "<function=save>\n" ARG("path", "a") "</function>\n</tool_call>", "§save {\"path\":\"a\"}"},
    {0, 0, "<function=save>\n" ARG("path", "a") "</function>\n", "§save {\"path\":\"a\"}"},
    {0, 0, SAVE("b") "\n</tool_call>", SAVED("b")},
    {0, 0, "<tool_call>\n<function=save>\n" ARG("path", "a") "</tool_call>", "§save {\"path\":\"a\"}"},
    {0, 0, "<tool_call>\n<function=save>\n<parameter=path>\na\n</function>\n</tool_call>", "§save {\"path\":\"a\"}"},
    {0, 0, "<tool_call><function=save><parameter=path>a</parameter><parameter=body>b</parameter></function></tool_call>", SAVED("b")},
    {0, 0, "<tool_call>\n<function=save>\n" ARG("path", "a") "</function>\nSaved.", "§save {\"path\":\"a\"}§c Saved."},
    {0, 0, CALL("save", ARG("path", "a") ARG("extra", "1") ARG("body", "b")), "§save {\"path\":\"a\",\"extra\":\"1\",\"body\":\"b\"}"},
    /* what is no call is text */
    {0, 0, CALL("delete", ARG("path", "a")), "§c " CALL("delete", ARG("path", "a"))},
    {0, 0, CALL("Save", ARG("path", "a")) "\n" SAVE("b"), "§c " CALL("Save", ARG("path", "a")) SAVED("b")},
    {0, 0, "Use <tool_call> and <function=save> to call.", "§c Use <tool_call> and <function=save> to call."},
    {0, 0, "<tool_call>\n<function=save>\n</tool_call>", "§c <tool_call>\n<function=save>\n</tool_call>"},
    {0, 0, "<tool_call>\n<function=>\n</function>\n</tool_call>", "§c <tool_call>\n<function=>\n</function>\n</tool_call>"},
    {0, 0, "<tool_call>", "§c <tool_call>"},
    {0, 0, "<tool_call>\n\n", "§c <tool_call>\n\n"},
    {0, 0, "<<tool_call><tool_call>\n<function=now>\n</function>\n</tool_call></tool_call>", "§c <<tool_call>§now {}§c </tool_call>"},
    {0, 0, "  x  \n", "§c   x  \n"},
    /* the JSON form */
    {0, 0, "Yes.\n<tool_call>\n{\"name\": \"save\", \"arguments\": {\"path\": \"a\", \"n\": 1.50}}\n</tool_call>", "§c Yes.§save {\"path\": \"a\", \"n\": 1.50}"},
    {0, 0, "<tool_call>{\"arguments\":{\"body\":\"}</tool_call>{\\\"\"},\"name\":\"save\"}</tool_call>\n" SAVE("c"),
     "§save {\"body\":\"}</tool_call>{\\\"\"}" SAVED("c")},
    {0, 0, "<tool_call>{\"name\":\"save\",\"arguments\":\"{\\\"path\\\":\\\"a\\\"}\"}</tool_call>", "§save {\"path\":\"a\"}"},
    {0, 0, "<tool_call>{\"name\":\"now\"}</tool_call><tool_call>{\"name\":\"now\",\"parameters\":null}</tool_call>", "§now {}§now {}"},
    {0, 0, "<tool_call>{\"name\":\"now\",\"arguments\":{}}", "§now {}"},
    {0, 0, "<tool_call>{\"name\":\"delete\",\"arguments\":{}}</tool_call>", "§c <tool_call>{\"name\":\"delete\",\"arguments\":{}}</tool_call>"},
    {0, 0, "<tool_call>{\"name\":\"now\",\"arguments\":[1]}</tool_call>", "§c <tool_call>{\"name\":\"now\",\"arguments\":[1]}</tool_call>"},
    {0, 0, "<tool_call>{'name':'now'}</tool_call>", "§c <tool_call>{'name':'now'}</tool_call>"},
    {0, 0, "<tool_call>{\"name\":\"now\"</tool_call> " SAVE("b"), "§c <tool_call>{\"name\":\"now\"</tool_call>" SAVED("b")},
    {0, 0, "<tool_call>{\"name\":\"now\"} is how", "§c <tool_call>{\"name\":\"now\"} is how"},
    {0, 0, "<tool_call>{\"name\":[\"now\"],\"arguments\":{}}</tool_call>", "§c <tool_call>{\"name\":[\"now\"],\"arguments\":{}}</tool_call>"},
};

static struct q_tools *tools;

/* ---- what comes out, as one text ---- */

struct heard {
    struct tok_text all;
    struct tok_text arguments;   /* of the call that is open */
    int last;                    /* kind of the last event */
    size_t name_end;
    int n_calls;
};

static void say(struct heard *h, const char *s, size_t n) { assert_int_equal(q_text_add(&h->all, s, n, NULL), Q_OK); }

static int is_json(const struct tok_text *t)
{
    return t->n && !json_check(t->at, t->n, JSON_MAX_DEPTH, "", NULL);
}

static int hear(void *arg, const struct q_tool_event *ev, struct q_err *e)
{
    struct heard *h = arg;
    int in_call = h->last == Q_TOOL_BEGIN || h->last == Q_TOOL_ARGUMENTS;
    if (ev->kind == Q_TOOL_THINKING || ev->kind == Q_TOOL_CONTENT) {
        assert_false(in_call);
        assert_true(ev->n > 0);
        if (h->last != (int)ev->kind) say(h, ev->kind == Q_TOOL_CONTENT ? "§c " : "§t ", strlen("§c "));
        say(h, ev->text, ev->n);
    } else if (ev->kind == Q_TOOL_BEGIN) {
        assert_false(in_call);
        assert_int_equal(ev->call, h->n_calls++);
        say(h, "§", strlen("§"));
        say(h, ev->text, ev->n);
        h->arguments.n = 0;
    } else {
        assert_true(in_call);
        assert_int_equal(ev->call, h->n_calls - 1);
        q_text_add(&h->arguments, ev->text, ev->n, NULL);
    }
    if (ev->kind == Q_TOOL_END) {
        assert_int_equal(is_json(&h->arguments), ev->complete);
        say(h, "... ", ev->complete ? 0 : 3);
        say(h, " ", 1);
        say(h, h->arguments.at, h->arguments.n);
    }
    h->last = ev->kind;
    return Q_OK;
}

/* ---- the parser behind the split ---- */

struct reading {
    struct q_reply reply;
    struct q_reply_text split;
    struct q_tool_calls *calls;
    struct heard heard;
};

static void begin(struct reading *r, int thinking)
{
    *r = (struct reading){.heard.last = -1};
    q_reply_start(&r->reply, thinking);
    assert_int_equal(q_tool_calls_open(&r->calls, tools, hear, &r->heard, NULL), Q_OK);
}

static void pass_on(struct reading *r)
{
    assert_int_equal(q_tool_calls_push(r->calls, Q_PART_THINKING, r->split.thinking.at, r->split.thinking.n, NULL), Q_OK);
    assert_int_equal(q_tool_calls_push(r->calls, Q_PART_CONTENT, r->split.content.at, r->split.content.n, NULL), Q_OK);
    r->split.thinking.n = r->split.content.n = 0;
}

static void feed(struct reading *r, const char *s, size_t n)
{
    assert_int_equal(q_reply_push(&r->reply, s, n, &r->split, NULL), Q_OK);
    pass_on(r);
}

/* Ends it, and compares. */
static void finish(struct reading *r, const struct sample *s, const char *how, size_t a, size_t b)
{
    assert_int_equal(q_reply_end(&r->reply, &r->split, NULL), Q_OK);
    pass_on(r);
    assert_int_equal(q_tool_calls_end(r->calls, s->cut, NULL), Q_OK);
    const struct tok_text *got = &r->heard.all;
    if (got->n != strlen(s->want) || (got->n && memcmp(got->at, s->want, got->n)))
        fail_msg("%s %zu %zu, of\n%s\nexpected\n%s\nfound\n%.*s", how, a, b, s->text, s->want, (int)got->n, got->n ? got->at : "");
    q_tool_calls_close(r->calls);
    free(r->split.thinking.at), free(r->split.content.at), free(r->heard.all.at), free(r->heard.arguments.at);
}

static void cut_at(const struct sample *s, size_t a, size_t b)
{
    struct reading r;
    size_t n = strlen(s->text);
    begin(&r, s->thinking);
    feed(&r, s->text, a);
    feed(&r, s->text + a, b - a);
    feed(&r, s->text + b, n - b);
    finish(&r, s, "cut at", a, b);
}

static void in_pieces(const struct sample *s, size_t piece)
{
    struct reading r;
    size_t n = strlen(s->text);
    begin(&r, s->thinking);
    for (size_t i = 0; i < n; i += piece) feed(&r, s->text + i, n - i < piece ? n - i : piece);
    finish(&r, s, "in pieces of", piece, 0);
}

static void test_samples_cut_anywhere(void **state)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = &samples[i];
        size_t n = strlen(s->text), stride = n > 100 ? 7 : 1;
        for (size_t a = 0; a <= n; a++)
            for (size_t b = a; b <= n; b += b == a ? 1 : stride) cut_at(s, a, b);
        for (size_t piece = 1; piece < 8; piece++) in_pieces(s, piece);
    }
}

/* ---- values by their schema ---- */

static const struct {
    const char *key, *value, *want;
} values[] = {
    {"s", "5", "\"5\""}, {"s", "null", "\"null\""}, {"s", "{\"a\":1}", "\"{\\\"a\\\":1}\""}, {"s", " two  words ", "\" two  words \""}, {"s", "a\x01\x7f\tb", "\"a\\u0001\x7f\\tb\""},
    {"i", "5", "5"}, {"i", "  5 ", "5"}, {"i", "12345678901234567890123", "12345678901234567890123"}, {"i", "-0", "-0"}, {"i", "five", "\"five\""}, {"i", "05", "\"05\""},
    {"i", "\"5\"", "\"5\""}, {"i", "", "\"\""}, {"i", "null", "null"},
    {"x", "1.50", "1.50"}, {"x", "1e2", "1e2"}, {"x", "0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"}, {"x", "NaN", "\"NaN\""},
    {"x", "1e999", "\"1e999\""},
    {"b", "true", "true"}, {"b", "True", "true"}, {"b", "False", "false"}, {"b", "yes", "\"yes\""}, {"b", "None", "\"None\""},
    {"a", "[1, \"</parameter>\", {\"k\": [null]}]", "[1, \"</parameter>\", {\"k\": [null]}]"}, {"a", "[1, 2", "\"[1, 2\""}, {"a", "['x']", "\"['x']\""}, {"a", "{\"k\":1}", "{\"k\":1}"},
    {"o", "{\n  \"k\": 1.0\n}", "{\n  \"k\": 1.0\n}"}, {"o", "{\"k\":1,\"k\":2}", "\"{\\\"k\\\":1,\\\"k\\\":2}\""},
    {"any", "5", "5"}, {"any", "five", "\"five\""}, {"any", "[1]", "[1]"}, {"any", "true", "true"}, {"any", "trueish", "\"trueish\""}, {"any", "\"q\"", "\"\\\"q\\\"\""}, {"any", "None", "null"},
    {"sn", "null", "null"}, {"sn", "None", "null"}, {"sn", "nullable", "\"nullable\""}, {"sn", "5", "\"5\""}, {"sn", "N", "\"N\""}, {"sn", "", "\"\""},
    {"si", "5", "5"}, {"si", "5 apples", "\"5 apples\""}, {"si", "true", "\"true\""},
    {"e", "5", "\"5\""}, {"m", "5", "5"}, {"m", "auto", "\"auto\""}, {"sa", "[\"a\"]", "[\"a\"]"}, {"sa", "[a]", "\"[a]\""},
    {"nb", "None", "null"}, {"nb", "true", "true"}, {"all", "7", "7"}, {"all", "x", "\"x\""}, {"loop", "7", "7"}, {"other", "7", "7"},
};

static void test_values_by_schema(void **state)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[512], want[512];
        snprintf(text, sizeof text, "<tool_call>\n<function=typed>\n<parameter=%s>\n%s\n</parameter>\n</function>\n</tool_call>", values[i].key, values[i].value);
        snprintf(want, sizeof want, "§typed {\"%s\":%s}", values[i].key, values[i].want);
        struct sample s = {0, 0, text, want};
        for (size_t a = 0; a <= strlen(text); a++) cut_at(&s, a, a);
        in_pieces(&s, 1);
    }
}

static void test_null_by_any_of(void **state)
{
    struct sample number = {0, 0, CALL("save", ARG("n", "3")), "§save {\"n\":3}"}, null = {0, 0, CALL("save", ARG("n", "null")), "§save {\"n\":null}"},
                  none = {0, 0, CALL("save", ARG("n", "None")), "§save {\"n\":null}"};
    in_pieces(&number, 1), in_pieces(&null, 1), in_pieces(&none, 1);
}

/* ---- as soon as possible, and within bounds ---- */

static void test_arguments_stream(void **state)
{
    struct reading r;
    const char *head = "<tool_call>\n<function=save>\n<parameter=body>\n";
    begin(&r, 0);
    feed(&r, head, strlen(head));
    assert_int_equal(r.heard.n_calls, 1);
    assert_int_equal(r.heard.arguments.n, strlen("{\"body\":"));
    feed(&r, "abc\nde", 6);
    assert_int_equal(r.heard.arguments.n, strlen("{\"body\":\"abc\\nde"));
    feed(&r, "\n</p", 4);
    assert_int_equal(r.heard.arguments.n, strlen("{\"body\":\"abc\\nde"));
    feed(&r, "x", 1);
    assert_int_equal(r.heard.arguments.n, strlen("{\"body\":\"abc\\nde\\n</px"));
    struct sample s = {0, 1, head, "§save... {\"body\":\"abc\\nde\\n</px"};
    finish(&r, &s, "streamed", 0, 0);
}

/* A text of `n` times `unit` between head and tail. */
static char *repeated(const char *head, const char *unit, size_t n, const char *tail)
{
    char *s = malloc(strlen(head) + strlen(unit) * n + strlen(tail) + 1), *p = stpcpy(s, head);
    while (n--) p = stpcpy(p, unit);
    strcpy(p, tail);
    return s;
}

/* The same events in one piece and in pieces of 1000 bytes, in little time; freed. */
static void check_long(int thinking, char *text, char *want)
{
    struct sample s = {thinking, 0, text, want};
    in_pieces(&s, strlen(text));
    in_pieces(&s, 1000);
    in_pieces(&s, 1);
    free(text);
    free(want);
}

static void test_long_texts(void **state)
{
    const size_t k = Q_TOOL_HELD / 8;
    check_long(0, repeated("<tool_call>\n<function=save>\n<parameter=body>\n", "1234567\n", 2 * k, "\n" END), repeated("§save {\"body\":\"", "1234567\\n", 2 * k, "\"}"));
    /* too long to wait: a list becomes a string, a call in thinking or in JSON is text, text in doubt is text */
    check_long(0, repeated("<tool_call>\n<function=typed>\n<parameter=a>\n[1", ",     22", k, "]\n" END), repeated("§typed {\"a\":\"[1", ",     22", k, "]\"}"));
    check_long(1, repeated("<tool_call>\n<function=save>\n<parameter=body>\n", "1234567\n", k, "\n" END),
               repeated("§t <tool_call>\n<function=save>\n<parameter=body>\n", "1234567\n", k, "\n" END));
    check_long(0, repeated("<tool_call>{\"name\":\"now\",\"arguments\":{\"a\":\"", "12345678", k, "\"}}</tool_call>"),
               repeated("§c <tool_call>{\"name\":\"now\",\"arguments\":{\"a\":\"", "12345678", k, "\"}}</tool_call>"));
    check_long(0, repeated(SAVE("b") "\n", "1234567 ", k, END), repeated(SAVED("b") "§c ", "1234567 ", k, END));
    /* nothing is looked at again and again */
    check_long(0, repeated("", "<tool_call>", k, ""), repeated("§c ", "<tool_call>", k, ""));
    check_long(0, repeated("", "<tool_call>{", k, ""), repeated("§c ", "<tool_call>{", k, ""));
    check_long(0, repeated("x", "        ", k, "y"), repeated("§c x", "        ", k, "y"));
    check_long(0, repeated("<tool_call>\n<function=save>\n<parameter=body>\n", "\n</para", k, "\n" END), repeated("§save {\"body\":\"", "\\n</para", k, "\"}"));
    check_long(0, repeated("<tool_call>\n<function=typed>\n<parameter=sn>\n", "        ", k, "\n" END), repeated("§typed {\"sn\":\"", "        ", k, "\"}"));
}

/* ---- lists of tools ---- */

static void test_bad_lists_are_named(void **state)
{
    static const char *const cases[][2] = {
        {"{}", "tools: expected a list, found an object"},
        {"[1]", "tools[0]: expected an object, found a number"},
        {"[{\"type\":\"web_search\"}]", "tools[0].type: expected \"function\", the only kind of tool here, found web_search"},
        {"[{\"type\":\"function\"}]", "tools[0].name: expected a string, found nothing"},
        {"[{\"type\":\"function\",\"function\":[]}]", "tools[0].function: expected an object, found a list"},
        {"[{\"function\":{\"name\":5}}]", "tools[0].function.name: expected a string, found a number"},
        {"[{\"function\":{\"name\":\"\"}}]", "tools[0]: expected a name of 1 to 256 bytes, found 0"},
        {"[{\"function\":{\"name\":\"a>b\"}}]", "tools[0]: the name 'a>b' holds '<', '>' or a control character"},
        {"[{\"name\":\"a\"},{\"name\":\"a\"}]", "tools[0] and tools[1] have one name, 'a'"},
        {"[{\"name\":\"a\",\"parameters\":7}]", "tools[0].parameters: expected a JSON schema, found a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cJSON *list = cJSON_Parse(cases[i][0]);
        struct q_tools *t;
        struct q_err e = {0};
        assert_int_equal(q_tools_open(&t, list, &e), Q_EINPUT);
        assert_null(t);
        assert_string_equal(e.text, cases[i][1]);
        cJSON_Delete(list);
    }
}

/* A schema of alternatives that refer to themselves would take for ever to walk. */
static void test_schemas_that_never_end(void **state)
{
    char *schema = repeated("[{\"name\":\"f\",\"parameters\":{\"anyOf\":[{}", ",{\"$ref\":\"#\"}", 40, "],\"properties\":{\"a\":{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#/properties/a\"}]}}}}]");
    cJSON *list = cJSON_Parse(schema);
    struct q_tools *t;
    assert_int_equal(q_tools_open(&t, list, NULL), Q_OK);
    assert_int_equal(q_tools_kinds(t, 0, "a") & Q_KIND_STRING, Q_KIND_STRING);
    assert_false(q_tools_declares(t, 0, "b"));
    q_tools_close(t);
    cJSON_Delete(list);
    free(schema);
}

static void test_without_tools_text_passes(void **state)
{
    struct q_tools *given = tools;
    struct sample s = {1, 0, "I.\n</think>\n\n" SAVE("b") "\n", "§t I.§c " SAVE("b") "\n"};
    tools = NULL;
    in_pieces(&s, 3);
    tools = given;
}

static int refuse(void *arg, const struct q_tool_event *ev, struct q_err *e) { return q_fail(e, Q_ELIMIT, "enough"); }

static void test_a_sink_can_end_it(void **state)
{
    struct q_tool_calls *p;
    struct q_err e;
    assert_int_equal(q_tool_calls_open(&p, tools, refuse, NULL, &e), Q_OK);
    assert_int_equal(q_tool_calls_push(p, Q_PART_CONTENT, "abc", 3, &e), Q_ELIMIT);
    assert_string_equal(e.text, "enough");
    q_tool_calls_close(p);
}

static int open_tools(void **state)
{
    cJSON *list = cJSON_Parse(TOOLS);
    int rc = q_tools_open(&tools, list, NULL);
    cJSON_Delete(list);
    return rc;
}

static int close_tools(void **state)
{
    q_tools_close(tools);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples_cut_anywhere), cmocka_unit_test(test_values_by_schema), cmocka_unit_test(test_null_by_any_of),
                                       cmocka_unit_test(test_arguments_stream), cmocka_unit_test(test_long_texts), cmocka_unit_test(test_bad_lists_are_named),
                                       cmocka_unit_test(test_schemas_that_never_end), cmocka_unit_test(test_without_tools_text_passes), cmocka_unit_test(test_a_sink_can_end_it)};
    return cmocka_run_group_tests(tests, open_tools, close_tools);
}
