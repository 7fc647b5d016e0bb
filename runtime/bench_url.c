#include "bench_url.h"
#include "clock.h"
#include "sse_reader.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct bench_url_got *got;
    struct sse_reader sse;
    int pieces, done, finished;   /* finished: by a finish_reason, of a server that sends no [DONE] */
    struct q_err *e;
    int rc;
};

static char *request(const struct bench_url_ask *a)
{
    cJSON *root = cJSON_CreateObject(), *message = cJSON_CreateObject(), *messages = cJSON_CreateArray();
    cJSON_AddStringToObject(root, "model", a->model);
    cJSON_AddStringToObject(message, "role", "user");
    cJSON_AddStringToObject(message, "content", a->text);
    cJSON_AddItemToArray(messages, message);
    cJSON_AddItemToObject(root, "messages", messages);
    cJSON_AddNumberToObject(root, "max_tokens", a->generate);
    cJSON_AddNumberToObject(root, "temperature", 0);
    cJSON_AddBoolToObject(root, "stream", 1);
    cJSON_AddBoolToObject(cJSON_AddObjectToObject(root, "stream_options"), "include_usage", 1);
    if (!a->plain) cJSON_AddBoolToObject(root, "ignore_eos", 1);
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return text;
}

static const cJSON *member(const cJSON *o, const char *name) { return cJSON_GetObjectItemCaseSensitive(o, name); }

static int whole(const cJSON *o, const char *name, int absent)
{
    const cJSON *v = member(o, name);
    return cJSON_IsNumber(v) && v->valueint >= 0 ? v->valueint : absent;
}


static int has_text(const cJSON *o, const char *name) { const cJSON *v = member(o, name); return cJSON_IsString(v) && *v->valuestring; }

/* Whether a chunk shows the reader something: text, thinking (both names in use) or a tool call. */
static int is_piece(const cJSON *chunk)
{
    const cJSON *delta = member(cJSON_GetArrayItem(member(chunk, "choices"), 0), "delta");
    return has_text(delta, "content") || has_text(delta, "reasoning_content") || has_text(delta, "reasoning")
           || cJSON_GetArraySize(member(delta, "tool_calls")) > 0;
}

static void read_usage(const cJSON *usage, struct bench_url_got *g)
{
    if (!cJSON_IsObject(usage)) return;
    g->prompt = whole(usage, "prompt_tokens", 0);
    g->generated = whole(usage, "completion_tokens", 0);
    g->cached = whole(member(usage, "prompt_tokens_details"), "cached_tokens", -1);
}

static int on_event(void *arg, const char *data, size_t n)
{
    struct reading *r = arg;
    double now = clock_s() - r->got->begin;
    if (!strcmp(data, "[DONE]")) return r->done = 1;
    cJSON *chunk = cJSON_ParseWithLength(data, n);
    const cJSON *error = member(chunk, "error");
    if (!chunk) r->rc = q_fail(r->e, Q_EINPUT, "expected JSON in an event, found: %.100s", data);
    else if (error)
        r->rc = q_fail(r->e, Q_EINPUT, "the server broke off: %.400s", has_text(error, "message") ? member(error, "message")->valuestring : data);
    else if (is_piece(chunk)) {
        if (!r->pieces++) r->got->first_s = now;
        r->got->whole_s = now;
    }
    r->finished |= has_text(cJSON_GetArrayItem(member(chunk, "choices"), 0), "finish_reason");
    read_usage(member(chunk, "usage"), r->got);
    cJSON_Delete(chunk);
    return r->rc;
}

static int on_bytes(void *arg, const char *s, size_t n)
{
    struct reading *r = arg;
    int rc = sse_push(&r->sse, s, n, on_event, r);
    if (rc < 0 && !r->rc) r->rc = q_fail(r->e, Q_ELIMIT, "an event of more than 16 MiB");
    return r->rc;   /* after [DONE] the rest is read too: the connection is kept */
}

int bench_url_run(struct http_client *c, const struct bench_url_ask *ask, struct bench_url_got *got, struct q_err *e)
{
    char *json = request(ask);
    if (!json) return q_fail(e, Q_EMEM, "no memory for a request");
    *got = (struct bench_url_got){.cached = -1, .begin = clock_s()};
    struct reading r = {.got = got, .e = e};
    int rc = http_client_stream(c, "/chat/completions", json, on_bytes, &r, NULL, e);
    if (!rc) rc = r.rc;
    if (!rc && !r.pieces) rc = q_fail(e, Q_EINPUT, "%s/chat/completions: expected a stream of text, found none", http_client_base(c));
    if (!rc && !r.done && !r.finished) rc = q_fail(e, Q_EIO, "%s/chat/completions: the stream ended before the answer did", http_client_base(c));
    if (!rc && !got->generated) {
        got->counted = 1;
        got->generated = r.pieces;
    }
    sse_free(&r.sse);
    free(json);
    return rc;
}

int bench_url_model(struct http_client *c, char *name, size_t n, struct q_err *e)
{
    struct tok_text text = {0};
    int rc = http_client_ask(c, "/models", NULL, &text, NULL, e);
    cJSON *root = rc ? NULL : cJSON_ParseWithLength(text.at ? text.at : "", text.n);
    const cJSON *id = member(cJSON_GetArrayItem(member(root, "data"), 0), "id");
    if (!rc && !cJSON_IsString(id)) rc = q_fail(e, Q_EINPUT, "%s/models: expected a list of models; name one with -m", http_client_base(c));
    if (!rc && snprintf(name, n, "%s", id->valuestring) >= (int)n) rc = q_fail(e, Q_ELIMIT, "a model's name of more than %zu characters", n - 1);
    cJSON_Delete(root);
    free(text.at);
    return rc;
}
