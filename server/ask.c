#include "ask.h"
#include "runtime/constrain.h"
#include "runtime/tool_list.h"
#include <stdlib.h>
#include <string.h>

void ask_free(struct ask *a)
{
    for (int i = 0; i + 1 < a->n_prompts; i++) free(a->more[i].at);
    free(a->more);
    q_tools_close(a->tools);
    job_ask_free(&a->job);
    *a = (struct ask){0};
}

int ask_choices(const struct ask *a) { return a->n_prompts * a->n; }

static const struct tok_ids *prompt_of(const struct ask *a, int choice) { return choice < a->n ? &a->job.prompt : &a->more[choice / a->n - 1]; }

/* NULL: no memory. */
static void *copy_of(const void *from, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);
    return to && bytes ? memcpy(to, from, bytes) : to;
}

static int copy_prompt(const struct tok_ids *from, struct tok_ids *to)
{
    *to = (struct tok_ids){.at = copy_of(from->at, from->n * sizeof *from->at), .n = from->n, .cap = from->n};
    return !to->at;
}

static int copy_stops(const struct job_ask *from, struct job_ask *to)
{
    for (to->n_stop = 0; to->n_stop < from->n_stop; to->n_stop++)
        if (!(to->stop[to->n_stop] = strdup(from->stop[to->n_stop]))) return 1;
    return 0;
}

static int copy_bias(const struct job_ask *from, struct job_ask *to)
{
    size_t n = (size_t)from->n_bias;
    if (!n) return 0;
    to->bias_id = copy_of(from->bias_id, n * sizeof *to->bias_id);
    to->bias = copy_of(from->bias, n * sizeof *to->bias);
    return !to->bias_id || !to->bias;
}

int ask_job(const struct ask *a, int choice, struct job_ask *out, struct q_err *e)
{
    *out = a->job;
    out->prompt = (struct tok_ids){0};
    out->n_stop = 0;
    out->bias_id = NULL;
    out->bias = NULL;
    out->constraint = NULL;
    int bad = copy_prompt(prompt_of(a, choice), &out->prompt) || copy_stops(&a->job, out) || copy_bias(&a->job, out);
    out->sampling.seed += (uint64_t)(choice % a->n);
    if (!bad && a->job.constraint) bad = q_constraint_clone(&out->constraint, a->job.constraint, e);
    if (!bad) return Q_OK;
    job_ask_free(out);
    return q_fail(e, Q_EMEM, "no memory for a request");
}

/* 0, or -1 with *x. */
static int cut_prompt(struct ask *a, struct server *sv, struct tok_ids *ids, const char *param, struct api_error *x)
{
    struct q_err e;
    int left_out, ctx = q_engine_ctx(worker_engine(sv->worker));
    int rc = q_cut_prompt(q_engine_tokenizer(worker_engine(sv->worker)), ids, ctx, a->job.max_tokens, a->cut, &left_out, &e);
    a->n_cut += left_out;
    if (rc == Q_ELIMIT) return api_fail(x, 400, "context_length_exceeded", param, "%s", e.text);
    return rc ? api_fail_err(x, param, &e) : 0;
}

int ask_add_prompt(struct ask *a, struct server *sv, struct tok_ids *ids, const char *param, struct api_error *x)
{
    size_t ctx = (size_t)q_engine_ctx(worker_engine(sv->worker));
    struct tok_ids *more = a->more;
    int rc = 0;
    if (!ids->n) rc = api_fail(x, 400, NULL, param, "%s: expected at least one token, found none", param);
    else if (a->cut != Q_CUT_NEVER && cut_prompt(a, sv, ids, param, x))
        rc = -1;
    else if (ids->n > ctx)
        rc = api_fail(x, 400, "context_length_exceeded", param, "the prompt has %zu tokens and the context is %zu", ids->n, ctx);
    else if (a->n_prompts && !(more = realloc(a->more, (size_t)a->n_prompts * sizeof *more)))
        rc = api_fail(x, 503, "no_memory", NULL, "no memory for the request");
    if (rc) {
        free(ids->at);
        return rc;
    }
    a->more = more;
    *(a->n_prompts ? &more[a->n_prompts - 1] : &a->job.prompt) = *ids;
    a->n_prompts++;
    return 0;
}
