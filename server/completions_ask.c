#include "completions_ask.h"
#include "answer_rules.h"
#include "chat_fields.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tokenizer *tokenizer_of(struct server *sv) { return q_engine_tokenizer(worker_engine(sv->worker)); }

static int add_text(struct ask *a, struct server *sv, const char *text, const char *param, struct api_error *x)
{
    struct tok_ids ids = {0};
    struct q_err e;
    if (!tok_encode(tokenizer_of(sv), text, strlen(text), TOK_PARSE_CONTROL, &ids, &e)) return ask_add_prompt(a, sv, &ids, param, x);
    free(ids.at);
    return api_fail_err(x, param, &e);
}

static int add_ids(struct ask *a, struct server *sv, const cJSON *list, const char *param, struct api_error *x)
{
    int n = cJSON_GetArraySize(list), most = tok_count(tokenizer_of(sv));
    struct tok_ids ids = {.at = malloc(((size_t)n + 1) * sizeof *ids.at), .cap = (size_t)n + 1};
    if (!ids.at) return api_fail(x, 503, "no_memory", NULL, "no memory for the request");
    for (const cJSON *v = list->child; v; v = v->next) {
        if (!cJSON_IsNumber(v) || v->valuedouble != floor(v->valuedouble) || !(v->valuedouble >= 0 && v->valuedouble < most)) {
            free(ids.at);
            return api_fail(x, 400, NULL, param, "%s: expected token ids, whole numbers from 0 to %d", param, most - 1);
        }
        ids.at[ids.n++] = v->valueint;
    }
    return ask_add_prompt(a, sv, &ids, param, x);
}

static int add_any(struct ask *a, struct server *sv, const cJSON *v, const char *param, struct api_error *x)
{
    if (cJSON_IsString(v)) return add_text(a, sv, v->valuestring, param, x);
    if (cJSON_IsArray(v)) return add_ids(a, sv, v, param, x);
    return api_fail(x, 400, NULL, param, "%s: expected a string or a list of token ids", param);
}

/* Prompts in `v`: a list of ids is one, a list of texts or lists is many. */
static int count_prompts(const cJSON *v) { return cJSON_IsArray(v) && v->child && !cJSON_IsNumber(v->child) ? cJSON_GetArraySize(v) : 1; }

static int add_prompts(struct ask *a, struct server *sv, const cJSON *v, struct api_error *x)
{
    char param[48];
    int i = 0;
    if (!cJSON_IsArray(v) || !v->child || cJSON_IsNumber(v->child)) return add_any(a, sv, v, "prompt", x);
    for (const cJSON *one = v->child; one; one = one->next) {
        snprintf(param, sizeof param, "prompt[%d]", i++);
        if (add_any(a, sv, one, param, x)) return -1;
    }
    return 0;
}

static void read_prompts(struct fields *f, struct ask *a, struct server *sv)
{
    const cJSON *prompt = field_get(f, "prompt");
    read_choices(f, a, sv, count_prompts(prompt));
    if (!prompt && !fields_bad(f)) api_fail(f->x, 400, NULL, "prompt", "field 'prompt': expected a string or a list, found none");
    if (!fields_finish(f, completion_unsupported, n_completion_unsupported, sv->told)) add_prompts(a, sv, prompt, f->x);
}

static void read_echo(struct fields *f, struct job_ask *ask)
{
    ask->echo = field_bool(f, "echo", 0);
    if (ask->echo && ask->logprobs >= 0 && !fields_bad(f))
        api_fail(f->x, 400, "unsupported_field", "echo", "field 'echo' is not supported by this version together with 'logprobs'");
}

int completions_ask_read(struct ask *a, struct server *sv, const char *body, size_t n, struct api_error *x)
{
    cJSON *root;
    struct fields f;
    *a = (struct ask){0};
    if (body_parse(body, n, &root, x)) return -1;
    fields_begin(&f, root, x);
    read_common(&f, a, sv);
    a->job.raw = 1;
    read_max_tokens(&f, &a->job.max_tokens, 16);
    read_legacy_logprobs(&f, &a->job);
    read_echo(&f, &a->job);
    free(read_format(&f, a, sv));
    read_prompts(&f, a, sv);
    cJSON_Delete(root);
    if (!x->status) return 0;
    ask_free(a);
    return -1;
}
