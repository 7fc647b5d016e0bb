#include "answer_rules.h"
#include "runtime/tool_list.h"
#include <stdlib.h>
#include <string.h>

enum mode { MODE_NONE, MODE_AUTO, MODE_REQUIRED, MODE_NAMED };

struct choice_of_tool {
    enum mode mode;
    const char *name;            /* borrowed; MODE_NAMED */
};

static const struct tokenizer *tokenizer_of(struct server *sv) { return q_engine_tokenizer(worker_engine(sv->worker)); }

/* ---- tool_choice ---- */

static void wrong_choice(struct fields *f)
{
    api_fail(f->x, 400, NULL, "tool_choice",
             "field 'tool_choice': expected none, auto, required, or {\"type\":\"function\",\"function\":{\"name\":...}}");
}

/* {"type":"function","function":{"name":N}}, or with the name right in it, as Responses have it. */
static void named_choice(struct fields *f, const cJSON *v, struct choice_of_tool *c)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(v, "type"), *function = cJSON_GetObjectItemCaseSensitive(v, "function");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(function ? function : v, "name");
    c->mode = MODE_NAMED;
    c->name = cJSON_IsString(name) ? name->valuestring : NULL;
    if (!c->name || !cJSON_IsString(type) || strcmp(type->valuestring, "function")) wrong_choice(f);
}

static struct choice_of_tool read_choice(struct fields *f)
{
    static const char *const word[] = {"none", "auto", "required", "any"};
    static const enum mode meant[] = {MODE_NONE, MODE_AUTO, MODE_REQUIRED, MODE_REQUIRED};
    struct choice_of_tool c = {.mode = MODE_AUTO};
    const cJSON *v = field_get(f, "tool_choice");
    if (cJSON_IsObject(v)) {
        named_choice(f, v, &c);
    } else if (v) {
        size_t i = 0;
        while (cJSON_IsString(v) && i < sizeof word / sizeof *word && strcmp(v->valuestring, word[i])) i++;
        if (cJSON_IsString(v) && i < sizeof word / sizeof *word) c.mode = meant[i];
        else wrong_choice(f);
    }
    return c;
}

/* ---- what is allowed ---- */

/* The token that begins a call cannot be drawn. */
static int forbid_calls(struct ask *a, struct server *sv, struct q_err *e)
{
    struct tok_ids ids = {0};
    int rc = tok_encode(tokenizer_of(sv), "<tool_call>", 11, 0, &ids, e);
    if (!rc && ids.n == 1 && ask_add_bias(a, ids.at[0], -100)) rc = q_fail(e, Q_EMEM, "no memory for the request");
    free(ids.at);
    return rc;
}

static void apply(struct fields *f, struct ask *a, struct server *sv, const struct choice_of_tool *c)
{
    struct q_err e;
    if (c->mode >= MODE_REQUIRED)
        api_fail(f->x, 400, "unsupported_field", "tool_choice", "field 'tool_choice' is not supported by this version, but for none and auto");
    if (c->mode != MODE_NONE) return;
    q_tools_close(a->tools);
    a->tools = NULL;
    if (forbid_calls(a, sv, &e)) api_fail_err(f->x, "tool_choice", &e);
}

/* ---- the fields ---- */

static char *copy_span(struct span s)
{
    char *copy = malloc(s.n + 1);
    if (!copy) return NULL;
    memcpy(copy, s.at, s.n);
    copy[s.n] = 0;
    return copy;
}

char *read_tools(struct fields *f, struct ask *a, struct server *sv, struct span body)
{
    const cJSON *tools = field_get(f, "tools");
    const struct choice_of_tool c = read_choice(f);
    field_bool(f, "parallel_tool_calls", 1);
    struct q_err e;
    if (tools && !cJSON_IsArray(tools)) api_fail(f->x, 400, NULL, "tools", "field 'tools': expected a list of tools");
    if ((!tools || !tools->child) && c.mode >= MODE_REQUIRED && !fields_bad(f))
        api_fail(f->x, 400, NULL, "tool_choice", "field 'tool_choice': expected 'tools' with it");
    if (fields_bad(f) || !tools || !tools->child) return NULL;
    if (q_tools_open(&a->tools, tools, &e)) {
        api_fail_err(f->x, "tools", &e);
        return NULL;
    }
    char *list = copy_span(span_member(body, "tools"));
    if (list) apply(f, a, sv, &c);
    else api_fail(f->x, 503, "no_memory", NULL, "no memory for the request");
    return list;
}
