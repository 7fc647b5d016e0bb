#include "chat_ask.h"
#include "chat_fields.h"
#include "runtime/reply.h"
#include "span.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages: only text, and the switch in the last user's ---- */

static int check_part(const cJSON *part, int message, int i, struct api_error *x)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(part, "type");
    char param[64];
    snprintf(param, sizeof param, "messages[%d].content[%d]", message, i);
    if (!cJSON_IsObject(part)) return api_fail(x, 400, NULL, param, "%s: expected a content part, an object with a type", param);
    if (!cJSON_IsString(type)) return api_fail(x, 400, NULL, param, "%s: expected a type", param);
    const char *t = type->valuestring;
    if (!strcmp(t, "text") || !strcmp(t, "refusal")) {
        if (cJSON_IsString(cJSON_GetObjectItemCaseSensitive(part, t))) return 0;
        return api_fail(x, 400, NULL, param, "%s.%s: expected a string", param, t);
    }
    if (strstr(t, "image")) return api_fail(x, 400, "unsupported_content", param, "%s: images are not supported by this version", param);
    return api_fail(x, 400, "unsupported_content", param, "%s: parts of type '%.40s' are not supported by this version, only text", param, t);
}

static int check_messages(const cJSON *messages, struct api_error *x)
{
    int i = 0, k;
    if (!cJSON_IsArray(messages) || !messages->child)
        return api_fail(x, 400, NULL, "messages", "field 'messages': expected a list of at least one message");
    for (const cJSON *m = messages->child; m; m = m->next, i++) {
        const cJSON *content = cJSON_GetObjectItemCaseSensitive(m, "content");
        if (!cJSON_IsArray(content)) continue; /* the rest is checked where the template is rendered */
        k = 0;
        for (const cJSON *part = content->child; part; part = part->next)
            if (check_part(part, i, k++, x)) return -1;
    }
    return 0;
}

/* The last message of the user, and its place. */
static cJSON *last_user(const cJSON *messages, size_t *at)
{
    cJSON *found = NULL;
    size_t i = 0;
    for (cJSON *m = messages->child; m; m = m->next, i++) {
        const cJSON *role = cJSON_GetObjectItemCaseSensitive(m, "role");
        if (!cJSON_IsString(role) || strcmp(role->valuestring, "user")) continue;
        found = m;
        *at = i;
    }
    return found;
}

/* The string node that holds the end of a message's text; NULL: none. */
static cJSON *last_text(cJSON *message)
{
    cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content"), *last;
    if (cJSON_IsString(content)) return content;
    if (!cJSON_IsArray(content) || !content->child) return NULL;
    last = cJSON_GetArrayItem(content, cJSON_GetArraySize(content) - 1);
    return cJSON_GetObjectItemCaseSensitive(last, "text");
}

static int is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Cuts "/think" or "/no_think" off the end, where it is a word. 1, 0, or -1: there was none. */
static int cut_switch(char *s)
{
    static const char *const word[] = {"/no_think", "/think"};
    size_t n = strlen(s);
    while (n && is_space(s[n - 1])) n--;
    for (int on = 0; on < 2; on++) {
        size_t w = strlen(word[on]);
        if (n < w || strncmp(s + n - w, word[on], w) || (n > w && !is_space(s[n - w - 1]))) continue;
        n -= w;
        while (n && is_space(s[n - 1])) n--;
        s[n] = 0;
        return on;
    }
    return -1;
}

/* The list as the caller wrote it, but for element `at`, which is printed from `changed`. */
static void put_messages(struct text *t, struct span list, size_t at, const cJSON *changed)
{
    struct span m;
    text_put(t, "[");
    for (size_t i = 0; (m = span_element(list, i)).at; i++) {
        char *printed = i == at ? cJSON_PrintUnformatted(changed) : NULL;
        if (i) text_put(t, ",");
        if (i != at) text_add(t, m.at, m.n);
        else if (printed) text_put(t, printed);
        else t->bad = 1;
        free(printed);
    }
    text_put(t, "]");
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

/* OpenAI's word for how much to think: none is off, any other on; templates that know the word see it too. */
static int read_effort(struct fields *f, const char **effort)
{
    static const char *const words[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
    *effort = field_string(f, "reasoning_effort");
    if (!*effort) return -1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(*effort, words[i])) return i > 0;
    api_fail(f->x, 400, NULL, "reasoning_effort", "field 'reasoning_effort': expected none, minimal, low, medium, high, xhigh or max");
    return -1;
}

static void set_thinking(cJSON *options, int on)
{
    cJSON_DeleteItemFromObjectCaseSensitive(options, "enable_thinking");
    cJSON_AddBoolToObject(options, "enable_thinking", on);
}

/* From weak to strong: server default, word in the text, effort, enable_thinking, chat_template_kwargs. */
static char *read_options(struct fields *f, const char *server_default, int in_text)
{
    const char *effort;
    int by_effort = read_effort(f, &effort);
    int by_field = field_bool(f, "enable_thinking", -1);
    const cJSON *kwargs = field_get(f, "chat_template_kwargs");
    const cJSON *asked = cJSON_GetObjectItemCaseSensitive(kwargs, "enable_thinking");
    if (kwargs && !cJSON_IsObject(kwargs)) api_fail(f->x, 400, NULL, "chat_template_kwargs", "field 'chat_template_kwargs': expected an object");
    else if (asked && !cJSON_IsBool(asked))
        api_fail(f->x, 400, NULL, "chat_template_kwargs.enable_thinking", "field 'chat_template_kwargs.enable_thinking': expected true or false");
    if (fields_bad(f)) return NULL;
    int on = by_field >= 0 ? by_field : by_effort >= 0 ? by_effort : in_text;
    cJSON *options = server_default ? cJSON_Parse(server_default) : cJSON_CreateObject();
    if (options && on >= 0) set_thinking(options, on);
    if (options && effort) {
        cJSON_DeleteItemFromObjectCaseSensitive(options, "reasoning_effort");
        cJSON_AddStringToObject(options, "reasoning_effort", effort);
    }
    char *text = options && !merge(options, kwargs) ? cJSON_PrintUnformatted(options) : NULL;
    cJSON_Delete(options);
    if (!text) api_fail(f->x, 503, "no_memory", NULL, "no memory for the request");
    return text;
}

/* ---- the prompt ---- */

static int encode(struct chat_ask *a, struct server *sv, const char *messages, const char *options, struct api_error *x)
{
    const struct q_engine *en = worker_engine(sv->worker);
    struct q_err e;
    struct tok_ids *ids = &a->job.prompt;
    if (worker_encode(sv->worker, messages, options, ids, &e)) return api_fail_err(x, e.code == Q_EMISS ? NULL : "messages", &e);
    if (ids->n > (size_t)q_engine_ctx(en))
        return api_fail(x, 400, "context_length_exceeded", "messages", "the prompt has %zu tokens and the context is %d", ids->n, q_engine_ctx(en));
    a->job.thinking = q_reply_opens_thinking(q_engine_tokenizer(en), ids->at, ids->n);
    return 0;
}

/* f has passed; messages are checked. */
static int make_prompt(struct chat_ask *a, struct server *sv, struct fields *f, const cJSON *messages, struct span body)
{
    struct text t = {0};
    size_t at = SIZE_MAX;
    cJSON *user = last_user(messages, &at), *words = user ? last_text(user) : NULL;
    int in_text = cJSON_IsString(words) ? cut_switch(words->valuestring) : -1;
    put_messages(&t, span_member(body, "messages"), in_text >= 0 ? at : SIZE_MAX, user);
    char *options = read_options(f, sv->o.kwargs, in_text);
    int rc = -1;
    if (!options) rc = -1;
    else if (!text_ok(&t)) rc = api_fail(f->x, 503, "no_memory", NULL, "no memory for the request");
    else if (!fields_finish(f, completion_unsupported, n_completion_unsupported, sv->told)) rc = encode(a, sv, t.at, options, f->x);
    free(options);
    text_free(&t);
    return rc;
}

/* ---- the whole ---- */

static void read_stream(struct fields *f, struct chat_ask *a)
{
    a->stream = field_bool(f, "stream", 0);
    const cJSON *o = field_get(f, "stream_options");
    const cJSON *usage = cJSON_GetObjectItemCaseSensitive(o, "include_usage");
    if (o && !cJSON_IsObject(o)) api_fail(f->x, 400, NULL, "stream_options", "field 'stream_options': expected an object");
    else if (usage && !cJSON_IsBool(usage))
        api_fail(f->x, 400, NULL, "stream_options.include_usage", "field 'stream_options.include_usage': expected true or false");
    a->usage = cJSON_IsTrue(usage);
}

/* Values of two supported fields that ask for nothing. */
static void read_inert(struct fields *f)
{
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(f->root, "response_format");
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(format, "type");
    const cJSON *choice = cJSON_GetObjectItemCaseSensitive(f->root, "tool_choice");
    const cJSON *modes = cJSON_GetObjectItemCaseSensitive(f->root, "modalities");
    if (cJSON_IsString(type) && !strcmp(type->valuestring, "text")) field_get(f, "response_format");
    if (cJSON_IsString(choice) && !strcmp(choice->valuestring, "auto")) field_get(f, "tool_choice");
    if (cJSON_GetArraySize(modes) == 1 && cJSON_IsString(modes->child) && !strcmp(modes->child->valuestring, "text")) field_get(f, "modalities");
}

int chat_ask_read(struct chat_ask *a, struct server *sv, const char *body, size_t n, struct api_error *x)
{
    cJSON *root;
    struct fields f;
    *a = (struct chat_ask){.job = job_ask_default()};
    a->job.sampling = worker_sampling(sv->worker);
    if (body_parse(body, n, &root, x)) return -1;
    fields_begin(&f, root, x);
    read_model(&f, sv->alias);
    read_stream(&f, a);
    read_sampling(&f, &a->job.sampling);
    read_max_tokens(&f, &a->job.max_tokens);
    read_stop(&f, &a->job);
    read_inert(&f);
    const cJSON *messages = field_get(&f, "messages");
    struct span whole = {body + strspn(body, " \t\r\n"), n};
    if (!fields_bad(&f) && !check_messages(messages, x)) make_prompt(a, sv, &f, messages, whole);
    cJSON_Delete(root);
    if (!x->status) return 0;
    job_ask_free(&a->job);
    return -1;
}
