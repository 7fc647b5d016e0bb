/* Tools from end to end on the trained test model: the template shows them, the model calls them, its text is read as it streams, and the
 * calls, sent back as the next turn's history, are token for token what the model wrote. So an agent's next turn re-uses all of it. */
#include "answer.h"
#include "chat.h"
#include "reply.h"
#include "text.h"
#include "tool_calls.h"
#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static struct q_engine *engine;
static struct q_chat *chat;

/* ---- an answer, as a client would keep it ---- */

struct kept {
    struct q_tool_calls *parser;
    struct tok_text thinking, content, arguments;
    cJSON *calls; /* as a message holds them */
    int n_calls;
};

static cJSON *string_of(const struct tok_text *t)
{
    char *s = strndup(t->n ? t->at : "", t->n);
    cJSON *v = cJSON_CreateString(s);
    free(s);
    return v;
}

static int keep(void *arg, const struct q_tool_event *ev, struct q_err *e)
{
    struct kept *k = arg;
    cJSON *last = cJSON_GetArrayItem(k->calls, k->n_calls - 1), *call, *function;
    switch (ev->kind) {
    case Q_TOOL_THINKING: return q_text_add(&k->thinking, ev->text, ev->n, e);
    case Q_TOOL_CONTENT: return q_text_add(&k->content, ev->text, ev->n, e);
    case Q_TOOL_ARGUMENTS: return q_text_add(&k->arguments, ev->text, ev->n, e);
    case Q_TOOL_BEGIN:
        call = cJSON_CreateObject();
        function = cJSON_AddObjectToObject(call, "function");
        cJSON_AddItemToObject(function, "name", string_of(&(struct tok_text){(char *)ev->text, ev->n, 0}));
        cJSON_AddItemToArray(k->calls, call);
        k->n_calls++;
        k->arguments.n = 0;
        return Q_OK;
    default:
        assert_true(ev->complete);
        assert_int_equal(ev->call, k->n_calls - 1);
        cJSON_AddItemToObject(cJSON_GetObjectItem(last, "function"), "arguments", string_of(&k->arguments));
        return Q_OK;
    }
}

static int on_text(void *arg, enum q_part part, const char *s, size_t n)
{
    struct kept *k = arg;
    return q_tool_calls_push(k->parser, part, s, n, NULL);
}

static struct tok_ids encode(const cJSON *messages, const cJSON *tools, const char *options)
{
    struct tok_ids ids = {0};
    struct q_err e;
    char *m = cJSON_PrintUnformatted(messages), *t = cJSON_IsArray(tools) ? cJSON_PrintUnformatted(tools) : NULL;
    if (q_chat_encode(chat, m, t, options, &ids, &e)) fail_msg("%s", e.text);
    free(m);
    free(t);
    return ids;
}

static void answer(struct q_talk *t, const struct tok_ids *prompt, const struct q_tools *tools, struct kept *k)
{
    struct q_answer a;
    struct q_err e;
    int thinking = q_reply_opens_thinking(q_engine_tokenizer(engine), prompt->at, prompt->n);
    struct q_answer_opts o = {.sampling = q_sampling_default(), .max_tokens = 80, .thinking = thinking, .text = on_text, .arg = k};
    *k = (struct kept){.calls = cJSON_CreateArray()};
    assert_int_equal(q_tool_calls_open(&k->parser, tools, keep, k, &e), Q_OK);
    if (q_talk_answer(t, prompt->at, prompt->n, &o, &a, &e)) fail_msg("%s", e.text);
    assert_int_equal(a.finish, Q_FINISH_STOP);
    assert_int_equal(q_tool_calls_end(k->parser, a.finish != Q_FINISH_STOP, &e), Q_OK);
    assert_int_equal(q_tool_calls_n(k->parser), k->n_calls);
    q_tool_calls_close(k->parser);
}

/* As a message of the history. */
static cJSON *message_of(struct kept *k)
{
    cJSON *m = cJSON_CreateObject();
    cJSON_AddStringToObject(m, "role", "assistant");
    cJSON_AddItemToObject(m, "reasoning_content", string_of(&k->thinking));
    cJSON_AddItemToObject(m, "content", string_of(&k->content));
    cJSON_AddItemToObject(m, "tool_calls", k->calls);
    free(k->thinking.at), free(k->content.at), free(k->arguments.at);
    return m;
}

/* ---- the goldens that have tools ---- */

static void same_ids(const struct tok_ids *got, size_t from, const cJSON *want, const char *what)
{
    size_t n = (size_t)cJSON_GetArraySize(want), i = 0;
    if (got->n < from + n) fail_msg("%s: %zu tokens, expected %zu", what, got->n, from + n);
    for (const cJSON *v = want->child; v; v = v->next, i++)
        if (got->at[from + i] != v->valueint) fail_msg("%s: token %zu is %d, expected %d", what, from + i, got->at[from + i], v->valueint);
}

/* Returns how many calls were made. */
static int there_and_back(struct q_talk *t, cJSON *golden)
{
    cJSON *messages = cJSON_GetObjectItem(golden, "messages"), *list = cJSON_GetObjectItem(golden, "tools");
    int think = cJSON_IsTrue(cJSON_GetObjectItem(golden, "enable_thinking"));
    struct q_tools *tools;
    struct kept k;
    struct tok_ids prompt = encode(messages, list, think ? NULL : "{\"enable_thinking\":false}");
    const cJSON *prompt_ids = cJSON_GetObjectItem(golden, "prompt_ids");
    assert_int_equal(prompt.n, cJSON_GetArraySize(prompt_ids));
    same_ids(&prompt, 0, prompt_ids, "prompt");
    assert_int_equal(q_tools_open(&tools, list, NULL), Q_OK);
    answer(t, &prompt, tools, &k);
    cJSON_AddItemToArray(messages, message_of(&k));
    struct tok_ids whole = encode(messages, list, "{\"add_generation_prompt\":false}");
    same_ids(&whole, 0, prompt_ids, "history");
    same_ids(&whole, prompt.n, cJSON_GetObjectItem(golden, "ids"), "answer in the history");
    assert_int_equal(whole.n, prompt.n + (size_t)cJSON_GetArraySize(cJSON_GetObjectItem(golden, "ids")) + 1); /* a newline */
    free(prompt.at);
    free(whole.at);
    q_tools_close(tools);
    return k.n_calls;
}

static void test_calls_there_and_back(void **state)
{
    FILE *f = fopen(TEST_GOLDENS, "r");
    char *line = NULL;
    size_t cap = 0;
    int with_tools = 0, calls = 0;
    struct q_talk *t;
    assert_non_null(f);
    assert_int_equal(q_talk_open(&t, engine, NULL), Q_OK);
    while (getline(&line, &cap, f) > 0) {
        cJSON *golden = cJSON_Parse(line);
        assert_non_null(golden);
        if (cJSON_GetArraySize(cJSON_GetObjectItem(golden, "tools"))) with_tools++, calls += there_and_back(t, golden);
        cJSON_Delete(golden);
    }
    assert_true(with_tools >= 10 && calls >= 4);
    q_talk_close(t);
    free(line);
    fclose(f);
}

static int setup(void **state)
{
    struct q_err e;
    struct q_engine_opts o = {.model = TEST_MODEL, .program_dir = TEST_PROGRAMS, .numerics = Q_STRICT, .threads = 2, .ctx = 1024,
                              .max_seqs = 1, .max_snaps = 2, .max_rows = 64};
    if (q_engine_open(&engine, &o, &e) || q_chat_open(&chat, engine, NULL, &e)) fail_msg("%s", e.text);
    return 0;
}

static int teardown(void **state)
{
    q_chat_close(chat);
    q_engine_close(engine);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls_there_and_back)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
