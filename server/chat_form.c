#include "chat_form.h"
#include "openai.h"
#include <stdlib.h>

struct chat {
    struct openai_head head;
    int n;                       /* choices */
    int logprobs;
};

static const char CHUNK[] = "chat.completion.chunk";

void *chat_form_open(struct server *sv, const struct ask *ask)
{
    struct chat *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    openai_head_init(&f->head, "chatcmpl-", sv, ask);
    f->n = ask_choices(ask);
    f->logprobs = ask->job.logprobs >= 0;
    return f;
}

/* ---- chunks ---- */

static void begin_choice(const struct chat *f, int choice, struct text *out)
{
    openai_begin_chunk(&f->head, CHUNK, out);
    text_printf(out, "{\"index\":%d,\"delta\":{", choice);
}

/* ev NULL: no tokens yet. */
static void end_choice(const struct chat *f, const struct event *ev, struct text *out)
{
    text_put(out, "},\"logprobs\":");
    openai_put_chat_logprobs(&f->head, ev ? ev->token : NULL, ev ? ev->n_tokens : 0, out);
    text_put(out, ",\"finish_reason\":");
    if (ev && ev->kind == EVENT_END) openai_put_finish(ev->finish, out);
    else text_put(out, "null");
    text_put(out, "}");
    openai_end_chunk(&f->head, out);
}

static void begin(void *state, struct text *out)
{
    const struct chat *f = state;
    for (int i = 0; i < f->n; i++) {
        begin_choice(f, i, out);
        text_put(out, "\"role\":\"assistant\",\"content\":\"\"");
        end_choice(f, NULL, out);
    }
}

static void put_call(const struct event *ev, struct text *out)
{
    text_printf(out, "\"tool_calls\":[{\"index\":%d,\"id\":", ev->call);
    text_json_z(out, ev->call_id);
    text_put(out, ",\"type\":\"function\",\"function\":{\"name\":");
    text_json(out, ev->text, ev->n);
    text_put(out, ",\"arguments\":\"\"}}]");
}

static void put_arguments(const struct event *ev, struct text *out)
{
    text_printf(out, "\"tool_calls\":[{\"index\":%d,\"function\":{\"arguments\":", ev->call);
    text_json(out, ev->text, ev->n);
    text_put(out, "}}]");
}

static void put_event(void *state, const struct event *ev, struct text *out)
{
    const struct chat *f = state;
    if (ev->kind == EVENT_CALL_END && !ev->n_tokens) return;
    begin_choice(f, ev->choice, out);
    switch (ev->kind) {
    case EVENT_THINKING:
    case EVENT_TEXT:
        text_put(out, ev->kind == EVENT_THINKING ? "\"reasoning_content\":" : "\"content\":");
        text_json(out, ev->text, ev->n);
        break;
    case EVENT_CALL: put_call(ev, out); break;
    case EVENT_ARGUMENTS: put_arguments(ev, out); break;
    case EVENT_CALL_END:
    case EVENT_END: break;
    }
    end_choice(f, ev, out);
}

static void end(void *state, const struct usage *u, struct text *out) { openai_put_done(&((const struct chat *)state)->head, CHUNK, u, out); }

/* ---- whole ---- */

static void put_calls(const struct choice *c, struct text *out)
{
    text_put(out, ",\"tool_calls\":[");
    for (int i = 0; i < c->n_calls; i++) {
        const struct call *call = &c->call[i];
        text_put(out, i ? ",{\"id\":" : "{\"id\":");
        text_json_z(out, call->id);
        text_put(out, ",\"type\":\"function\",\"function\":{\"name\":");
        text_json(out, text_of(&call->name), call->name.n);
        text_put(out, ",\"arguments\":");
        text_json(out, text_of(&call->arguments), call->arguments.n);
        text_put(out, "}}");
    }
    text_put(out, "]");
}

static void put_message(const struct choice *c, struct text *out)
{
    text_put(out, "{\"role\":\"assistant\",\"content\":");
    if (c->content.n || !c->n_calls) text_json(out, text_of(&c->content), c->content.n);
    else text_put(out, "null");
    text_put(out, ",\"refusal\":null");
    if (c->thinking.n) {
        text_put(out, ",\"reasoning_content\":");
        text_json(out, c->thinking.at, c->thinking.n);
    }
    if (c->n_calls) put_calls(c, out);
    text_put(out, "}");
}

static void whole(void *state, const struct choice *c, int n, const struct usage *u, struct text *out)
{
    const struct chat *f = state;
    openai_put_head(&f->head, "chat.completion", out);
    text_put(out, ",\"choices\":[");
    for (int i = 0; i < n; i++) {
        text_printf(out, i ? ",{\"index\":%d,\"message\":" : "{\"index\":%d,\"message\":", i);
        put_message(&c[i], out);
        text_put(out, ",\"logprobs\":");
        if (f->logprobs && !c[i].n_tokens) text_put(out, "{\"content\":[],\"refusal\":null}");
        else openai_put_chat_logprobs(&f->head, c[i].token, c[i].n_tokens, out);
        text_put(out, ",\"finish_reason\":");
        openai_put_finish(c[i].finish, out);
        text_put(out, "}");
    }
    text_put(out, "],");
    openai_put_counts(u, out);
    text_put(out, "}");
}

const struct form chat_form = {begin, put_event, end, openai_fault, whole, free};
