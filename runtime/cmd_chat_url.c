/* Answers from an OpenAI-compatible server: /v1/chat/completions, streamed. Sampling that was not asked for is the server's choice. */
#include "bench_url.h"
#include "clock.h"
#include "cmd_chat_from.h"
#include "http_client.h"
#include "json_check.h"
#include "sse_reader.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct remote {
    struct chat_from base;       /* first */
    struct http_client *client;  /* owned */
    char model[512];
};

/* One answer on its way. */
struct reading {
    const struct chat_ask *ask;
    struct q_answer *out;
    struct sse_reader sse;
    struct q_err *e;
    double begin, first, last;   /* clock_s() */
    int pieces, ended, stopped;  /* a finish reason or [DONE] came; the caller wants no more */
    int left_out;                /* tokens of the prompt that the server says it cut */
    int rc;
};

/* ---- the request ---- */

/* Only what was given on the command line. */
static void put_sampling(cJSON *root, const struct cli_sampling *s)
{
    const struct q_sampling_params *p = &s->params;
    const struct { int opt; const char *name; double value; } field[] = {
        {CLI_TEMP, "temperature", (double)p->temp}, {CLI_TOP_K, "top_k", p->top_k}, {CLI_TOP_P, "top_p", (double)p->top_p},
        {CLI_MIN_P, "min_p", (double)p->min_p}, {CLI_REPEAT, "repeat_penalty", (double)p->repeat},
        {CLI_FREQUENCY, "frequency_penalty", (double)p->frequency}, {CLI_PRESENCE, "presence_penalty", (double)p->presence}};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        if (cli_sampling_given(s, field[i].opt)) cJSON_AddNumberToObject(root, field[i].name, field[i].value);
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)p->seed);   /* a number of cJSON's would lose its last digits */
    if (cli_sampling_given(s, CLI_SEED)) cJSON_AddRawToObject(root, "seed", seed);
}

static char *request(const struct remote *r, const struct chat_ask *ask)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "model", r->model);
    cJSON_AddRawToObject(root, "messages", ask->messages);
    cJSON_AddBoolToObject(root, "stream", 1);
    cJSON_AddBoolToObject(cJSON_AddObjectToObject(root, "stream_options"), "include_usage", 1);
    if (ask->most >= 0) cJSON_AddNumberToObject(root, "max_tokens", (double)ask->most);
    if (ask->cut != Q_CUT_NEVER) cJSON_AddStringToObject(root, "truncate", q_cut_name(ask->cut));
    if (ask->think >= 0) cJSON_AddBoolToObject(cJSON_AddObjectToObject(root, "chat_template_kwargs"), "enable_thinking", ask->think);
    put_sampling(root, ask->sampling);
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return text;
}

/* ---- the stream ---- */

static const cJSON *member(const cJSON *o, const char *name) { return cJSON_GetObjectItemCaseSensitive(o, name); }

static int count_of(const cJSON *o, const char *name)
{
    const cJSON *v = member(o, name);
    return cJSON_IsNumber(v) && v->valueint > 0 ? v->valueint : 0;
}

static int take_text(struct reading *r, enum q_part part, const cJSON *text)
{
    if (!cJSON_IsString(text) || !*text->valuestring) return 0;
    r->last = clock_s();
    if (!r->pieces++) r->first = r->last;
    return r->ask->text(r->ask->arg, part, text->valuestring, strlen(text->valuestring));
}

static void take_chunk(struct reading *r, const cJSON *chunk)
{
    const cJSON *choice = cJSON_GetArrayItem(member(chunk, "choices"), 0), *delta = member(choice, "delta");
    const cJSON *usage = member(chunk, "usage"), *finish = member(choice, "finish_reason"), *thinking = member(delta, "reasoning_content");
    if (!thinking) thinking = member(delta, "reasoning");   /* newer vLLM's name of it */
    if (take_text(r, Q_PART_THINKING, thinking) || take_text(r, Q_PART_CONTENT, member(delta, "content"))) r->stopped = 1;
    if (cJSON_IsString(finish)) {
        r->ended = 1;
        r->out->finish = strcmp(finish->valuestring, "length") ? Q_FINISH_STOP : Q_FINISH_LENGTH;
    }
    if (!cJSON_IsObject(usage)) return;
    r->out->n_prompt = count_of(usage, "prompt_tokens");
    r->out->n_generated = count_of(usage, "completion_tokens");
    r->left_out = count_of(usage, "truncated_tokens");
    r->out->n_cached = count_of(member(usage, "prompt_tokens_details"), "cached_tokens");
}

static int on_event(void *arg, const char *data, size_t n)
{
    struct reading *r = arg;
    if (!strcmp(data, "[DONE]")) return r->ended = 1, 0;
    cJSON *chunk = utf8_valid(data, n) ? cJSON_ParseWithLength(data, n) : NULL;
    const cJSON *error = member(chunk, "error"), *said = member(error, "message");
    if (!chunk) r->rc = q_fail(r->e, Q_EINPUT, "expected JSON in an event of the server, found something else");
    else if (error) r->rc = q_fail(r->e, Q_EINPUT, "the server broke off: %.400s", cJSON_IsString(said) ? said->valuestring : "it does not say why");
    else take_chunk(r, chunk);
    cJSON_Delete(chunk);
    return r->rc || r->stopped;
}

static int on_bytes(void *arg, const char *s, size_t n)
{
    struct reading *r = arg;
    int stop = sse_push(&r->sse, s, n, on_event, r);
    if (stop < 0 && !r->rc) r->rc = q_fail(r->e, Q_ELIMIT, "an event of more than 16 MiB");
    return stop;
}

/* Counts of a server that gives none are those of pieces. */
static void sum_up(struct reading *r)
{
    struct q_answer *a = r->out;
    if (!a->n_generated) a->n_generated = r->pieces;
    if (!r->pieces) return;
    a->prefill_s = r->first - r->begin;
    a->decode_s = r->last - r->first;
}

static int answer(struct chat_from *f, const struct chat_ask *ask, struct q_answer *out, struct q_err *e)
{
    struct remote *m = (struct remote *)f;
    *out = (struct q_answer){.stopped_by = -1};
    struct reading r = {.ask = ask, .out = out, .e = e, .begin = clock_s()};
    char *json = request(m, ask);
    if (!json) return q_fail(e, Q_EMEM, "no memory for a request");
    int rc = http_client_stream(m->client, "/chat/completions", json, on_bytes, &r, NULL, e);
    if (!rc) rc = r.rc;
    int cancelled = ask->cancelled(ask->arg) || r.stopped;
    if (!rc && !r.ended && !cancelled) rc = q_fail(e, Q_EIO, "%s: the stream ended before the answer did", http_client_base(m->client));
    if (!rc && !r.ended) out->finish = Q_FINISH_CANCELLED;
    f->left_out = r.left_out;
    sum_up(&r);
    sse_free(&r.sse);
    free(json);
    return rc;
}

/* ---- the server ---- */

static void close_remote(struct chat_from *f)
{
    struct remote *m = (struct remote *)f;
    http_client_close(m->client);
    free(m);
}

static int find_model(struct remote *m, const char *name, struct q_err *e)
{
    if (!name) return bench_url_model(m->client, m->model, sizeof m->model, e);
    int n = snprintf(m->model, sizeof m->model, "%s", name);
    return n < (int)sizeof m->model ? Q_OK : q_fail(e, Q_EINPUT, "-m: a model's name of more than %zu characters", sizeof m->model - 1);
}

int chat_from_url(struct chat_from **out, const struct chat_server *s, const struct q_cli *cli, struct q_err *e)
{
    struct remote *m = calloc(1, sizeof *m);
    if (!m) return q_fail(e, Q_EMEM, "no memory for a conversation");
    m->base = (struct chat_from){.answer = answer, .close = close_remote};
    const struct http_client_opts o = {.url = s->url, .key = s->key, .cancelled = s->cancelled, .arg = s->arg};
    int rc = http_client_open(&m->client, &o, e);
    if (!rc) rc = find_model(m, s->model, e);
    if (s->cancelled(s->arg)) rc = q_fail(e, Q_EIO, "interrupted");
    if (rc) {
        close_remote(&m->base);
        return rc;
    }
    cli_fact(cli, "%s at %s", m->model, http_client_base(m->client));
    *out = &m->base;
    return Q_OK;
}
