#include "chat_fields.h"
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

const struct unsupported completion_unsupported[] = {
    {"messages", NULL}, {"prompt", NULL}, {"input", NULL}, {"prompt_embeds", NULL},
    {"tools", NULL}, {"tool_choice", "none"}, {"functions", NULL}, {"function_call", "none"},
    {"response_format", NULL}, {"json_schema", NULL}, {"grammar", NULL}, {"structured_outputs", NULL},
    {"guided_json", NULL}, {"guided_regex", NULL}, {"guided_choice", NULL}, {"guided_grammar", NULL},
    {"n_probs", NULL}, {"prompt_logprobs", NULL}, {"top_logprobs", NULL}, {"logprobs", NULL},
    {"modalities", NULL}, {"audio", NULL}, {"web_search_options", NULL}, {"verbosity", "medium"}, {"prediction", NULL},
    {"best_of", "1"}, {"echo", NULL}, {"suffix", NULL}, {"use_beam_search", NULL}, {"length_penalty", "1"},
    {"min_tokens", NULL}, {"stop_token_ids", NULL}, {"bad_words", NULL}, {"allowed_token_ids", NULL},
    {"include_stop_str_in_output", NULL}, {"skip_special_tokens", "true"}, {"truncate_prompt_tokens", NULL},
    {"typical_p", "1"}, {"typ_p", "1"}, {"top_n_sigma", "-1"}, {"top_a", NULL}, {"tfs_z", "1"}, {"mirostat", NULL},
    {"dynatemp_range", NULL}, {"xtc_probability", NULL}, {"dry_multiplier", NULL}, {"samplers", NULL},
    {"reasoning_format", "auto"}, {"chat_template", NULL}, {"documents", NULL},
    {"lora", NULL}, {"plugins", NULL}, {"prefix", NULL}, {"return_token_ids", NULL}, {"n_keep", NULL}, {"id_slot", "-1"},
};
const size_t n_completion_unsupported = sizeof completion_unsupported / sizeof *completion_unsupported;

/* ---- sampling ---- */

/* A draw for each request that gives none; -1 asks for that too, as some clients do. */
static uint64_t read_seed(struct fields *f)
{
    const long long most = 1LL << 53; /* what a JSON number holds exactly */
    long long seed = field_int(f, "seed", -most, most, -1);
    if (seed != -1) return (uint64_t)seed;
    return (uint64_t)randombytes_random() << 32 | randombytes_random();
}

static void read_sampling(struct fields *f, struct q_sampling_params *s)
{
    s->temp = (float)field_number(f, "temperature", 0, 100, (double)s->temp);
    /* 0 means the likeliest token, which a very small share gives. */
    s->top_p = fmaxf(1e-6f, (float)field_number(f, "top_p", 0, 1, (double)s->top_p));
    s->min_p = (float)field_number(f, "min_p", 0, 1, (double)s->min_p);
    s->top_k = (int)field_int(f, "top_k", -1, 1 << 30, s->top_k);
    s->presence = (float)field_number(f, "presence_penalty", -100, 100, (double)s->presence);
    s->frequency = (float)field_number(f, "frequency_penalty", -100, 100, (double)s->frequency);
    s->repeat = (float)field_number(f, "repetition_penalty", 0.01, 100, (double)s->repeat);
    s->repeat = (float)field_number(f, "repeat_penalty", 0.01, 100, (double)s->repeat);
    s->last_n = (int)field_int(f, "repeat_last_n", -1, 1 << 24, s->last_n);
    s->seed = read_seed(f);
}

/* ---- logit_bias ---- */

/* A token id written as a key; -1: it is none. */
static long token_key(const char *s, int n_vocab)
{
    char *end;
    if (*s < '0' || *s > '9') return -1;
    long id = strtol(s, &end, 10);
    return *end || id >= n_vocab ? -1 : id;
}

static void add_bias(struct fields *f, struct job_ask *ask, const cJSON *v, int n_vocab)
{
    long id = token_key(v->string, n_vocab);
    double value = v->valuedouble;
    if (id < 0) {
        api_fail(f->x, 400, NULL, "logit_bias", "field 'logit_bias': expected token ids from 0 to %d as keys, found '%.40s'", n_vocab - 1, v->string);
    } else if (!cJSON_IsNumber(v) || !(value >= -100 && value <= 100)) {
        api_fail(f->x, 400, NULL, "logit_bias", "field 'logit_bias': expected a number from -100 to 100 for token %ld", id);
    } else {
        ask->bias_id[ask->n_bias] = (int32_t)id;
        ask->bias[ask->n_bias++] = (float)value;
    }
}

static void read_bias(struct fields *f, struct job_ask *ask, int n_vocab)
{
    const int most = 1000;
    const cJSON *v = field_get(f, "logit_bias");
    if (!v) return;
    int n = cJSON_IsObject(v) ? cJSON_GetArraySize(v) : -1;
    if (n < 0 || n > most) {
        api_fail(f->x, 400, NULL, "logit_bias", "field 'logit_bias': expected an object of at most %d token ids", most);
        return;
    }
    ask->bias_id = calloc((size_t)n + 1, sizeof *ask->bias_id);
    ask->bias = calloc((size_t)n + 1, sizeof *ask->bias);
    if (!ask->bias_id || !ask->bias) api_fail(f->x, 503, "no_memory", NULL, "no memory for the request");
    for (v = v->child; v && !fields_bad(f); v = v->next) add_bias(f, ask, v, n_vocab);
}

/* ---- limits ---- */

/* -1 is no limit, as llama-server has it. */
static long long read_limit(struct fields *f, const char *name, long long absent)
{
    const cJSON *v = field_get(f, name);
    return v && cJSON_IsNumber(v) && v->valuedouble == -1 ? -1 : field_int(f, name, 1, 1 << 30, absent);
}

void read_max_tokens(struct fields *f, int *max_tokens, int absent)
{
    long long most = read_limit(f, "n_predict", absent);
    most = read_limit(f, "max_tokens", most);
    *max_tokens = (int)read_limit(f, "max_completion_tokens", most);
}

static int add_stop(struct fields *f, struct job_ask *ask, const cJSON *v)
{
    const int most = (int)(sizeof ask->stop / sizeof *ask->stop);
    if (!cJSON_IsString(v)) return api_fail(f->x, 400, NULL, "stop", "field 'stop': expected a string or a list of strings");
    if (!*v->valuestring) return api_fail(f->x, 400, NULL, "stop", "field 'stop': expected strings that are not empty");
    if (ask->n_stop == most) return api_fail(f->x, 400, NULL, "stop", "field 'stop': expected at most %d strings", most);
    char *copy = strdup(v->valuestring);
    if (!copy) return api_fail(f->x, 503, "no_memory", NULL, "no memory for the request");
    ask->stop[ask->n_stop++] = copy;
    return 0;
}

static void read_stop(struct fields *f, struct job_ask *ask)
{
    const cJSON *v = field_get(f, "stop");
    if (!v) return;
    if (!cJSON_IsArray(v)) {
        add_stop(f, ask, v);
        return;
    }
    for (const cJSON *s = v->child; s; s = s->next)
        if (add_stop(f, ask, s)) return;
}

void read_choices(struct fields *f, struct ask *a, struct server *sv, int n_prompts)
{
    int most = sv->o.queue < ASK_MOST ? sv->o.queue : ASK_MOST;
    a->n = (int)field_int(f, "n", 1, ASK_MOST, 1);
    long long best_of = field_int(f, "best_of", 1, ASK_MOST, a->n);
    if (fields_bad(f)) return;
    if (best_of != a->n)
        api_fail(f->x, 400, "unsupported_field", "best_of", "field 'best_of' is not supported by this version, but for the same as n");
    else if (n_prompts > most || a->n > most / n_prompts)
        api_fail(f->x, 400, NULL, a->n > 1 ? "n" : "prompt", "expected at most %d answers from one request, found %d prompts and n = %d", most,
                 n_prompts, a->n);
}

/* ---- logprobs ---- */

void read_chat_logprobs(struct fields *f, struct job_ask *ask)
{
    int on = field_bool(f, "logprobs", 0);
    long long top = field_int(f, "top_logprobs", 0, Q_MOST_TOP, -1);
    if (top > 0 && !on && !fields_bad(f)) api_fail(f->x, 400, NULL, "top_logprobs", "field 'top_logprobs': expected 'logprobs' to be true with it");
    ask->logprobs = !on ? -1 : top < 0 ? 0 : (int)top;
}

void read_legacy_logprobs(struct fields *f, struct job_ask *ask)
{
    const cJSON *v = field_get(f, "logprobs");
    ask->logprobs = v && cJSON_IsFalse(v) ? -1 : (int)field_int(f, "logprobs", 0, Q_MOST_TOP, -1);
}

/* ---- all ---- */

/* Another model than the one that is served is a 404. */
static void read_model(struct fields *f, const char *alias)
{
    const char *model = field_string(f, "model");
    if (model && strcmp(model, alias) && !fields_bad(f))
        api_fail(f->x, 404, "model_not_found", "model", "the model '%.200s' is not served here, only '%s'", model, alias);
}

static void read_stream(struct fields *f, struct ask *a)
{
    a->stream = field_bool(f, "stream", 0);
    const cJSON *o = field_get(f, "stream_options");
    const cJSON *usage = cJSON_GetObjectItemCaseSensitive(o, "include_usage");
    if (o && !cJSON_IsObject(o)) api_fail(f->x, 400, NULL, "stream_options", "field 'stream_options': expected an object");
    else if (usage && !cJSON_IsBool(usage))
        api_fail(f->x, 400, NULL, "stream_options.include_usage", "field 'stream_options.include_usage': expected true or false");
    a->usage = cJSON_IsTrue(usage);
}

/* truncate: none, head or middle, as the server's option; truncation: OpenAI's disabled or auto, which leaves out what is oldest. */
static enum q_cut read_cut(struct fields *f, enum q_cut absent)
{
    const char *truncate = field_string(f, "truncate"), *truncation = field_string(f, "truncation");
    int how = truncate ? q_cut_parse(truncate) : (int)absent;
    if (how < 0 && !fields_bad(f))
        api_fail(f->x, 400, NULL, "truncate", "field 'truncate': expected none, head or middle, found '%.40s'", truncate);
    if (truncation && strcmp(truncation, "auto") && strcmp(truncation, "disabled") && !fields_bad(f))
        api_fail(f->x, 400, NULL, "truncation", "field 'truncation': expected auto or disabled, found '%.40s'", truncation);
    if (how < 0 || truncate || !truncation) return how < 0 ? Q_CUT_NEVER : (enum q_cut)how;
    return strcmp(truncation, "auto") ? Q_CUT_NEVER : absent == Q_CUT_NEVER ? Q_CUT_HEAD : absent;
}

/* Known fields that change no answer: who asks, what a service may keep, how its prompts are cached. */
static void read_inert(struct fields *f)
{
    static const char *const name[] = {"user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
                                       "priority", "request_id", "timings_per_token"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) field_get(f, name[i]);
    field_bool(f, "cache_prompt", 1);
}

void read_common(struct fields *f, struct ask *a, struct server *sv)
{
    *a = (struct ask){.job = job_ask_default(), .n = 1};
    a->job.sampling = worker_sampling(sv->worker);
    read_model(f, sv->alias);
    read_stream(f, a);
    read_sampling(f, &a->job.sampling);
    read_stop(f, &a->job);
    read_bias(f, &a->job, tok_count(q_engine_tokenizer(worker_engine(sv->worker))));
    a->job.ignore_eos = field_bool(f, "ignore_eos", 0);
    a->cut = read_cut(f, sv->o.cut);
    read_inert(f);
}
