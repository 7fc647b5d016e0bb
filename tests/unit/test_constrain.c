/* Constraints on the tiny model's vocabulary: which texts each kind of grammar takes, whichever way they are cut into tokens; that a
 * mask is exactly the ids that accept takes; what is refused, with which words. */
#include "constrain.h"
#include "gguf.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct gguf *file;
static struct tokenizer *tok;
static int byte_id[256];

static int set_up(void **state)
{
    struct q_err e = {0};
    if (gguf_open(&file, TEST_SOURCE_DIR "/tests/models/tiny.gguf", &e) || tok_open_gguf(&tok, file, &e)) return puts(e.text), -1;
    for (int id = 0; id < tok_count(tok); id++) {
        struct tok_str s = tok_piece(tok, id);
        if (s.n == 1 && tok_type(tok, id) == TOK_NORMAL) byte_id[(unsigned char)*s.at] = id;
    }
    return 0;
}

static int tear_down(void **state)
{
    tok_close(tok);
    gguf_close(file);
    return 0;
}

enum kind { GBNF, SCHEMA, REGEX, TOOLS, CALLS, CALL };

/* JSON is written with ' for " below. Valid until the next call. */
static const char *as_meant(enum kind kind, const char *text)
{
    static char own[4096];
    if (kind == GBNF || kind == REGEX || strlen(text) >= sizeof own) return text;
    strcpy(own, text);
    for (char *p = own; (p = strchr(p, '\''));) *p = '"';
    return own;
}

static int build(struct q_constraint **c, enum kind kind, const char *given, struct q_err *e)
{
    const char *text = as_meant(kind, given);
    size_t n = strlen(text);
    switch (kind) {
    case GBNF: return q_constraint_from_gbnf(c, tok, text, n, e);
    case SCHEMA: return q_constraint_from_schema(c, tok, text, n, e);
    case REGEX: return q_constraint_from_regex(c, tok, text, n, e);
    default: return q_constraint_from_tools(c, tok, text, n, &(struct q_tool_rules){.required = kind != TOOLS, .parallel = kind == CALLS}, e);
    }
}

/* Whether the ids, each by its mask, lead to an end. */
static int takes_ids(const struct q_constraint *c, const int32_t *ids, size_t n)
{
    struct q_constraint *at;
    struct q_err e = {0};
    const uint32_t *bits;
    assert_int_equal(q_constraint_clone(&at, c, &e), 0);
    int ok = 1;
    for (size_t i = 0; i < n && ok; i++) {
        assert_int_equal(q_constraint_mask(at, &bits, &e), 0);
        ok = bits[ids[i] / 32] >> ids[i] % 32 & 1;
        assert_int_equal(q_constraint_accept(at, ids[i], &e) == 0, ok);
    }
    ok = ok && q_constraint_may_end(at);
    if (ok) {
        assert_int_equal(q_constraint_mask(at, &bits, &e), 0);
        int end = tok_eos(tok);
        assert_true(bits[end / 32] >> end % 32 & 1);
        assert_int_equal(q_constraint_accept(at, end, &e), 0);
        assert_int_equal(q_constraint_mask(at, &bits, &e), 0);
        for (int id = 0; id < tok_count(tok); id++) assert_int_equal(bits[id / 32] >> id % 32 & 1, tok_is_end(tok, id));
    }
    q_constraint_free(at);
    return ok;
}

static int takes(const struct q_constraint *c, const char *text)
{
    struct tok_ids ids = {0};
    struct q_err e = {0};
    size_t n = strlen(text);
    int32_t bytes[4096];
    assert_true(n < 4096);
    for (size_t i = 0; i < n; i++) bytes[i] = byte_id[(unsigned char)text[i]];
    int ok = takes_ids(c, bytes, n);
    if (!tok_encode(tok, text, n, 0, &ids, &e) && takes_ids(c, ids.at, ids.n) != ok) fail_msg("tokens of '%s' and its bytes disagree: %d", text, ok);
    free(ids.at);
    return ok;
}

/* At every place of the text the mask is what accept takes, and there is something in it. */
static void check_masks(const struct q_constraint *c, const char *text)
{
    struct q_constraint *at, *try;
    struct q_err e;
    const uint32_t *bits;
    assert_int_equal(q_constraint_clone(&at, c, &e), 0);
    for (;; text++) {
        int some = 0;
        assert_int_equal(q_constraint_mask(at, &bits, &e), 0);
        for (int id = 0; id < tok_count(tok); id++) {
            assert_int_equal(q_constraint_clone(&try, at, &e), 0);
            int ok = !q_constraint_accept(try, id, &e), has = bits[id / 32] >> id % 32 & 1;
            struct tok_str piece = tok_piece(tok, id);
            if (ok != has) fail_msg("id %d '%.*s' before '%s': mask %d, accept %d", id, (int)piece.n, piece.at, text, has, ok);
            if (has && tok_type(tok, id) == TOK_CONTROL) assert_true(tok_is_end(tok, id) && q_constraint_may_end(at));
            some |= has;
            q_constraint_free(try);
        }
        assert_true(some);
        if (!*text) break;
        assert_int_equal(q_constraint_accept(at, byte_id[(unsigned char)*text], &e), 0);
    }
    q_constraint_free(at);
}

#define A10 "aaaaaaaaaa"
#define A100 A10 A10 A10 A10 A10 A10 A10 A10 A10 A10

static const struct sample {
    enum kind kind;
    const char *text;
    const char *yes[12], *no[14];
} samples[] = {
    /* GBNF */
    {GBNF, "root ::= \"\\u00e9한😀\\U0001F600\\x7e\"", {"\xC3\xA9한😀😀~"}, {"\xA9", "é", "한", "\x83\xA9"}},
    {GBNF, "root ::= \"a\" | \"bc\" # note\n", {"a", "bc"}, {"", "b", "ab", "c", "a "}},
    {GBNF, "root ::= x{2,3} y* z? \"!\"+\nx ::= [a-c]\ny ::= [^a-z!]\nz ::= \"\\x41\\u00e9\\n\"", {"ab!", "abc!!", "cc1한!", "aaA\xC3\xA9\n!"}, {"a!"
     , "abca!", "ab", "abd!"}},
    {GBNF, "root ::=\n  \"x\" |\n  (\"y\"\n | \"z\")\n\nw ::= \"w\"", {"x", "y", "z"}, {"w"}},
    {GBNF, "root ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", "(()", ")"}},
    {GBNF, "root ::= item (\",\" item)*\nitem ::= [0-9]+ | \"[\" root? \"]\"", {"1", "1,22", "[1,[2,[]]],3"}, {"", ",", "1,", "[1"}},
    {GBNF, "root ::= a a\na ::= \"x\"*", {"", "x", "xxxx"}, {"y"}},
    {GBNF, "root ::= e\ne ::= t (\"+\" t)*\nt ::= f (\"*\" f)*\nf ::= [0-9] | \"(\" e \")\"", {"1", "1+2*3", "(1+2)*((3))"}, {"", "1+", "(1", "1)",
     "+1"}},
    {GBNF, "root ::= . .", {"ab", "한글", "é\n"}, {"a", "abc"}},
    {GBNF, "root ::= list\nlist ::= \"a\" list | \"a\"", {"a", "aaa",
     A100 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     }, {"", "b"}},
    {GBNF, "root ::= s s s | s\ns ::= \"a\" | \"aa\" | \"\"", {"", "a", "aaaaaa"}, {"aaaaaaa", "b"}},
    /* regular expressions */
    {REGEX, "\\d{3}-[a-f]+|x?", {"123-a", "999-fade", "", "x"}, {"12-a", "123-", "123-g", "xx"}},
    {REGEX, "(?:ab|c)*\\.\\w\\s\\S", {".a b", "abcab._\tx"}, {"ab", "abc.a", ".a  "}},
    {REGEX, "[^\\d\\]x-z]{2}", {"ab", "한글"}, {"a", "1a", "x]", "zz", "abc"}},
    {REGEX, "^a{2,}?$", {"aa", "aaaa"}, {"a", "ab"}},
    {REGEX, "한\\u00e9é😀?", {"한éé", "한éé😀"}, {"한", "한é", "\xCD\x95\x9C"}},
    {REGEX, "[가-힣]+\\u0021\\x41", {"한글!A"}, {"!A", "한글", "a!A"}},
    {REGEX, "a{,3}", {"a{,3}"}, {"aa"}},
    /* schemas: types */
    {SCHEMA, "{'type':'string'}", {"''", "'a\\n\\u00e9\\ud83d\\ude00 한 \\/'", "'<|im_end|>'"}, {"'", "a", "'\\x'", "'\n'", "'\\ud800'", "'\\u0000'",
     "'\\u0041'"}},
    {SCHEMA, "{'type':'integer'}", {"0", "-17", "12345678901234567890"}, {"", "01", "1.5", "1e3", "+1", "123456789012345678901"}},
    {SCHEMA, "{'type':'number'}", {"0", "-0.5", "1e10", "3.14159265358979"}, {".5", "1.", "1e", "--1"}},
    {SCHEMA, "{'type':'boolean'}", {"true", "false"}, {"True", "null", "t"}},
    {SCHEMA, "{'type':['string','null']}", {"null", "'x'"}, {"1", "nul"}},
    {SCHEMA, "true", {"null", "[1, {'a': [true, 'x']}, -1.5e3]", "{\n  'a': {}\n}"}, {"", "[1,]", "{a:1}", "[", "{'a':1,}"}},
    {SCHEMA, "{'type':'object'}", {"{}", "{'a':1,'b':[{}]}"}, {"[]", "null", "1"}},
    {SCHEMA, "{'type':'string','nullable':true}", {"null", "''"}, {"1"}},
    /* objects */
    {SCHEMA, "{'type':'object','properties':{'a':{'type':'integer'},'b':{'type':'string'}},'required':['a']}",
     {"{'a':1}", "{ 'a' : 1 , 'b' : 'x' }", "{\n\t'a': 1,\n\t'b': ''\n}"}, {"{}", "{'b':'x'}", "{'b':'x','a':1}", "{'a':1,'c':1}", "{'a':1,}",
      "{  'a':1}"}},
    {SCHEMA, "{'properties':{'a':{},'b':{},'c':{}}}", {"{}", "{'a':1}", "{'b':1}", "{'c':1}", "{'a':1,'c':1}", "{'a':1,'b':1,'c':1}",
     "{'b':1,'c':1}"}, {"{,'a':1}", "{'c':1,'a':1}"}},
    {SCHEMA, "{'properties':{'a':{},'b':{},'c':{}},'required':['b']}", {"{'b':1}", "{'a':1,'b':2}", "{'a':1,'b':2,'c':3}"}, {"{}", "{'a':1}",
     "{'a':1,'c':2}"}},
    {SCHEMA, "{'type':'object','properties':{'ab':{'type':'null'}},'additionalProperties':{'type':'integer'}}",
     {"{}", "{'ab':null}", "{'a':1}", "{'abc':1,'':2}", "{'ab':null,'x':1,'y':2}"}, {"{'ab':1}", "{'x':1,'ab':null}", "{'x':null}", "{'\\u0061b':1}"
      , "{'a\\u0062':1}"}},
    {SCHEMA, "{'type':'object','additionalProperties':false}", {"{}", "{ }"}, {"{'a':1}"}},
    {SCHEMA, "{'type':'object','required':['k']}", {"{'k':[]}", "{'k':1,'z':2}"}, {"{}", "{'z':2}"}},
    {SCHEMA, "{'properties':{'한/\\'\\n':{'const':1}},'required':['한/\\'\\n']}", {"{'한/\\'\\n':1}", "{'\\ud55c\\/\\'\\u000a':1}"}, {"{}"}},
    {SCHEMA, "{'properties':{'a':{},'b':false},'required':['a']}", {"{'a':1}"}, {"{'a':1,'b':1}"}},
    /* arrays */
    {SCHEMA, "{'type':'array','items':{'type':'integer'},'minItems':1,'maxItems':3}", {"[1]", "[1, 2,3]"}, {"[]", "[1,2,3,4]", "[true]", "[1,]"}},
    {SCHEMA, "{'type':'array','items':{'type':'integer'}}", {"[]", "[1,2,3,4,5,6]", "[\n  1,\n  2\n]"}, {"[,]", "[1 2]"}},
    {SCHEMA, "{'type':'array','maxItems':0}", {"[]"}, {"[1]"}},
    {SCHEMA, "{'prefixItems':[{'type':'integer'},{'type':'string'}]}", {"[]", "[1]", "[1,'a']"}, {"['a']", "[1,'a',2]"}},
    {SCHEMA, "{'prefixItems':[{'type':'integer'}],'items':{'type':'null'},'minItems':2}", {"[1,null]", "[1,null,null]"}, {"[]", "[1]", "[null]"}},
    /* values */
    {SCHEMA, "{'enum':['a',1,null,[1,{'k':'v'}],-1.5]}", {"'a'", "1", "null", "[1, {'k': 'v'}]", "-1.5"}, {"a", "2", "[1]"}},
    {SCHEMA, "{'type':'string','enum':['a',1]}", {"'a'"}, {"1"}},
    {SCHEMA, "{'const':'é\\''}", {"'é\\''", "'\\u00e9\\''"}, {"'e\\''"}},
    /* strings */
    {SCHEMA, "{'minLength':2,'maxLength':3}", {"'ab'", "'한글é'", "'\\n\\u00e9'", "'\\ud83d\\ude00a'"}, {"'a'", "'abcd'"}},
    {SCHEMA, "{'minLength':3}", {"'abc'", "'abcdefgh'"}, {"'ab'"}},
    {SCHEMA, "{'pattern':'^[a-z]+$'}", {"'abc'"}, {"''", "'aB'"}},
    {SCHEMA, "{'pattern':'b|^c'}", {"'abc'", "'b'", "'c1'"}, {"'ac'", "''"}},
    {SCHEMA, "{'pattern':'^\\'/\\\\\\\\é$'}", {"'\\'/\\\\é'", "'\\'\\/\\\\\\u00E9'"}, {"'\\''"}},
    {SCHEMA, "{'pattern':'^(ab)*$','minLength':2,'maxLength':5}", {"'ab'", "'abab'"}, {"''", "'ababab'", "'aba'"}},
    {SCHEMA, "{'format':'date'}", {"'2024-02-29'", "'1999-12-31'"}, {"'2023-02-29'", "'1900-02-29'", "'2024-13-01'", "'2024-04-31'", "'0000-01-01'"
     }},
    {SCHEMA, "{'format':'date-time'}", {"'2024-02-29T23:59:59.5Z'", "'1999-12-31T00:00:00+09:00'"}, {"'2024-02-29'", "'2024-02-29T24:00:00Z'"}},
    {SCHEMA, "{'format':'uuid'}", {"'123e4567-e89b-12d3-a456-426614174000'"}, {"'123e4567e89b12d3a456426614174000'"}},
    /* bounds */
    {SCHEMA, "{'type':'integer','minimum':-7,'maximum':123}", {"-7", "-1", "0", "9", "10", "99", "100", "123"}, {"-8", "-10", "124", "200", "1000",
     "00", "-0"}},
    {SCHEMA, "{'type':'integer','minimum':18}", {"18", "19", "20", "100", "99999"}, {"17", "2", "-18", "0"}},
    {SCHEMA, "{'type':'integer','exclusiveMaximum':0}", {"-1", "-200"}, {"0", "1"}},
    {SCHEMA, "{'type':'integer','exclusiveMinimum':9.5,'maximum':11.9}", {"10", "11"}, {"9", "12"}},
    {SCHEMA, "{'type':'number','minimum':0,'maximum':1}", {"0", "1", "0.5", "1.0", "0.000", "1.00"}, {"1.01", "-0.1", "2", "1.0001"}},
    {SCHEMA, "{'type':'number','exclusiveMinimum':0.25,'exclusiveMaximum':12.5}", {"0.26", "0.2500001", "1", "9.99", "12", "12.4999", "12.0"}, {
     "0.25", "0.250", "0.1", "12.5", "12.50", "13", "0"}},
    {SCHEMA, "{'type':'number','minimum':-1.5,'maximum':-0.5}", {"-0.5", "-0.50", "-1", "-1.5", "-1.49"}, {"-0.4", "0", "-1.51", "-2", "1"}},
    {SCHEMA, "{'type':'number','minimum':2.125}", {"2.125", "2.2", "3", "100.001"}, {"2.12", "2", "1.9", "-3"}},
    {SCHEMA, "{'type':'integer','minimum':3,'maximum':3}", {"3"}, {"2", "4", "33"}},
    /* several */
    {SCHEMA, "{'anyOf':[{'type':'integer'},{'type':'object','properties':{'a':{}},'required':['a']}]}", {"1", "{'a':2}"}, {"{}", "null"}},
    {SCHEMA, "{'type':'object','properties':{'a':{'type':'null'}},'anyOf':[{'required':['a']},"
     "{'properties':{'b':{'type':'null'}},'required':['b']}]}", {"{'a':null}", "{'a':null,'b':null}", "{'b':null}"}, {"{}"}},
    {SCHEMA, "{'allOf':[{'properties':{'a':{'type':'number'}},'required':['a']},"
     "{'properties':{'a':{'type':'integer','maximum':5},'b':{}},'required':['b']}]}", {"{'a':5,'b':1}"}, {"{'a':1.5,'b':1}", "{'a':1}",
     "{'a':6,'b':1}"}},
    {SCHEMA, "{'$ref':'#/$defs/x~1y','$defs':{'x/y':{'type':'null'}}}", {"null"}, {"1"}},
    {SCHEMA, "{'$defs':{'n':{'type':'object','properties':{'v':{'type':'integer'},"
     "'next':{'anyOf':[{'$ref':'#/$defs/n'},{'type':'null'}]}},'required':['v','next']}},'$ref':'#/$defs/n'}",
     {"{'v':1,'next':null}", "{'v':1,'next':{'v':2,'next':{'v':3,'next':null}}}"}, {"{'v':1}", "{'v':1,'next':{}}"}},
    {SCHEMA, "{'type':'array','items':{'$ref':'#'}}", {"[]", "[[],[[]]]"}, {"[1]"}},
    /* tools */
#define SAVE                                                                                                                          \
    "[{'type':'function','function':{'name':'save','parameters':{'type':'object','properties':{'path':{'type':'string'},"              \
    "'n':{'anyOf':[{'type':'integer'},{'type':'null'}]},'kind':{'enum':['a b','c']},'o':{'type':'object'}},'required':['path']}}},"     \
    "{'type':'function','function':{'name':'now'}}]"
#define PATH(v) "<tool_call>\n<function=save>\n<parameter=path>\n" v "\n</parameter>\n"
#define END "</function>\n</tool_call>"
#define NOW "<tool_call>\n<function=now>\n" END
    {CALLS, SAVE, {PATH("a\nb") END, PATH("") END, PATH("</parameter>\n<parameter=x>") "<parameter=n>\n12\n</parameter>\n" END, PATH("x")
     "<parameter=kind>\na b\n</parameter>\n<parameter=n>\nnull\n</parameter>\n" END,
                   PATH("한 'q' <|im_end|>") "<parameter=o>\n{'a': [1]}\n</parameter>\n" END, NOW, NOW "\n" PATH("x") END},
     {"", "text", "<tool_call>\n<function=save>\n" END, PATH("x") "<parameter=n>\nx\n</parameter>\n" END, PATH("x")
      "<parameter=path>\ny\n</parameter>\n" END, PATH("x") "<parameter=zz>\n1\n</parameter>\n" END, NOW "\n", NOW NOW,
      "<tool_call>\n<function=later>\n" END, PATH("x") "<parameter=kind>\n'c'\n</parameter>\n" END}},
    {CALL, SAVE, {NOW, PATH("x") END}, {NOW "\n" NOW}},
    {TOOLS, SAVE, {"", "just text with < and <tool", NOW, "I call it.\n\n" NOW}, {"<tool_call>", "text <tool_call>x", NOW "more"}},
};

static void takes_what_it_should(void **state)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = samples + i;
        struct q_constraint *c = NULL;
        struct q_err e = {0};
        if (build(&c, s->kind, s->text, &e)) fail_msg("%s: %s", s->text, e.text);
        for (int k = 0; k < 12 && s->yes[k]; k++)
            if (!takes(c, as_meant(s->kind, s->yes[k]))) fail_msg("%s does not take '%s'", s->text, s->yes[k]);
        for (int k = 0; k < 14 && s->no[k]; k++)
            if (takes(c, as_meant(s->kind, s->no[k]))) fail_msg("%s takes '%s'", s->text, s->no[k]);
        q_constraint_free(c);
    }
}

static void masks_are_what_accept_takes(void **state)
{
    struct q_err e = {0};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i += 3) {
        struct q_constraint *c = NULL;
        const char *text = samples[i].yes[1] ? samples[i].yes[1] : samples[i].yes[0];
        if (strlen(text) > 40) continue;
        assert_int_equal(build(&c, samples[i].kind, samples[i].text, &e), 0);
        check_masks(c, as_meant(samples[i].kind, text));
        q_constraint_free(c);
    }
}

/* Near the end of a text with a limit, and far from it. */
static void masks_in_texts_with_limits(void **state)
{
    static const struct { enum kind kind; const char *text, *walk; } made[] = {
        {SCHEMA, "{'type':'array','items':{'maxLength':12},'maxItems':2}", "[\"abcdefghijkl\",\"가나다\"]"},
        {SCHEMA, "{'type':'string','minLength':9,'maxLength':40}", "\"The quick brown fox jumps over it all ab\""},
        {SCHEMA, "{'pattern':'abc','maxLength':20}", "\"aaaaaaaaaaaaaaaaaabc\""},      /* what is still missing needs its room */
        {SCHEMA, "{'pattern':'^[a-z]{1,600}$','maxLength':600}", "\"abc\""},               /* counts in step, not each with each */
        {REGEX, "([a-z ]{3,30}!){2}x{20,}", "the quick brown fox jumps over!ok it is!xxxxxxxxxxxxxxxxxxxxx"},
        {GBNF, "root ::= w{30} \".\"\nw ::= [a-z가-힣 ]", "the quick brown fox 가나다라마바사아자차."}};
    struct q_err e;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        struct q_constraint *c;
        assert_int_equal(build(&c, made[i].kind, made[i].text, &e), 0);
        assert_true(takes(c, made[i].walk));
        check_masks(c, made[i].walk);
        q_constraint_free(c);
    }
}

/* More than are kept: those that go are still used by whoever has them, and are built anew for who asks again. */
static void large_ones_come_and_go(void **state)
{
    struct q_constraint *first = NULL, *c = NULL;
    struct q_err e;
    for (int i = 0; i < 18; i++) {
        char text[100];
        snprintf(text, sizeof text, "{'pattern':'^[^,;]*$','maxLength':%d}", 400 - i % 17);
        q_constraint_free(c);
        assert_int_equal(build(i ? &c : &first, SCHEMA, text, &e), 0);
    }
    assert_true(takes(first, "\"" A100 A100 A100 A100 "\""));
    assert_true(takes(c, "\"" A100 A100 A100 A100 "\""));
    assert_false(takes(c, "\"" A100 A100 A100 A100 "a\""));
    q_constraint_free(first);
    q_constraint_free(c);
}

static const struct refusal {
    enum kind kind;
    int code;
    const char *text, *words;
} refusals[] = {
    {GBNF, Q_EINPUT, "", "no rule 'root'"},
    {GBNF, Q_EINPUT, "root ::= a", "uses the rule 'a'"},
    {GBNF, Q_EINPUT, "root ::= \"a\n", "line 1: expected a text"},
    {GBNF, Q_EINPUT, "root ::= [a", "expected a ]"},
    {GBNF, Q_EINPUT, "root ::= (\"a\"", "expected a )"},
    {GBNF, Q_EINPUT, "x ::= \"a\"\nroot ::= \"a\" ) \"b\"", "line 2: expected the end of a rule, found ')'"},
    {GBNF, Q_EINPUT, "root ::= \"a\"\nroot ::= \"b\"", "twice"},
    {GBNF, Q_EINPUT, "root ::= root \"a\" | \"b\"", "left recursion"},
    {GBNF, Q_EINPUT, "root ::= a\na ::= \"x\"? b\nb ::= a \"y\"", "left recursion"},
    {GBNF, Q_EINPUT, "root ::= \"a\" root", "never comes to an end"},
    {GBNF, Q_EINPUT, "root ::= \"a\"{3,2}", "at least 3"},
    {GBNF, Q_ELIMIT, "root ::= \"a\"{999999999}", "repetition"},
    {GBNF, Q_ELIMIT, "root ::= ((((.{9999}){9999}){9999}){9999})", "200000"},
    {GBNF, Q_EUNSUP, "root ::= <think>", "not supported"},
    {GBNF, Q_EINPUT, "root ::= \"\\q\"", "backslash"},
    {GBNF, Q_EINPUT, "root ::= \"\xff\"", "UTF-8"},
    {GBNF, Q_EINPUT, "= x", "a rule's name, found '='"},
    {REGEX, Q_EINPUT, "(a", "offset 2"},
    {REGEX, Q_EINPUT, "a)", ") without"},
    {REGEX, Q_EINPUT, "[a", "expected ]"},
    {REGEX, Q_EINPUT, "*a", "nothing to repeat"},
    {REGEX, Q_EINPUT, "a{3,1}", "most is less"},
    {REGEX, Q_EINPUT, "[z-a]", "range"},
    {REGEX, Q_EUNSUP, "(?=a)", "look-around"},
    {REGEX, Q_EUNSUP, "(a)\\1", "back references"},
    {REGEX, Q_EUNSUP, "\\bx", "boundaries"},
    {REGEX, Q_EUNSUP, "\\p{L}", "\\p"},
    {REGEX, Q_EUNSUP, "a^b", "ends of the pattern"},
    {REGEX, Q_ELIMIT, "((a{1000}){1000}){1000}", "200000"},
    {SCHEMA, Q_EINPUT, "{", "json_schema"},
    {SCHEMA, Q_EINPUT, "1", "expected a schema"},
    {SCHEMA, Q_EUNSUP, "{'not':{}}", "#: 'not' is not supported"},
    {SCHEMA, Q_EUNSUP, "{'properties':{'a':{'items':{'multipleOf':2}}}}", "#/properties/a/items: 'multipleOf'"},
    {SCHEMA, Q_EUNSUP, "{'uniqueItems':true}", "'uniqueItems'"},
    {SCHEMA, Q_EUNSUP, "{'patternProperties':{}}", "'patternProperties'"},
    {SCHEMA, Q_EUNSUP, "{'format':'email'}", "'email'"},
    {SCHEMA, Q_EUNSUP, "{'$ref':'http://x/y'}", "http://x/y"},
    {SCHEMA, Q_EINPUT, "{'$ref':'#/$defs/a'}", "leads nowhere"},
    {SCHEMA, Q_EINPUT, "{'type':'text'}", "'text'"},
    {SCHEMA, Q_EINPUT, "{'type':5}", "'type'"},
    {SCHEMA, Q_EINPUT, "{'properties':{},'required':['a']}", "'a' is required"},
    {SCHEMA, Q_EINPUT, "{'minLength':-1}", "'minLength'"},
    {SCHEMA, Q_EINPUT, "{'minLength':5,'maxLength':3}", "more than 'maxLength'"},
    {SCHEMA, Q_EINPUT, "{'enum':[]}", "'enum'"},
    {SCHEMA, Q_EUNSUP, "{'enum':['a'],'minLength':3}", "beside other conditions"},
    {SCHEMA, Q_EINPUT, "false", "no text fits"},
    {SCHEMA, Q_EINPUT, "{'type':'integer','minimum':5,'maximum':4}", "no text fits"},
    {SCHEMA, Q_EINPUT, "{'$ref':'#'}", "left recursion"},
    {SCHEMA, Q_EINPUT, "{'type':'array','items':{'$ref':'#'},'minItems':1}", "no text fits"},
    {SCHEMA, Q_EUNSUP, "{'type':'integer','minimum':1e300}", "2^53"},
    {SCHEMA, Q_EUNSUP, "{'pattern':'(?!x)'}", "look-around"},
    {SCHEMA, Q_EUNSUP, "{'allOf':[{'pattern':'a'},{'pattern':'b'}]}", "'pattern' twice"},
    {SCHEMA, Q_EUNSUP, "{'items':[{}]}", "'prefixItems' is"},
    {SCHEMA, Q_EINPUT, "{'pattern':'^[a-z]{5}$','maxLength':3}", "#: 'pattern' \"^[a-z]{5}$\" and 'maxLength' 3 contradict each other"},
    {SCHEMA, Q_EINPUT, "{'pattern':'가나|다라마','maxLength':1}", "no text of the pattern is shorter than 2"},
    {SCHEMA, Q_EINPUT, "{'pattern':'^(abc|de)?f{1,2}$','minLength':6}", "no text of the pattern is longer than 5"},
    {SCHEMA, Q_EINPUT, "{'format':'date','maxLength':9}", "'format' \"date\" and 'maxLength' 9 contradict each other"},
    {SCHEMA, Q_EINPUT, "{'properties':{'a':{'pattern':'^(aa)*$','minLength':3,'maxLength':3}},'required':['a']}", "no text fits the schema at #/properties/a: "},
    {SCHEMA, Q_EINPUT, "{'pattern':'^[0-9]{5}$','format':'date'}", "no text fits the schema at #: "},
    {SCHEMA, Q_ELIMIT, "{'$defs':{'a':{'allOf':[{'$ref':'#/$defs/a'}],'type':'object'}},'$ref':'#/$defs/a'}", "nest"},
    {CALL, Q_EINPUT, "[]", "no tool"},
    {CALL, Q_EINPUT, "{}", "expected a list"},
    {CALL, Q_EINPUT, "[{}]", "name"},
    {CALL, Q_EUNSUP, "[{'function':{'name':'a>b'}}]", "a>b"},
    {CALL, Q_EUNSUP, "[{'function':{'name':'f','parameters':{'properties':{'x':{'not':{}}}}}}]", "tool 'f' parameters #/properties/x: 'not'"},
};

static void refuses_by_name(void **state)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct q_constraint *c = NULL;
        struct q_err e = {0};
        int rc = build(&c, refusals[i].kind, refusals[i].text, &e);
        if (rc != refusals[i].code || !strstr(e.text, refusals[i].words)) fail_msg("%s: %d %s", refusals[i].text, rc, rc ? e.text : "was taken");
        assert_null(c);
        assert_null(strchr(e.text, '\n'));
    }
}

static void choices_are_as_they_are(void **state)
{
    static const char *const choice[] = {"yes", "no", "no way", "한글"};
    struct q_constraint *c;
    struct q_err e;
    assert_int_equal(q_constraint_from_choice(&c, tok, choice, 4, &e), 0);
    for (int i = 0; i < 4; i++) assert_true(takes(c, choice[i]));
    assert_false(takes(c, "no w"));
    assert_false(takes(c, "\"no\""));
    check_masks(c, "no way");
    q_constraint_free(c);
}

static void thought_is_free_and_the_grammar_begins_behind_it(void **state)
{
    static const char object[] = "{\"type\":\"object\"}";
    struct q_constraint *c;
    struct q_err e;
    const uint32_t *bits;
    assert_int_equal(q_constraint_from_schema(&c, tok, object, sizeof object - 1, &e), 0);
    assert_int_equal(q_constraint_thinking(c, &e), 0);
    assert_true(takes(c, "I think { so.\n</think>\n\n{\"a\": 1}"));
    assert_true(takes(c, "</think>{}"));
    assert_true(takes(c, "<think> <</think>\n{}"));
    assert_false(takes(c, "{}"));
    assert_false(takes(c, "no end"));
    assert_false(takes(c, "x</think>\n\n\n{}"));
    assert_int_equal(q_constraint_mask(c, &bits, &e), 0);
    for (int id = 0; id < tok_count(tok); id++)
        if (tok_type(tok, id) == TOK_CONTROL) assert_false(bits[id / 32] >> id % 32 & 1);
    q_constraint_free(c);
}

/* A nesting that never closes is held at a depth from which there is a way out. */
static void nesting_ends(void **state)
{
    struct q_constraint *c;
    struct q_err e;
    const uint32_t *bits;
    int depth = 0, open = byte_id['['], close = byte_id[']'];
    assert_int_equal(q_constraint_from_schema(&c, tok, "true", 4, &e), 0);
    for (; depth < 1000; depth++) {
        assert_int_equal(q_constraint_mask(c, &bits, &e), 0);
        if (!(bits[open / 32] >> open % 32 & 1)) break;
        assert_int_equal(q_constraint_accept(c, open, &e), 0);
    }
    assert_in_range(depth, 100, 200);
    for (; depth > 0; depth--) assert_int_equal(q_constraint_accept(c, close, &e), 0);
    assert_true(q_constraint_may_end(c));
    q_constraint_free(c);
}

static int allows(struct q_constraint *c, char byte)
{
    const uint32_t *bits;
    struct q_err e;
    assert_int_equal(q_constraint_mask(c, &bits, &e), 0);
    return bits[byte_id[(unsigned char)byte] / 32] >> byte_id[(unsigned char)byte] % 32 & 1;
}

static void read_bytes(struct q_constraint *c, const char *s)
{
    struct q_err e;
    for (; *s; s++)
        if (q_constraint_accept(c, byte_id[(unsigned char)*s], &e)) fail_msg("at '%s': %s", s, e.text);
}

/* What has to nest to come to an end is left room for, also where a token opens several levels at once. */
static void nesting_leaves_room(void **state)
{
    static const char grammar[] = "root ::= \"x\" | \"e\" root a\na ::= \"[\" b \"]\"\nb ::= \"{\" d \"}\"\nd ::= \"y\"";
    struct q_constraint *c, *near[4] = {0};
    struct q_err e;
    int depth = 0;
    assert_int_equal(build(&c, GBNF, grammar, &e), 0);
    for (; allows(c, 'e'); depth++) {
        q_constraint_free(near[depth % 4]);
        assert_int_equal(q_constraint_clone(near + depth % 4, c, &e), 0);
        read_bytes(c, "e");
    }
    assert_in_range(depth, 100, 200);
    for (int i = 0; i < 4; i++) {
        check_masks(near[i], "");
        q_constraint_free(near[i]);
    }
    for (read_bytes(c, "x"); depth > 0; depth--) read_bytes(c, "[{y}]");
    assert_true(q_constraint_may_end(c));
    q_constraint_free(c);
}

/* Rules called last in others are no nesting: many keys that may be left out are such a chain. */
static void long_chains_are_not_deep(void **state)
{
    char schema[20000] = "{\"properties\":{\"k\":{}", text[4000] = "{";
    struct q_constraint *c;
    struct q_err e;
    for (int i = 0; i < 300; i++) sprintf(schema + strlen(schema), ",\"p%d\":{\"type\":\"null\"}", i);
    strcat(schema, "}}");
    for (int i = 0; i < 300; i += 2) sprintf(text + strlen(text), "%s\"p%d\":null", i ? "," : "", i);
    strcat(text, "}");
    if (build(&c, SCHEMA, schema, &e)) fail_msg("%s", e.text);
    assert_true(takes(c, text));
    assert_true(takes(c, "{\"k\":[[]],\"p299\":null}"));
    assert_false(takes(c, "{\"p4\":null,\"p3\":null}"));
    q_constraint_free(c);
}

/* Each is answered, one way or the other, and soon; none takes memory without bounds. */
static void hostile_grammars(void **state)
{
    static const char *const gbnf[] = {
        "root ::= (a?){300} \"b\"\na ::= \"x\"",
        "root ::= (\"a\" | \"a\" | \"aa\" | \"aaa\")* \"b\"",
        "root ::= s\ns ::= \"a\" s s | \"\"",
        "root ::= ([a-z]* [a-z]* [a-z]* [a-z]* [a-z]*)*",
        "root ::= .* \"a\" .{300}",
        "root ::= x x x x x x x x x\nx ::= y y y y y y y y y\ny ::= z z z z z z z z z\nz ::= \"a\"*",
        "root ::= \"\"{100000}",
        "root ::= (((((\"\"{100000}){100000}){100000}){100000}){100000})*",
    };
    struct q_err e;
    const uint32_t *bits;
    for (size_t i = 0; i < sizeof gbnf / sizeof *gbnf; i++) {
        struct q_constraint *c = NULL;
        int rc = build(&c, GBNF, gbnf[i], &e);
        for (int k = 0; !rc && k < 60; k++) {
            rc = q_constraint_mask(c, &bits, &e);
            if (!rc) rc = q_constraint_accept(c, byte_id[k % 7 ? 'a' : 'x'], &e) == Q_ELIMIT ? Q_ELIMIT : 0;
        }
        if (rc) assert_int_equal(rc, Q_ELIMIT);
        q_constraint_free(c);
    }
}

static char *repeated(const char *before, const char *s, int n, const char *after)
{
    size_t k = strlen(s), at = strlen(before);
    char *text = malloc(at + k * (size_t)n + strlen(after) + 1);
    strcpy(text, before);
    for (int i = 0; i < n; i++, at += k) strcpy(text + at, s);
    strcpy(text + at, after);
    return text;
}

static void long_and_deep_texts(void **state)
{
    static const struct { enum kind kind; const char *before, *s; int n; const char *after; } made[] = {
        {GBNF, "root ::= ", "(", 100000, "\"a\""}, {GBNF, "root ::= ", "\"a\" | ", 20000, "\"b\""}, {GBNF, "root ::= \"", "a", 300000, "\""},
        {GBNF, "root ::= \"a\" ", "[^a]{1000} ", 1000, ""},
        {GBNF, "root ::= ", "\n#\n", 60000, ""}, {REGEX, "", "(", 100000, ""}, {REGEX, "", "a?", 50000, ""},
        {REGEX, "", "[a-z]*", 20000, ""}, {REGEX, "[", "가", 60000, "]"},
        {SCHEMA, "", "{\"items\":", 120, "1"}, {SCHEMA, "", "{\"items\":", 20000, "1"},
        {SCHEMA, "{\"enum\":[", "\"aaaa\",", 20000, "1]}"}, {SCHEMA, "{\"allOf\":[", "{\"required\":[\"a\"]},", 5000, "{}]}"},
        {SCHEMA, "{\"type\":[", "\"object\",", 5000, "\"null\"]}"},
        {SCHEMA, "{\"$defs\":{\"a\":{\"anyOf\":[", "{\"$ref\":\"#/$defs/a\",\"minLength\":1},", 50, "{}]}},\"$ref\":\"#/$defs/a\"}"}};
    struct q_err e;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        char *text = repeated(made[i].before, made[i].s, made[i].n, made[i].after);
        struct q_constraint *c = NULL;
        int rc = build(&c, made[i].kind, text, &e);
        if (!rc) q_constraint_free(c);
        free(text);
    }
}

/* Texts that fill the states many times over go on in new ones at the same place. */
static void states_are_renewed(void **state)
{
    struct q_constraint *c, *copy;
    struct q_err e = {0};
    const uint32_t *bits;
    static const char grammar[] = "root ::= \"a\" [ab]{0,40} | ([ab]* \"a\" [ab]{14} \";\")* \"[\" root \"]\"";
    assert_int_equal(build(&c, GBNF, grammar, &e), 0);
    unsigned x = 1;
    for (int i = 0; i < 30000; i++) {
        x = x * 1664525u + 1013904223u;
        if (i % 1000 == 0) {
            assert_int_equal(q_constraint_mask(c, &bits, &e), 0);
            assert_int_equal(q_constraint_clone(&copy, c, &e), 0);
            q_constraint_free(c);
            c = copy;
        }
        int rc = q_constraint_accept(c, byte_id[x >> 24 & 1 ? 'a' : 'b'], &e);
        if (rc) fail_msg("%d: %s", i, e.text);
    }
    q_constraint_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_it_should), cmocka_unit_test(masks_are_what_accept_takes),
        cmocka_unit_test(masks_in_texts_with_limits), cmocka_unit_test(large_ones_come_and_go), cmocka_unit_test(refuses_by_name),
        cmocka_unit_test(choices_are_as_they_are), cmocka_unit_test(thought_is_free_and_the_grammar_begins_behind_it),
        cmocka_unit_test(nesting_ends), cmocka_unit_test(nesting_leaves_room),
        cmocka_unit_test(long_chains_are_not_deep), cmocka_unit_test(hostile_grammars), cmocka_unit_test(long_and_deep_texts),
        cmocka_unit_test(states_are_renewed)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
