#include "messages_form.h"
#include "openai.h"
#include <stdlib.h>
#include <string.h>

struct messages {
    char id[48];
    const char *model;               /* borrowed */
    int n_prompt;
    char *stop[4];                   /* owned */
    int n_stop;
    int block;                       /* index of the block that is open or comes next */
    int open;                        /* enum event_kind of the open block, or -1 */
    enum finish finish;
    int stopped_by;
};

static void close_form(void *state)
{
    struct messages *f = state;
    for (int i = 0; i < f->n_stop; i++) free(f->stop[i]);
    free(f);
}

void *messages_form_open(struct server *sv, const struct ask *ask)
{
    struct messages *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    openai_id("msg_", f->id, sizeof f->id);
    f->model = sv->alias;
    f->n_prompt = (int)ask->job.prompt.n;
    f->open = -1;
    f->stopped_by = -1;
    for (; f->n_stop < ask->job.n_stop; f->n_stop++)
        if (!(f->stop[f->n_stop] = strdup(ask->job.stop[f->n_stop]))) return close_form(f), NULL;
    return f;
}

/* ---- parts that both have ---- */

static const char *error_type(int status)
{
    switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status >= 500 ? "api_error" : "invalid_request_error";
    }
}

void messages_error_json(const struct api_error *x, struct text *out)
{
    text_put(out, "{\"type\":\"error\",\"error\":{\"type\":");
    text_json_z(out, error_type(x->status));
    text_put(out, ",\"message\":");
    text_json_z(out, x->message);
    text_put(out, "}}");
}

/* A stop string that was met, or none. */
static void put_stop(const struct messages *f, enum finish finish, int stopped_by, struct text *out)
{
    const char *met = finish == FINISH_STOP && stopped_by >= 0 && stopped_by < f->n_stop ? f->stop[stopped_by] : NULL;
    text_put(out, "\"stop_reason\":");
    text_json_z(out, finish == FINISH_LENGTH ? "max_tokens" : finish == FINISH_CALLS ? "tool_use" : met ? "stop_sequence" : "end_turn");
    text_put(out, ",\"stop_sequence\":");
    text_json_z(out, met);
}

/* input_tokens are those that were read, not those that were cached. */
static void put_usage(int input, int cached, int output, struct text *out)
{
    text_printf(out, "\"usage\":{\"input_tokens\":%d,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":%d,\"output_tokens\":%d}",
                input - cached, cached, output);
}

static void put_message_head(const struct messages *f, struct text *out)
{
    text_printf(out, "{\"id\":\"%s\",\"type\":\"message\",\"role\":\"assistant\",\"model\":", f->id);
    text_json_z(out, f->model);
    text_put(out, ",\"content\":[");
}

/* ---- streamed ---- */

/* event: NAME, data: {"type": NAME and what is put behind it. */
static void begin_event(const char *name, struct text *out) { text_printf(out, "event: %s\ndata: {\"type\":\"%s\"", name, name); }
static void end_event(struct text *out) { text_put(out, "}\n\n"); }

static void begin(void *state, struct text *out)
{
    const struct messages *f = state;
    begin_event("message_start", out);
    text_put(out, ",\"message\":");
    put_message_head(f, out);
    text_put(out, "],\"stop_reason\":null,\"stop_sequence\":null,");
    put_usage(f->n_prompt, 0, 0, out);
    text_put(out, "}");
    end_event(out);
}

static void end_block(struct messages *f, struct text *out)
{
    if (f->open < 0) return;
    begin_event("content_block_stop", out);
    text_printf(out, ",\"index\":%d", f->block++);
    end_event(out);
    f->open = -1;
}

static void begin_block(struct messages *f, const struct event *ev, struct text *out)
{
    end_block(f, out);
    f->open = ev->kind;
    begin_event("content_block_start", out);
    text_printf(out, ",\"index\":%d,\"content_block\":", f->block);
    if (ev->kind == EVENT_THINKING) text_put(out, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
    else if (ev->kind == EVENT_TEXT) text_put(out, "{\"type\":\"text\",\"text\":\"\"}");
    else {
        text_put(out, "{\"type\":\"tool_use\",\"id\":");
        text_json_z(out, ev->call_id);
        text_put(out, ",\"name\":");
        text_json(out, ev->text, ev->n);
        text_put(out, ",\"input\":{}}");
    }
    end_event(out);
}

static void put_delta(const struct messages *f, const char *type, const char *field, const struct event *ev, struct text *out)
{
    begin_event("content_block_delta", out);
    text_printf(out, ",\"index\":%d,\"delta\":{\"type\":\"%s\",\"%s\":", f->block, type, field);
    text_json(out, ev->text, ev->n);
    text_put(out, "}");
    end_event(out);
}

static void put_event(void *state, const struct event *ev, struct text *out)
{
    struct messages *f = state;
    switch (ev->kind) {
    case EVENT_THINKING:
    case EVENT_TEXT:
        if (!ev->n) break;
        if (f->open != (int)ev->kind) begin_block(f, ev, out);
        if (ev->kind == EVENT_TEXT) put_delta(f, "text_delta", "text", ev, out);
        else put_delta(f, "thinking_delta", "thinking", ev, out);
        break;
    case EVENT_CALL: begin_block(f, ev, out); break;
    case EVENT_ARGUMENTS: put_delta(f, "input_json_delta", "partial_json", ev, out); break;
    case EVENT_CALL_END: end_block(f, out); break;
    case EVENT_END:
        end_block(f, out);
        f->finish = ev->finish;
        f->stopped_by = ev->stopped_by;
    }
}

static void end(void *state, const struct usage *u, struct text *out)
{
    const struct messages *f = state;
    begin_event("message_delta", out);
    text_put(out, ",\"delta\":{");
    put_stop(f, f->finish, f->stopped_by, out);
    text_put(out, "},");
    put_usage(u->n_prompt, u->n_cached, u->n_generated, out);
    end_event(out);
    begin_event("message_stop", out);
    end_event(out);
}

static void fault(void *state, const struct api_error *x, struct text *out)
{
    (void)state;
    text_put(out, "event: error\ndata: ");
    messages_error_json(x, out);
    text_put(out, "\n\n");
}

/* ---- whole ---- */

static void put_text_block(const char *type, const char *field, const struct text *t, int *n, struct text *out)
{
    if (!t->n) return;
    text_printf(out, "%s{\"type\":\"%s\",\"%s\":", (*n)++ ? "," : "", type, field);
    text_json(out, t->at, t->n);
    text_put(out, !strcmp(type, "thinking") ? ",\"signature\":\"\"}" : "}");
}

static void whole(void *state, const struct choice *c, int n, const struct usage *u, struct text *out)
{
    const struct messages *f = state;
    int blocks = 0;
    (void)n;                         /* this API has one choice */
    put_message_head(f, out);
    put_text_block("thinking", "thinking", &c->thinking, &blocks, out);
    put_text_block("text", "text", &c->content, &blocks, out);
    for (int i = 0; i < c->n_calls; i++) {
        const struct call *call = &c->call[i];
        text_put(out, blocks++ ? ",{\"type\":\"tool_use\",\"id\":" : "{\"type\":\"tool_use\",\"id\":");
        text_json_z(out, call->id);
        text_put(out, ",\"name\":");
        text_json(out, text_of(&call->name), call->name.n);
        text_put(out, ",\"input\":");
        text_put(out, call->arguments.n ? call->arguments.at : "{}");
        text_put(out, "}");
    }
    text_put(out, "],");
    put_stop(f, c->finish, c->stopped_by, out);
    text_put(out, ",");
    put_usage(u->n_prompt, u->n_cached, u->n_generated, out);
    text_put(out, "}");
}

const struct form messages_form = {begin, put_event, end, fault, whole, close_form};
