#include "chat_messages.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cJSON *member(const cJSON *o, const char *name) { return cJSON_GetObjectItemCaseSensitive(o, name); }

/* ---- checks ---- */

static int check_part(const cJSON *part, int message, int i, struct api_error *x)
{
    char param[64];
    snprintf(param, sizeof param, "messages[%d].content[%d]", message, i);
    const cJSON *type = member(part, "type");
    if (!cJSON_IsObject(part)) return api_fail(x, 400, NULL, param, "%s: expected a content part, an object with a type", param);
    if (!cJSON_IsString(type)) return api_fail(x, 400, NULL, param, "%s: expected a type", param);
    const char *t = type->valuestring;
    if (!strcmp(t, "text") || !strcmp(t, "refusal")) {
        if (cJSON_IsString(member(part, t))) return 0;
        return api_fail(x, 400, NULL, param, "%s.%s: expected a string", param, t);
    }
    if (strstr(t, "image"))
        return api_fail(x, 400, "unsupported_content", param, "%s: this model has no vision part, so images cannot be read", param);
    return api_fail(x, 400, "unsupported_content", param, "%s: parts of type '%.40s' are not supported by this version, only text", param, t);
}

static int check_messages(const cJSON *messages, int ctx, struct api_error *x)
{
    int i = 0, k, parts = 0;
    if (!cJSON_IsArray(messages) || !messages->child)
        return api_fail(x, 400, NULL, "messages", "field 'messages': expected a list of at least one message");
    for (const cJSON *m = messages->child; m; m = m->next, i++) {
        const cJSON *content = member(m, "content");
        if (!cJSON_IsArray(content)) continue; /* the rest is checked where the template is rendered */
        k = 0;
        for (const cJSON *part = content->child; part; part = part->next)
            if (check_part(part, i, k++, x)) return -1;
        parts += k;
    }
    if (i <= ctx && parts <= ctx) return 0;
    return api_fail(x, 400, "context_length_exceeded", "messages", "there are %d messages of %d parts and the context has %d tokens", i, parts, ctx);
}

/* ---- the switch in the text ---- */

static int has_role(const cJSON *m, const char *role)
{
    const cJSON *r = member(m, "role");
    return cJSON_IsString(r) && !strcmp(r->valuestring, role);
}

static cJSON *last_user(cJSON *messages)
{
    cJSON *found = NULL;
    for (cJSON *m = messages->child; m; m = m->next)
        if (has_role(m, "user")) found = m;
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

/* ---- an answer's beginning ---- */

/* A string, or the joined texts of parts; NULL: no memory. */
static char *text_of_content(const cJSON *content)
{
    struct text t = {0};
    if (cJSON_IsString(content)) return strdup(content->valuestring);
    for (const cJSON *part = cJSON_IsArray(content) ? content->child : NULL; part; part = part->next) {
        const cJSON *s = member(part, member(part, "type")->valuestring);
        text_put(&t, s->valuestring);
    }
    if (!t.at && !t.bad) return strdup("");
    if (!t.bad) return t.at;
    text_free(&t);
    return NULL;
}

/* m is the last message, its number is i. */
static int take_begun(struct chat_messages *out, const cJSON *m, int i, struct api_error *x)
{
    char param[64];
    const cJSON *content = member(m, "content"), *calls = member(m, "tool_calls"), *thinking = member(m, "reasoning_content");
    if (!thinking) thinking = member(m, "reasoning");
    snprintf(param, sizeof param, "messages[%d]", i);
    if (cJSON_IsArray(calls) && calls->child)
        return api_fail(x, 400, NULL, "messages", "%s: expected the results of its tool calls, or text to be continued, behind the last message",
                        param);
    if (content && !cJSON_IsNull(content) && !cJSON_IsString(content) && !cJSON_IsArray(content))
        return api_fail(x, 400, NULL, "messages", "%s.content: expected a string or a list of parts", param);
    out->begun.content = text_of_content(content);
    out->begun.thinking = strdup(cJSON_IsString(thinking) ? thinking->valuestring : "");
    out->continued = 1;
    if (out->begun.content && out->begun.thinking) return 0;
    return api_fail(x, 503, "no_memory", NULL, "no memory for the request");
}

/* ---- the list ---- */

/* The list as the caller wrote it, but for `changed`, which is printed, and the last one if it is `dropped`. */
static void put_messages(struct text *t, struct span list, const cJSON *messages, const cJSON *changed, int dropped)
{
    struct span s = {0};
    text_put(t, "[");
    for (const cJSON *m = messages->child; m && !(dropped && !m->next); m = m->next) {
        char *printed = m == changed ? cJSON_PrintUnformatted(m) : NULL;
        s = span_next(list, s);
        if (m != messages->child) text_put(t, ",");
        if (m != changed) text_add(t, s.at, s.n);
        else if (printed) text_put(t, printed);
        else t->bad = 1;
        free(printed);
    }
    text_put(t, "]");
}

int chat_messages_read(struct chat_messages *out, cJSON *messages, struct span list, int ctx, int may_continue, struct api_error *x)
{
    *out = (struct chat_messages){.switched = -1};
    if (check_messages(messages, ctx, x)) return -1;
    int n = cJSON_GetArraySize(messages);
    const cJSON *last = cJSON_GetArrayItem(messages, n - 1);
    if (may_continue && n > 1 && has_role(last, "assistant") && take_begun(out, last, n - 1, x)) return -1;
    cJSON *user = last_user(messages), *words = user ? last_text(user) : NULL;
    if (cJSON_IsString(words)) out->switched = cut_switch(words->valuestring);
    put_messages(&out->json, list, messages, out->switched >= 0 ? user : NULL, out->continued);
    return text_ok(&out->json) ? 0 : api_fail(x, 503, "no_memory", NULL, "no memory for the request");
}

void chat_messages_free(struct chat_messages *m)
{
    text_free(&m->json);
    free((char *)m->begun.thinking);
    free((char *)m->begun.content);
    *m = (struct chat_messages){0};
}
