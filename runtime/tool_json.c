#include "tool_json.h"
#include "json_check.h"
#include "span.h"
#include "text.h"
#include "tool_look.h"
#include <cjson/cJSON.h>

int q_tool_braces(struct q_tool_braces *b, const char *s, size_t n)
{
    for (; b->at < n; b->at++) {
        char c = s[b->at];
        if (b->escaped) b->escaped = 0;
        else if (b->in_string) b->in_string = c != '"', b->escaped = c == '\\';
        else if (c == '"') b->in_string = 1;
        else if (c == '{') b->depth++;
        else if (c == '<') return -1;
        else if (c == '}' && --b->depth == 0) return b->at++, 1;
    }
    return 0;
}

/* ---- the call ---- */

static int is_object(const char *s, size_t n)
{
    const char *p = s;
    while (q_look_is_space(*p)) p++;
    return *p == '{' && !json_check(s, n, JSON_MAX_DEPTH - 1, "", NULL);
}

/* As q_tool_json_read. */
static int read_arguments(struct span v, struct tok_text *out, struct q_err *e)
{
    if (!v.at || *v.at == 'n') return q_text_add(out, "{}", 2, e) ? -1 : 1;
    if (*v.at == '{') return q_text_add(out, v.at, v.n, e) ? -1 : 1;
    if (*v.at != '"') return 0;
    cJSON *text = cJSON_ParseWithLength(v.at, v.n);
    int ok = cJSON_IsString(text) && is_object(text->valuestring, strlen(text->valuestring));
    int rc = ok ? q_text_add(out, text->valuestring, strlen(text->valuestring), e) : Q_OK;
    cJSON_Delete(text);
    return rc ? -1 : ok;
}

static int find_tool(struct span v, const struct q_tools *tools)
{
    cJSON *name = v.at ? cJSON_ParseWithLength(v.at, v.n) : NULL;
    int tool = cJSON_IsString(name) ? q_tools_find(tools, name->valuestring, strlen(name->valuestring)) : -1;
    cJSON_Delete(name);
    return tool;
}

int q_tool_json_read(const char *s, size_t n, const struct q_tools *tools, int *tool, struct tok_text *arguments, struct q_err *e)
{
    arguments->n = 0;
    const struct span call = {s, n};
    if (json_check(s, n, JSON_MAX_DEPTH, "", NULL)) return 0;
    *tool = find_tool(span_member(call, "name"), tools);
    if (*tool < 0) return 0;
    struct span v = span_member(call, "arguments");
    return read_arguments(v.at ? v : span_member(call, "parameters"), arguments, e);
}
