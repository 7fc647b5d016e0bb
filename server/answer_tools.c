#include "answer_rules.h"
#include "runtime/constrain.h"
#include "runtime/tool_list.h"
#include <stdlib.h>
#include <string.h>

enum mode { MODE_NONE, MODE_AUTO, MODE_REQUIRED, MODE_NAMED };

struct choice_of_tool {
    enum mode mode;
    const char *name;            /* borrowed; MODE_NAMED */
};

static const struct tokenizer *tokenizer_of(struct server *sv) { return q_engine_tokenizer(worker_engine(sv->worker)); }

/* What read_tools has read. */
struct asked {
    struct choice_of_tool choice;
    const char *list, *schema;   /* JSON texts; schema NULL: none */
    int strict, parallel;
};

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

/* ---- the constraint ---- */

/* Whether the caller asks for the schemas to be kept to the letter. */
static int any_strict(const cJSON *tools)
{
    for (const cJSON *t = tools->child; t; t = t->next) {
        const cJSON *function = cJSON_GetObjectItemCaseSensitive(t, "function");
        if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(function ? function : t, "strict"))) return 1;
    }
    return 0;
}

/* The same tools with any parameters; malloc'd, NULL: no memory. */
static char *names_alone(const struct q_tools *tools)
{
    struct text t = {0};
    for (int i = 0; i < q_tools_n(tools); i++) {
        text_put(&t, i ? ",{\"type\":\"function\",\"function\":{\"name\":" : "[{\"type\":\"function\",\"function\":{\"name\":");
        text_json_z(&t, q_tools_name(tools, i));
        text_put(&t, ",\"parameters\":{\"type\":\"object\",\"additionalProperties\":true}}}");
    }
    text_put(&t, "]");
    if (text_ok(&t)) return t.at;
    text_free(&t);
    return NULL;
}

static int constrain(struct ask *a, struct server *sv, const struct asked *t, const struct q_tool_rules *rules, struct q_err *e)
{
    q_constraint_free(a->job.constraint); /* a format's: the rules hold it too */
    a->job.constraint = NULL;
    int rc = q_constraint_from_tools(&a->job.constraint, tokenizer_of(sv), t->list, strlen(t->list), rules, e);
    if ((rc != Q_EUNSUP && rc != Q_ELIMIT) || t->strict) return rc;
    char *names = names_alone(a->tools);
    if (!names) return q_fail(e, Q_EMEM, "no memory for the request");
    rc = q_constraint_from_tools(&a->job.constraint, tokenizer_of(sv), names, strlen(names), rules, e);
    free(names);
    return rc;
}

/* Under a format no call is possible anyway. */
static int forbid_calls(struct ask *a, struct server *sv, struct q_err *e)
{
    const struct q_tool_rules none = {.none = 1};
    q_tools_close(a->tools);
    a->tools = NULL;
    if (a->job.constraint) return Q_OK;
    a->no_calls = 1;
    return q_constraint_from_tools(&a->job.constraint, tokenizer_of(sv), "[]", 2, &none, e);
}

static void apply(struct fields *f, struct ask *a, struct server *sv, const struct asked *t)
{
    const struct choice_of_tool *c = &t->choice;
    const struct q_tool_rules rules = {.only = c->name, .required = c->mode != MODE_AUTO, .parallel = t->parallel, .otherwise = t->schema};
    struct q_err e;
    if (c->mode == MODE_NONE) {
        if (forbid_calls(a, sv, &e)) api_fail_err(f->x, "tool_choice", &e);
    } else if (c->name && q_tools_find(a->tools, c->name, strlen(c->name)) < 0) {
        api_fail(f->x, 400, NULL, "tool_choice", "field 'tool_choice': expected the name of one of the tools, found '%.100s'", c->name);
    } else if (a->job.constraint && !t->schema && c->mode == MODE_AUTO) {
        api_fail(f->x, 400, "unsupported_field", "tools",
                 "tools are not supported by this version beside a format that is not JSON, but for tool_choice none");
    } else if (constrain(a, sv, t, &rules, &e)) {
        api_fail(f->x, e.code == Q_EMEM ? 503 : 400, e.code == Q_EUNSUP ? "unsupported_schema" : NULL, "tools", "tools: %s", e.text);
    }
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

char *read_tools(struct fields *f, struct ask *a, struct server *sv, struct span body, const char *schema)
{
    const cJSON *tools = field_get(f, "tools");
    struct asked t = {.choice = read_choice(f), .parallel = field_bool(f, "parallel_tool_calls", 1), .schema = schema};
    struct q_err e;
    if (tools && !cJSON_IsArray(tools)) api_fail(f->x, 400, NULL, "tools", "field 'tools': expected a list of tools");
    if ((!tools || !tools->child) && t.choice.mode >= MODE_REQUIRED && !fields_bad(f))
        api_fail(f->x, 400, NULL, "tool_choice", "field 'tool_choice': expected 'tools' with it");
    if (fields_bad(f) || !tools || !tools->child) return NULL;
    if (q_tools_open(&a->tools, tools, &e)) {
        api_fail_err(f->x, "tools", &e);
        return NULL;
    }
    char *list = copy_span(span_member(body, "tools"));
    t.list = list;
    t.strict = any_strict(tools);
    if (list) apply(f, a, sv, &t);
    else api_fail(f->x, 503, "no_memory", NULL, "no memory for the request");
    return list;
}
