#include "chat_thinking.h"
#include <stdio.h>
#include <string.h>

/* ---- the switch ---- */

/* OpenAI's word for how much to think: none is off, any other on; templates that know the word see it too. */
static int effort_of(struct fields *f, const char *name, const char *effort)
{
    static const char *const words[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
    if (!effort) return -1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(effort, words[i])) return i > 0;
    api_fail(f->x, 400, NULL, name, "field '%s': expected none, minimal, low, medium, high, xhigh or max", name);
    return -1;
}

/* An object, or NULL: absent, or a fault. */
enum { MOST_OPTIONS = 1000 };   /* each is looked for among the others */

static const cJSON *read_object(struct fields *f, const char *name)
{
    const cJSON *v = field_get(f, name);
    if (!v || cJSON_IsObject(v)) return v;
    api_fail(f->x, 400, NULL, name, "field '%s': expected an object", name);
    return NULL;
}

/* A member of the object `outer`, which was read as a field. */
static const cJSON *inner(const cJSON *outer, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(outer, name);
    return cJSON_IsNull(v) ? NULL : v;
}

static void fault(struct fields *f, const char *outer, const char *name, const char *expected)
{
    char param[80];
    snprintf(param, sizeof param, "%s.%s", outer, name);
    api_fail(f->x, 400, NULL, param, "field '%s': expected %s", param, expected);
}

/* -1: not there. */
static int inner_switch(struct fields *f, const cJSON *object, const char *outer, const char *name)
{
    const cJSON *v = inner(object, name);
    if (!v || fields_bad(f)) return -1;
    if (cJSON_IsBool(v)) return cJSON_IsTrue(v);
    fault(f, outer, name, "true or false");
    return -1;
}

/* thinking.type as Anthropic has it. */
static int inner_type(struct fields *f, const cJSON *thinking)
{
    const cJSON *v = inner(thinking, "type");
    if (!v || fields_bad(f)) return -1;
    if (cJSON_IsString(v) && (!strcmp(v->valuestring, "enabled") || !strcmp(v->valuestring, "adaptive"))) return 1;
    if (cJSON_IsString(v) && !strcmp(v->valuestring, "disabled")) return 0;
    fault(f, "thinking", "type", "enabled, adaptive or disabled");
    return -1;
}

static const char *inner_effort(struct fields *f, const cJSON *reasoning)
{
    const cJSON *v = inner(reasoning, "effort");
    if (!v || cJSON_IsString(v)) return v ? v->valuestring : NULL;
    fault(f, "reasoning", "effort", "a string");
    return NULL;
}

/* ---- the budget ---- */

static int inner_budget(struct fields *f, const cJSON *object, const char *outer, const char *name, int absent)
{
    const cJSON *v = inner(object, name);
    if (!v || fields_bad(f)) return absent;
    if (cJSON_IsNumber(v) && v->valuedouble >= -1 && v->valuedouble <= 1 << 30 && v->valuedouble == (int)v->valuedouble) return (int)v->valuedouble;
    fault(f, outer, name, "a whole number of tokens, or -1");
    return absent;
}

static int read_budget(struct fields *f, const cJSON *reasoning, const cJSON *thinking)
{
    static const char *const name[] = {"thinking_budget", "thinking_budget_tokens", "reasoning_budget"};
    int budget = inner_budget(f, reasoning, "reasoning", "max_tokens", -1);
    budget = inner_budget(f, thinking, "thinking", "budget_tokens", budget);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) budget = (int)field_int(f, name[i], -1, 1 << 30, budget);
    return budget;
}

/* ---- the template's options ---- */

/* Members of the JSON object `from` replace those of `to`. */
static int merge(cJSON *to, const cJSON *from)
{
    for (const cJSON *v = from ? from->child : NULL; v; v = v->next) {
        cJSON *copy = cJSON_Duplicate(v, 1);
        cJSON_DeleteItemFromObjectCaseSensitive(to, v->string);
        if (!copy || !cJSON_AddItemToObject(to, v->string, copy)) return cJSON_Delete(copy), -1;
    }
    return 0;
}

static void set_switch(cJSON *options, const char *name, int on)
{
    if (on < 0) return;
    cJSON_DeleteItemFromObjectCaseSensitive(options, name);
    cJSON_AddBoolToObject(options, name, on);
}

static void set_word(cJSON *options, const char *name, const char *word)
{
    if (!word) return;
    cJSON_DeleteItemFromObjectCaseSensitive(options, name);
    cJSON_AddStringToObject(options, name, word);
}

static int stronger(int weak, int strong) { return strong >= 0 ? strong : weak; }

/* Whether to think and to keep thoughts: 0, 1, -1 (not said). effort: as it was named, NULL: not said. */
struct wish {
    int on, keep;
    const char *effort;
};

static struct wish read_wish(struct fields *f, const cJSON *reasoning, const cJSON *thinking, int in_text)
{
    const char *effort = inner_effort(f, reasoning), *by_name = field_string(f, "reasoning_effort");
    int on = stronger(in_text, effort_of(f, "reasoning.effort", effort));
    on = stronger(on, effort_of(f, "reasoning_effort", by_name));
    on = stronger(on, inner_switch(f, reasoning, "reasoning", "enabled"));
    on = stronger(on, inner_type(f, thinking));
    on = stronger(on, field_bool(f, "enable_thinking", -1));
    return (struct wish){on, field_bool(f, "preserve_thinking", -1), by_name ? by_name : effort};
}

static void check_kwargs(struct fields *f, const cJSON *kwargs)
{
    int n = cJSON_GetArraySize(kwargs);
    inner_switch(f, kwargs, "chat_template_kwargs", "enable_thinking");
    if (n > MOST_OPTIONS)
        api_fail(f->x, 400, NULL, "chat_template_kwargs", "field 'chat_template_kwargs': expected at most %d options, found %d", MOST_OPTIONS, n);
}

/* The template's options: the server's, then what is wished, then what is given by name. NULL: no memory. */
static char *options_text(const char *server_default, const struct wish *w, const cJSON *kwargs)
{
    cJSON *options = server_default ? cJSON_Parse(server_default) : cJSON_CreateObject();
    if (!options) return NULL;
    set_switch(options, "enable_thinking", w->on);
    set_switch(options, "preserve_thinking", w->keep);
    set_word(options, "reasoning_effort", w->effort);
    char *text = !merge(options, kwargs) ? cJSON_PrintUnformatted(options) : NULL;
    cJSON_Delete(options);
    return text;
}

char *read_thinking(struct fields *f, const char *server_default, int in_text, int *budget)
{
    const cJSON *reasoning = read_object(f, "reasoning"), *thinking = read_object(f, "thinking"), *kwargs = read_object(f, "chat_template_kwargs");
    struct wish w = read_wish(f, reasoning, thinking, in_text);
    check_kwargs(f, kwargs);
    *budget = read_budget(f, reasoning, thinking);
    if (fields_bad(f)) return NULL;
    char *text = options_text(server_default, &w, kwargs);
    if (!text) api_fail(f->x, 503, "no_memory", NULL, "no memory for the request");
    return text;
}
