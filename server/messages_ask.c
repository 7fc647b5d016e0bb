/* What of a request of Anthropic's has another shape than OpenAI's is written anew here, then chat_ask.c reads it. Any name of a model is taken:
 * clients of this API ask for models by names of their own. Thinking is off unless asked for, as the API says. */
#include "messages_ask.h"
#include "translate.h"
#include <stdio.h>

static const struct unsupported unsupported[] = {{"mcp_servers", NULL}, {"container", NULL}, {"context_management", NULL}};

/* ---- content ---- */

static int refuse_block(struct translation *r, const char *where, const char *type)
{
    if (is(type, "image"))
        return api_fail(r->x, 400, "unsupported_content", where, "%s: this model has no vision part, so images cannot be read", where);
    return api_fail(r->x, 400, "unsupported_content", where, "%s: blocks of type '%.40s' are not supported here by this version", where,
                    type ? type : "");
}

/* A string, or a list of text blocks joined by newlines; absent is empty. */
static int read_text(struct translation *r, const cJSON *content, const char *where, struct text *out)
{
    if (!content || cJSON_IsNull(content)) return 0;
    if (cJSON_IsString(content)) return text_put(out, content->valuestring), 0;
    if (!cJSON_IsArray(content)) return api_fail(r->x, 400, NULL, where, "%s: expected a string or a list of blocks", where);
    for (const cJSON *block = content->child; block; block = block->next) {
        const char *text = word(block, "text");
        if (!is(word(block, "type"), "text")) return refuse_block(r, where, word(block, "type"));
        if (!text) return api_fail(r->x, 400, NULL, where, "%s: expected a text block to have its text", where);
        if (block != content->child) text_put(out, "\n");
        text_put(out, text);
    }
    return 0;
}

static int read_result(struct translation *r, const cJSON *block, const char *where)
{
    struct text t = {0};
    const char *id = word(block, "tool_use_id");
    int rc = id ? read_text(r, member(block, "content"), where, &t) : api_fail(r->x, 400, NULL, where, "%s: expected tool_use_id", where);
    if (!rc) chat_body_result(&r->body, id, text_of(&t), t.n);
    r->body.out.bad |= t.bad;
    text_free(&t);
    return rc;
}

static int read_user_block(struct translation *r, const cJSON *block, const char *where)
{
    const char *type = word(block, "type"), *text = word(block, "text");
    if (is(type, "tool_result")) return read_result(r, block, where);
    if (!is(type, "text")) return refuse_block(r, where, type);
    if (!text) return api_fail(r->x, 400, NULL, where, "%s: expected a text block to have its text", where);
    chat_body_message(&r->body, "user", text, strlen(text));
    return 0;
}

static int read_assistant_block(struct translation *r, const cJSON *block, struct span raw, const char *where)
{
    const char *type = word(block, "type"), *text = word(block, "text"), *thought = word(block, "thinking");
    const char *id = word(block, "id"), *name = word(block, "name");
    if (is(type, "text") && text) chat_body_said(&r->body, text, strlen(text));
    else if (is(type, "thinking") && thought) chat_body_thought(&r->body, thought, strlen(thought));
    else if (is(type, "tool_use") && id && name && cJSON_IsObject(member(block, "input")))
        chat_body_call(&r->body, id, name, span_member(raw, "input"));
    else if (is(type, "text") || is(type, "thinking") || is(type, "tool_use"))
        return api_fail(r->x, 400, NULL, where, "%s: expected a %s block to have %s", where, type,
                        is(type, "tool_use") ? "id, name and input, an object" : "its text");
    else if (!is(type, "redacted_thinking")) return refuse_block(r, where, type);
    return 0;
}

static int read_blocks(struct translation *r, const cJSON *content, struct span raw, int assistant, int message)
{
    char where[64];
    struct span s = {0};
    int i = 0, rc = 0;
    for (const cJSON *block = content->child; block && !rc; block = block->next) {
        s = span_next(raw, s);
        snprintf(where, sizeof where, "messages[%d].content[%d]", message, i++);
        rc = assistant ? read_assistant_block(r, block, s, where) : read_user_block(r, block, where);
    }
    return rc;
}

static int read_message(struct translation *r, const cJSON *m, struct span raw, int i)
{
    char where[48];
    const char *role = word(m, "role");
    const cJSON *content = member(m, "content");
    int assistant = is(role, "assistant");
    snprintf(where, sizeof where, "messages[%d]", i);
    if (!assistant && !is(role, "user") && !is(role, "system"))
        return api_fail(r->x, 400, NULL, where, "%s.role: expected user, assistant or system", where);
    if (cJSON_IsArray(content) && content->child) return read_blocks(r, content, span_member(raw, "content"), assistant, i);
    if (!cJSON_IsString(content) && !cJSON_IsArray(content))
        return api_fail(r->x, 400, NULL, where, "%s.content: expected a string or a list of blocks", where);
    const char *text = cJSON_IsString(content) ? content->valuestring : "";
    if (assistant) chat_body_said(&r->body, text, strlen(text));
    else chat_body_message(&r->body, role, text, strlen(text));
    return 0;
}

static int read_messages(struct translation *r)
{
    struct text system = {0};
    struct span list = span_member(r->whole, "messages"), s = {0};
    const cJSON *messages = field_get(&r->f, "messages");
    int i = 0, rc = read_text(r, field_get(&r->f, "system"), "system", &system);
    if (!rc && (!cJSON_IsArray(messages) || !messages->child))
        rc = api_fail(r->x, 400, NULL, "messages", "field 'messages': expected a list of at least one message");
    if (!rc && system.n) chat_body_message(&r->body, "system", system.at, system.n);
    for (const cJSON *m = rc ? NULL : messages->child; m && !rc; m = m->next) rc = read_message(r, m, s = span_next(list, s), i++);
    r->body.out.bad |= system.bad;
    text_free(&system);
    return rc;
}

/* ---- tools ---- */

/* Tools that Anthropic's own servers run have dated types and no schema; there is nobody here to run them, and clients do without. */
static int is_server_tool(const char *type)
{
    static const char *const kinds[] = {"web_search_", "web_fetch_", "code_execution_", "tool_search_"};
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(type, kinds[i], strlen(kinds[i]))) return 1;
    return 0;
}

static int read_tools(struct translation *r)
{
    struct span list = span_member(r->whole, "tools"), s = {0};
    const cJSON *tools = field_get(&r->f, "tools");
    int i = 0;
    if (tools && !cJSON_IsArray(tools)) return api_fail(r->x, 400, NULL, "tools", "field 'tools': expected a list");
    for (const cJSON *t = tools ? tools->child : NULL; t; t = t->next, i++) {
        const char *type = word(t, "type"), *name = word(t, "name");
        s = span_next(list, s);
        if (is_server_tool(type)) continue;
        if (!name || !cJSON_IsObject(member(t, "input_schema")))
            return api_fail(r->x, 400, NULL, "tools", "tools[%d]: expected name and input_schema (type '%.40s' is not one that runs here)", i,
                            type ? type : "custom");
        chat_body_tool(&r->body, name, word(t, "description"), span_member(s, "input_schema"));
    }
    return 0;
}

static int read_tool_choice(struct translation *r)
{
    const cJSON *choice = field_get(&r->f, "tool_choice");
    const char *type = word(choice, "type"), *name = word(choice, "name");
    if (!choice) return 0;
    if (cJSON_IsTrue(member(choice, "disable_parallel_tool_use"))) chat_body_raw(&r->body, "parallel_tool_calls", (struct span){"false", 5});
    if (is(type, "auto") || is(type, "none")) chat_body_text(&r->body, "tool_choice", type);
    else if (is(type, "any")) chat_body_text(&r->body, "tool_choice", "required");
    else if (is(type, "tool") && name) translate_function_choice(r, name);
    else return api_fail(r->x, 400, NULL, "tool_choice", "field 'tool_choice': expected type auto, any, none, or tool with a name");
    return 0;
}

/* ---- the rest ---- */

/* output_config.format or output_format: {type: json_schema, schema}. */
static int read_format(struct translation *r)
{
    const cJSON *config = field_get(&r->f, "output_config"), *format = field_get(&r->f, "output_format");
    struct span raw = format ? span_member(r->whole, "output_format") : span_member(span_member(r->whole, "output_config"), "format");
    if (!format) format = member(config, "format");
    if (!format || cJSON_IsNull(format)) return 0;
    if (!is(word(format, "type"), "json_schema") || !cJSON_IsObject(member(format, "schema")))
        return api_fail(r->x, 400, NULL, "output_config.format", "output_config.format: expected type json_schema and a schema");
    translate_schema(r, "output", 0, span_member(raw, "schema"));
    return 0;
}

static int read_rest(struct translation *r, int counting)
{
    /* Of the same meaning in both. Names that only this server knows may be used here too. */
    static const char *const same[] = {"temperature", "top_p", "top_k", "min_p", "seed", "stream", "chat_template_kwargs", "thinking",
                                       "enable_thinking", "truncate"};
    long long most = field_int(&r->f, "max_tokens", 1, 1 << 30, counting ? 1 : 0);
    if (fields_bad(&r->f)) return -1;
    if (!most) return api_fail(r->x, 400, NULL, "max_tokens", "field 'max_tokens' is required");
    translate_number(r, "max_tokens", most);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) translate_same(r, same[i]);
    if (field_get(&r->f, "stop_sequences")) chat_body_raw(&r->body, "stop", span_member(r->whole, "stop_sequences"));
    if (!field_get(&r->f, "thinking") && !field_get(&r->f, "enable_thinking")) chat_body_raw(&r->body, "enable_thinking", (struct span){"false", 5});
    field_get(&r->f, "model");
    field_get(&r->f, "metadata");
    field_get(&r->f, "service_tier");
    return 0;
}

int messages_ask_read(struct ask *a, struct server *sv, const char *body, size_t n, int counting, struct api_error *x)
{
    struct translation r;
    if (translate_begin(&r, body, n, x)) return -1;
    int rc = read_messages(&r);
    chat_body_fields(&r.body);
    if (!rc) rc = read_tools(&r);
    if (!rc) rc = read_tool_choice(&r);
    if (!rc) rc = read_format(&r);
    if (!rc) rc = read_rest(&r, counting);
    return translate_end(&r, rc, unsupported, sizeof unsupported / sizeof *unsupported, a, sv);
}
