/* Items become messages, flat tools become functions, then chat_ask.c reads the body. Nothing is stored here, so whatever refers to an earlier
 * response is refused; tools that OpenAI's servers run are left out, as their clients expect of others. A request without any
 * input is a probe and is answered. */
#include "responses_ask.h"
#include "translate.h"
#include <stdio.h>

static const struct unsupported unsupported[] = {
    {"previous_response_id", NULL}, {"conversation", NULL}, {"background", NULL}, {"prompt", NULL}, {"max_tool_calls", NULL},
    {"context_management", NULL}
};

/* ---- items ---- */

static int refuse(struct translation *r, const char *where, const char *type)
{
    if (is(type, "input_image"))
        return api_fail(r->x, 400, "unsupported_content", where, "%s: this model has no vision part, so images cannot be read", where);
    return api_fail(r->x, 400, "unsupported_content", where, "%s: '%.40s' is not supported by this version", where, type ? type : "");
}

/* A string, or a list of parts that are text. */
static int read_text(struct translation *r, const cJSON *content, const char *where, struct text *out)
{
    if (cJSON_IsString(content)) return text_put(out, content->valuestring), 0;
    if (!cJSON_IsArray(content)) return api_fail(r->x, 400, NULL, where, "%s: expected a string or a list of parts", where);
    for (const cJSON *part = content->child; part; part = part->next) {
        const char *type = word(part, "type"), *text = word(part, is(type, "refusal") ? "refusal" : "text");
        if (!is(type, "input_text") && !is(type, "output_text") && !is(type, "text") && !is(type, "refusal") && !is(type, "reasoning_text"))
            return refuse(r, where, type);
        if (!text) return api_fail(r->x, 400, NULL, where, "%s: expected a part of type '%s' to have its text", where, type);
        text_put(out, text);
    }
    return 0;
}

static int read_message(struct translation *r, const cJSON *item, const char *where)
{
    struct text t = {0};
    const char *role = word(item, "role");
    int rc = role ? read_text(r, member(item, "content"), where, &t) : api_fail(r->x, 400, NULL, where, "%s: expected a role", where);
    if (!rc && is(role, "assistant")) chat_body_said(&r->body, text_of(&t), t.n);
    else if (!rc) chat_body_message(&r->body, role, text_of(&t), t.n);
    r->body.out.bad |= t.bad;
    text_free(&t);
    return rc;
}

/* Thinking of earlier turns: its content if it was given, else its summary; what is encrypted came from elsewhere. */
static int read_reasoning(struct translation *r, const cJSON *item)
{
    const cJSON *list = member(item, cJSON_GetArraySize(member(item, "content")) ? "content" : "summary");
    for (const cJSON *part = cJSON_IsArray(list) ? list->child : NULL; part; part = part->next)
        if (word(part, "text")) chat_body_thought(&r->body, word(part, "text"), strlen(word(part, "text")));
    return 0;
}

static int read_call(struct translation *r, const cJSON *item, struct span raw, const char *where)
{
    const char *id = word(item, "call_id"), *name = word(item, "name");
    if (!id || !name || !word(item, "arguments"))
        return api_fail(r->x, 400, NULL, where, "%s: expected a function_call to have call_id, name and arguments, a string", where);
    chat_body_call(&r->body, id, name, span_member(raw, "arguments"));
    return 0;
}

static int read_output(struct translation *r, const cJSON *item, const char *where)
{
    struct text t = {0};
    const char *id = word(item, "call_id");
    int rc = id ? read_text(r, member(item, "output"), where, &t) : api_fail(r->x, 400, NULL, where, "%s: expected call_id", where);
    if (!rc) chat_body_result(&r->body, id, text_of(&t), t.n);
    r->body.out.bad |= t.bad;
    text_free(&t);
    return rc;
}

static int read_item(struct translation *r, const cJSON *item, struct span raw, int i)
{
    char where[32];
    const char *type = word(item, "type");
    snprintf(where, sizeof where, "input[%d]", i);
    if (!cJSON_IsObject(item)) return api_fail(r->x, 400, NULL, where, "%s: expected an object", where);
    if (!type || is(type, "message")) return read_message(r, item, where);
    if (is(type, "function_call")) return read_call(r, item, raw, where);
    if (is(type, "function_call_output")) return read_output(r, item, where);
    if (is(type, "reasoning")) return read_reasoning(r, item);
    if (is(type, "item_reference"))
        return api_fail(r->x, 400, "unsupported_content", where, "%s: nothing is stored here, so items cannot be referred to: send them whole",
                        where);
    return refuse(r, where, type);
}

static int read_input(struct translation *r)
{
    const cJSON *input = field_get(&r->f, "input");
    const char *instructions = field_string(&r->f, "instructions");
    struct span list = span_member(r->whole, "input"), s = {0};
    int i = 0, rc = 0;
    if (fields_bad(&r->f)) return -1;
    if (instructions && *instructions) chat_body_message(&r->body, "system", instructions, strlen(instructions));
    if (cJSON_IsString(input)) chat_body_message(&r->body, "user", input->valuestring, strlen(input->valuestring));
    else if (cJSON_IsArray(input) && input->child)
        for (const cJSON *item = input->child; item && !rc; item = item->next) rc = read_item(r, item, s = span_next(list, s), i++);
    else if (!input || cJSON_IsArray(input)) chat_body_message(&r->body, "user", "", 0);
    else rc = api_fail(r->x, 400, NULL, "input", "field 'input': expected a string or a list of items");
    return rc;
}

/* ---- tools ---- */

static int read_tools(struct translation *r)
{
    const cJSON *tools = field_get(&r->f, "tools");
    struct span list = span_member(r->whole, "tools"), s = {0};
    int i = 0;
    if (tools && !cJSON_IsArray(tools)) return api_fail(r->x, 400, NULL, "tools", "field 'tools': expected a list");
    for (const cJSON *t = tools ? tools->child : NULL; t; t = t->next, i++) {
        s = span_next(list, s);
        if (!word(t, "type")) return api_fail(r->x, 400, NULL, "tools", "tools[%d]: expected a type", i);
        if (!is(word(t, "type"), "function")) continue;
        if (!word(t, "name")) return api_fail(r->x, 400, NULL, "tools", "tools[%d]: expected a name", i);
        chat_body_tool(&r->body, word(t, "name"), word(t, "description"),
                       cJSON_IsObject(member(t, "parameters")) ? span_member(s, "parameters") : (struct span){0});
    }
    return 0;
}

static int read_tool_choice(struct translation *r)
{
    const cJSON *choice = field_get(&r->f, "tool_choice");
    if (!choice) return 0;
    if (cJSON_IsString(choice)) return chat_body_text(&r->body, "tool_choice", choice->valuestring), 0;
    if (!is(word(choice, "type"), "function") || !word(choice, "name"))
        return api_fail(r->x, 400, NULL, "tool_choice", "field 'tool_choice': expected auto, none, required, or type function with a name");
    translate_function_choice(r, word(choice, "name"));
    return 0;
}

/* ---- the rest ---- */

/* text.format: flat here, a member of its own in a chat. */
static int read_format(struct translation *r)
{
    const cJSON *format = member(field_get(&r->f, "text"), "format");
    struct span raw = span_member(span_member(r->whole, "text"), "format");
    if (!format || is(word(format, "type"), "text")) return 0;
    if (is(word(format, "type"), "json_object")) return chat_body_raw(&r->body, "response_format", raw), 0;
    if (!is(word(format, "type"), "json_schema") || !cJSON_IsObject(member(format, "schema")))
        return api_fail(r->x, 400, NULL, "text.format", "text.format: expected type text, json_object, or json_schema with a schema");
    translate_schema(r, word(format, "name") ? word(format, "name") : "output", cJSON_IsTrue(member(format, "strict")), span_member(raw, "schema"));
    return 0;
}

static int read_rest(struct translation *r)
{
    static const char *const same[] = {"model", "temperature", "top_p", "top_k", "min_p", "seed", "stream", "parallel_tool_calls",
        "chat_template_kwargs", "enable_thinking", "reasoning", "truncate", "truncation"};
    static const char *const inert[] = {"store", "include", "metadata", "user", "service_tier", "stream_options", "safety_identifier",
        "prompt_cache_key", "prompt_cache_retention", "client_metadata"};
    if (field_get(&r->f, "max_output_tokens")) translate_number(r, "max_tokens", field_int(&r->f, "max_output_tokens", 1, 1 << 30, 1));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) translate_same(r, same[i]);
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) field_get(&r->f, inert[i]);
    return fields_bad(&r->f) ? -1 : 0;
}

/* Clients check these of the object against what they asked for. */
static void fill_echo(const struct translation *r, struct responses_echo *echo)
{
    static const struct {
        const char *name, *absent;
    } rows[] = {{"instructions", "null"}, {"max_output_tokens", "null"}, {"metadata", "{}"}, {"parallel_tool_calls", "true"},
        {"reasoning", "{\"effort\":null,\"summary\":null}"}, {"temperature", "null"}, {"text", "{\"format\":{\"type\":\"text\"}}"},
        {"tool_choice", "\"auto\""}, {"tools", "[]"}, {"top_p", "null"}, {"truncation", "\"disabled\""}, {"user", "null"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct span v = span_member(r->whole, rows[i].name);
        int given = v.at && !(v.n == 4 && !memcmp(v.at, "null", 4));
        text_json_z(&echo->members, rows[i].name);
        text_put(&echo->members, ":");
        if (given) text_add(&echo->members, v.at, v.n);
        else text_put(&echo->members, rows[i].absent);
        text_put(&echo->members, ",");
    }
}

int responses_ask_read(struct ask *a, struct server *sv, const char *body, size_t n, struct responses_echo *echo, struct api_error *x)
{
    struct translation r;
    *echo = (struct responses_echo){0};
    if (translate_begin(&r, body, n, x)) return -1;
    int rc = read_input(&r);
    chat_body_fields(&r.body);
    if (!rc) rc = read_tools(&r);
    if (!rc) rc = read_tool_choice(&r);
    if (!rc) rc = read_format(&r);
    if (!rc) rc = read_rest(&r);
    if (!rc) fill_echo(&r, echo);
    return translate_end(&r, rc, unsupported, sizeof unsupported / sizeof *unsupported, a, sv);
}
