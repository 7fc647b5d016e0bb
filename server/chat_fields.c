#include "chat_fields.h"
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

const struct unsupported completion_unsupported[] = {
    {"tools", NULL}, {"tool_choice", "none"}, {"functions", NULL}, {"function_call", "none"},
    {"response_format", NULL}, {"json_schema", NULL}, {"grammar", NULL}, {"structured_outputs", NULL},
    {"guided_json", NULL}, {"guided_regex", NULL}, {"guided_choice", NULL}, {"guided_grammar", NULL},
    {"logprobs", NULL}, {"top_logprobs", NULL}, {"n_probs", NULL}, {"prompt_logprobs", NULL},
    {"logit_bias", NULL}, {"modalities", NULL}, {"audio", NULL}, {"web_search_options", NULL}, {"verbosity", "medium"},
    {"best_of", "1"}, {"echo", NULL}, {"suffix", NULL}, {"use_beam_search", NULL}, {"length_penalty", "1"},
    {"ignore_eos", NULL}, {"min_tokens", NULL}, {"stop_token_ids", NULL}, {"bad_words", NULL}, {"allowed_token_ids", NULL},
    {"include_stop_str_in_output", NULL}, {"skip_special_tokens", "true"}, {"truncate_prompt_tokens", NULL},
    {"typical_p", "1"}, {"typ_p", "1"}, {"top_n_sigma", "-1"}, {"top_a", NULL}, {"tfs_z", "1"}, {"mirostat", NULL},
    {"dynatemp_range", NULL}, {"xtc_probability", NULL}, {"dry_multiplier", NULL}, {"samplers", NULL},
    {"thinking_budget_tokens", "-1"}, {"reasoning_budget", "-1"}, {"thinking_budget", "-1"}, {"reasoning", NULL},
    {"continue_final_message", NULL}, {"add_generation_prompt", "true"}, {"chat_template", NULL}, {"documents", NULL},
    {"lora", NULL}, {"plugins", NULL}, {"prefix", NULL},
};
const size_t n_completion_unsupported = sizeof completion_unsupported / sizeof *completion_unsupported;

/* A draw for each request that gives none; -1 asks for that too, as some clients do. */
static uint64_t read_seed(struct fields *f)
{
    const long long most = 1LL << 53; /* what a JSON number holds exactly */
    long long seed = field_int(f, "seed", -most, most, -1);
    if (seed != -1) return (uint64_t)seed;
    return (uint64_t)randombytes_random() << 32 | randombytes_random();
}

void read_sampling(struct fields *f, struct q_sampling_params *s)
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

void read_max_tokens(struct fields *f, int *max_tokens)
{
    long long most = field_int(f, "max_tokens", 1, 1 << 30, -1);
    *max_tokens = (int)field_int(f, "max_completion_tokens", 1, 1 << 30, most);
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

void read_stop(struct fields *f, struct job_ask *ask)
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

void read_model(struct fields *f, const char *alias)
{
    const char *model = field_string(f, "model");
    if (model && strcmp(model, alias) && !fields_bad(f))
        api_fail(f->x, 404, "model_not_found", "model", "the model '%.200s' is not served here, only '%s'", model, alias);
    if (field_int(f, "n", 1, 128, 1) != 1 && !fields_bad(f))
        api_fail(f->x, 400, "unsupported_field", "n", "field 'n' is not supported by this version, but for 1");
}
