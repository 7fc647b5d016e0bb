#include "chat_ask.h"
#include "answer_rules.h"
#include "chat_fields.h"
#include "chat_messages.h"
#include "chat_thinking.h"
#include "runtime/constrain.h"
#include "runtime/reply.h"
#include <stdlib.h>
#include <string.h>

/* Text is what there is. */
static void read_modalities(struct fields *f)
{
    const cJSON *modes = cJSON_GetObjectItemCaseSensitive(f->root, "modalities");
    if (cJSON_GetArraySize(modes) == 1 && cJSON_IsString(modes->child) && !strcmp(modes->child->valuestring, "text")) field_get(f, "modalities");
}

/* Whether a last message of the assistant's is to be continued: unless the request says that it is a whole one. */
static int may_continue(struct fields *f)
{
    int add = field_bool(f, "add_generation_prompt", -1), go_on = field_bool(f, "continue_final_message", -1);
    if (add == 0 && go_on == 0)
        api_fail(f->x, 400, NULL, "add_generation_prompt", "field 'add_generation_prompt': expected true, or 'continue_final_message' to be true");
    return go_on >= 0 ? go_on : add <= 0;
}

/* What makes a prompt: JSON texts for the template. */
struct prompt {
    struct chat_messages messages;       /* owned */
    char *tools, *options;               /* owned; tools may be NULL */
};

/* The form of an answer that is continued holds for its beginning too. */
static int accept_begun(struct ask *a, const struct tokenizer *t, const char *content, struct api_error *x)
{
    struct tok_ids ids = {0};
    struct q_err e;
    int rc = tok_encode(t, content, strlen(content), 0, &ids, &e);
    for (size_t i = 0; i < ids.n && !rc; i++) rc = q_constraint_accept(a->job.constraint, ids.at[i], &e);
    free(ids.at);
    if (rc == Q_EINPUT)
        return api_fail(x, 400, NULL, "messages", "messages: expected the last one to begin an answer of the form that is asked for");
    return rc ? api_fail_err(x, "messages", &e) : 0;
}

static int encode(struct ask *a, struct server *sv, const struct prompt *p, struct api_error *x)
{
    const struct chat_messages *m = &p->messages;
    struct tok_ids ids = {0};
    struct q_err e;
    const struct tokenizer *t = q_engine_tokenizer(worker_engine(sv->worker));
    if (worker_encode(sv->worker, m->json.at, p->tools, p->options, m->continued ? &m->begun : NULL, &ids, &e)) {
        free(ids.at);
        return api_fail_err(x, e.code == Q_EMISS ? NULL : "messages", &e);
    }
    if (ask_add_prompt(a, sv, &ids, "messages", x)) return -1;
    a->job.thinking = q_reply_opens_thinking(t, a->job.prompt.at, a->job.prompt.n);
    return m->continued && a->job.constraint ? accept_begun(a, t, m->begun.content, x) : 0;
}

/* f is read but for what makes the prompt. */
static void read_prompt(struct fields *f, struct ask *a, struct server *sv, struct span body, const char *schema)
{
    struct prompt p = {0};
    int go_on = may_continue(f);
    cJSON *messages = (cJSON *)field_get(f, "messages"); /* f's own tree */
    if (fields_bad(f)) return;
    if (!chat_messages_read(&p.messages, messages, span_member(body, "messages"), q_engine_ctx(worker_engine(sv->worker)), go_on, f->x)) {
        p.options = read_thinking(f, sv->o.kwargs, p.messages.switched, &a->job.think_budget);
        p.tools = read_tools(f, a, sv, body, schema);
        if (!fields_finish(f, completion_unsupported, n_completion_unsupported, sv->told)) encode(a, sv, &p, f->x);
        free(p.options);
        free(p.tools);
    }
    chat_messages_free(&p.messages);
}

int chat_ask_read(struct ask *a, struct server *sv, const char *body, size_t n, struct api_error *x)
{
    cJSON *root;
    struct fields f;
    *a = (struct ask){0};
    if (body_parse(body, n, &root, x)) return -1;
    fields_begin(&f, root, x);
    read_common(&f, a, sv);
    read_max_tokens(&f, &a->job.max_tokens, -1);
    read_choices(&f, a, sv, 1);
    read_chat_logprobs(&f, &a->job);
    read_modalities(&f);
    char *schema = read_format(&f, a, sv);
    read_prompt(&f, a, sv, (struct span){body + strspn(body, " \t\r\n"), n}, schema);
    free(schema);
    cJSON_Delete(root);
    if (!x->status) return 0;
    ask_free(a);
    return -1;
}
