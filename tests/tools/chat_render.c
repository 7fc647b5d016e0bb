/* chat_render: renders chats for tests. Reads JSON lines on stdin, prints one JSON line for each on stdout.
 *
 * In: {"template": "text"?, "messages": [...], "tools": [...]?, "options": {...}?, "add_generation_prompt": bool?,
 *      "as_is": bool?, "guard": bool?}. A line without "template" uses the one of the line before. With "guard" each
 *      "<|" is written "<^|", by the same hook that breaks control tokens.
 * Out: {"text": "..."} or {"error": "...", "code": n}, and with an argument `time`, "ms": processor time of the render.
 */
#include "chat_template.h"
#include "err.h"
#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int break_marks(void *ctx, const char *s, size_t n, char **out, size_t *out_n, struct q_err *e)
{
    char *to = malloc(2 * n + 1), *p = to;
    if (!to) return q_fail(e, Q_EMEM, "guard: no memory");
    for (size_t i = 0; i < n; i++) {
        *p++ = s[i];
        if (s[i] == '<' && i + 1 < n && s[i + 1] == '|') *p++ = '^';
    }
    *out = to, *out_n = (size_t)(p - to);
    return 0;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The text of a member, as JSON; NULL if it is absent. Owned by the caller. Strings stand for JSON text themselves,
 * so that a test can pass what cJSON would change. */
static char *member_text(const cJSON *line, const char *name)
{
    const cJSON *m = cJSON_GetObjectItemCaseSensitive(line, name);
    if (cJSON_IsString(m)) return strdup(m->valuestring);
    return m ? cJSON_PrintUnformatted(m) : NULL;
}

static bool flag(const cJSON *line, const char *name)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(line, name));
}

static int render(struct chat_template *t, const cJSON *line, char **text, size_t *n, struct q_err *e)
{
    static const struct chat_text_guard guard = {break_marks, NULL};
    char *messages = member_text(line, "messages"), *tools = member_text(line, "tools");
    char *options = member_text(line, "options");
    struct chat_request r = {.messages = messages ? messages : "[]", .tools = tools, .options = options,
                             .add_generation_prompt = flag(line, "add_generation_prompt"), .as_is = flag(line, "as_is"),
                             .guard = flag(line, "guard") ? &guard : NULL};
    int err = chat_template_render(t, &r, text, n, e);
    free(messages), free(tools), free(options);
    return err;
}

static void answer(int err, const char *text, const struct q_err *e, double ms)
{
    cJSON *out = cJSON_CreateObject();
    if (err) {
        cJSON_AddStringToObject(out, "error", e->text);
        cJSON_AddNumberToObject(out, "code", err);
    } else {
        cJSON_AddStringToObject(out, "text", text);
    }
    if (ms >= 0) cJSON_AddNumberToObject(out, "ms", ms);
    char *printed = cJSON_PrintUnformatted(out);
    puts(printed ? printed : "{}");
    free(printed);
    cJSON_Delete(out);
}

static void do_line(struct chat_template **t, const cJSON *line, bool timed)
{
    struct q_err e = {0};
    char *text = NULL;
    size_t n = 0;
    int err = 0;
    const cJSON *jinja = cJSON_GetObjectItemCaseSensitive(line, "template");
    if (cJSON_IsString(jinja)) {
        chat_template_close(*t);
        err = chat_template_open(t, jinja->valuestring, strlen(jinja->valuestring), "template", &e);
    }
    double start = now_ms();
    if (!err && *t) err = render(*t, line, &text, &n, &e);
    else if (!err) err = q_fail(&e, Q_EINPUT, "no template yet");
    answer(err, text, &e, timed ? now_ms() - start : -1);
    free(text);
}

int main(int argc, char **argv)
{
    bool timed = argc > 1 && strcmp(argv[1], "time") == 0;
    struct chat_template *t = NULL;
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        cJSON *json = cJSON_Parse(line);
        if (!json) {
            puts("{\"error\":\"chat_render: a line is not JSON\",\"code\":1}");
            continue;
        }
        do_line(&t, json, timed);
        cJSON_Delete(json);
        fflush(stdout);
    }
    free(line);
    chat_template_close(t);
    return 0;
}
