#include "responses_form.h"
#include "openai.h"
#include <stdlib.h>
#include <time.h>

/* One item of the output, as it grows. */
struct item {
    int kind;                        /* enum event_kind: THINKING, TEXT or CALL; -1: none is open */
    int index;
    char id[48];
    char call_id[64];
    struct text name, text;          /* owned; text: thinking, content or arguments */
};

struct responses {
    char id[48];
    time_t created;
    const char *model;               /* borrowed */
    struct responses_echo echo;      /* owned */
    int sequence;                    /* of the next event */
    struct item item;
    int n_items;
    struct text output;              /* owned: finished items, JSON, with commas */
    enum finish finish;
};

static void close_form(void *state)
{
    struct responses *f = state;
    text_free(&f->echo.members);
    text_free(&f->output);
    text_free(&f->item.name);
    text_free(&f->item.text);
    free(f);
}

void *responses_form_open(struct server *sv, struct responses_echo *echo)
{
    struct responses *f = calloc(1, sizeof *f);
    if (!f) return text_free(&echo->members), NULL;
    openai_id("resp_", f->id, sizeof f->id);
    f->created = time(NULL);
    f->model = sv->alias;
    f->echo = *echo;
    f->item.kind = -1;
    return f;
}

/* ---- items and the object ---- */

/* The item as JSON. status: "in_progress" (without its text), "completed" or "incomplete". */
static void put_item(const struct item *it, const char *status, struct text *out)
{
    int done = status[0] != 'i' || status[2] == 'c';
    const char *text = done ? text_of(&it->text) : "";
    size_t n = done ? it->text.n : 0;
    text_printf(out, "{\"id\":\"%s\",\"status\":\"%s\",", it->id, status);
    if (it->kind == EVENT_CALL) {
        text_put(out, "\"type\":\"function_call\",\"call_id\":");
        text_json_z(out, it->call_id);
        text_put(out, ",\"name\":");
        text_json(out, text_of(&it->name), it->name.n);
        text_put(out, ",\"arguments\":");
        text_json(out, text, n);
    } else if (it->kind == EVENT_THINKING) {
        text_put(out, "\"type\":\"reasoning\",\"summary\":[],\"content\":[");
        if (done) {
            text_put(out, "{\"type\":\"reasoning_text\",\"text\":");
            text_json(out, text, n);
            text_put(out, "}");
        }
        text_put(out, "]");
    } else {
        text_put(out, "\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
        if (done) {
            text_put(out, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":");
            text_json(out, text, n);
            text_put(out, "}");
        }
        text_put(out, "]");
    }
    text_put(out, "}");
}

static void put_usage(const struct usage *u, struct text *out)
{
    text_printf(out, "{\"input_tokens\":%d,\"input_tokens_details\":{\"cached_tokens\":%d", u->n_prompt, u->n_cached);
    if (u->n_cut) text_printf(out, ",\"truncated_tokens\":%d", u->n_cut);
    text_printf(out, "},\"output_tokens\":%d,\"output_tokens_details\":{\"reasoning_tokens\":%d},\"total_tokens\":%d}", u->n_generated, u->n_thinking,
                u->n_prompt + u->n_generated);
}

/* status: "in_progress", "completed", "incomplete" or "failed"; u, x may be NULL. */
static void put_object(const struct responses *f, const char *status, const struct usage *u, const struct api_error *x, struct text *out)
{
    text_printf(out, "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld,\"status\":\"%s\",", f->id, (long long)f->created, status);
    text_add(out, text_of(&f->echo.members), f->echo.members.n);
    text_put(out, "\"background\":false,\"previous_response_id\":null,\"store\":false,\"service_tier\":\"default\",\"model\":");
    text_json_z(out, f->model);
    text_put(out, ",\"error\":");
    if (x) {
        text_printf(out, "{\"code\":\"%s\",\"message\":", x->status == 429 ? "rate_limit_exceeded" : "server_error");
        text_json_z(out, x->message);
        text_put(out, "}");
    } else text_put(out, "null");
    text_put(out, ",\"incomplete_details\":");
    text_put(out, status[0] == 'i' && status[2] == 'c' ? "{\"reason\":\"max_output_tokens\"}" : "null");
    text_put(out, ",\"output\":[");
    text_add(out, text_of(&f->output), f->output.n);
    text_put(out, "],\"usage\":");
    if (u)
        put_usage(u, out);
    else text_put(out, "null");
    text_put(out, "}");
    out->bad |= f->echo.members.bad | f->output.bad;
}

/* ---- events ---- */

static void begin_event(struct responses *f, const char *name, struct text *out)
{
    text_printf(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d", name, name, f->sequence++);
}
static void end_event(struct text *out) { text_put(out, "}\n\n"); }

static void put_state(struct responses *f, const char *name, const char *status, const struct usage *u, const struct api_error *x, struct text *out)
{
    begin_event(f, name, out);
    text_put(out, ",\"response\":");
    put_object(f, status, u, x, out);
    end_event(out);
}

static void begin(void *state, struct text *out)
{
    struct responses *f = state;
    put_state(f, "response.created", "in_progress", NULL, NULL, out);
    put_state(f, "response.in_progress", "in_progress", NULL, NULL, out);
}

static void put_item_event(struct responses *f, const char *name, const char *status, struct text *out)
{
    begin_event(f, name, out);
    text_printf(out, ",\"output_index\":%d,\"item\":", f->item.index);
    put_item(&f->item, status, out);
    end_event(out);
}

/* Where in the output: the item, and its only part. */
static void put_place(const struct item *it, struct text *out)
{
    text_printf(out, ",\"item_id\":\"%s\",\"output_index\":%d", it->id, it->index);
    if (it->kind != EVENT_CALL) text_put(out, ",\"content_index\":0");
}

static void put_part_event(struct responses *f, const char *name, const struct text *text, struct text *out)
{
    begin_event(f, name, out);
    put_place(&f->item, out);
    text_put(out, f->item.kind == EVENT_TEXT ? ",\"part\":{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":"
                                             : ",\"part\":{\"type\":\"reasoning_text\",\"text\":");
    text_json(out, text_of(text), text->n);
    text_put(out, "}");
    end_event(out);
}

static void put_done(struct responses *f, struct text *out)
{
    static const struct {
        int kind;
        const char *name, *field;
    } rows[] = {{EVENT_TEXT, "response.output_text.done", "text"}, {EVENT_THINKING, "response.reasoning_text.done", "text"},
        {EVENT_CALL, "response.function_call_arguments.done", "arguments"}};
    const struct item *it = &f->item;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].kind != it->kind) continue;
        begin_event(f, rows[i].name, out);
        put_place(it, out);
        if (it->kind == EVENT_CALL) {
            text_put(out, ",\"name\":");
            text_json(out, text_of(&it->name), it->name.n);
        }
        if (it->kind == EVENT_TEXT) text_put(out, ",\"logprobs\":[]");
        text_printf(out, ",\"%s\":", rows[i].field);
        text_json(out, text_of(&it->text), it->text.n);
        end_event(out);
    }
}

/* The open item, if there is one, becomes part of the output. out NULL: without events. */
static void end_item(struct responses *f, const char *status, struct text *out)
{
    struct item *it = &f->item;
    if (it->kind < 0) return;
    if (out) {
        put_done(f, out);
        if (it->kind != EVENT_CALL) put_part_event(f, "response.content_part.done", &it->text, out);
        put_item_event(f, "response.output_item.done", status, out);
    }
    if (f->output.n) text_put(&f->output, ",");
    put_item(it, status, &f->output);
    f->output.bad |= it->name.bad | it->text.bad;
    it->kind = -1;
    it->name.n = it->text.n = 0;
}

static void begin_item(struct responses *f, int kind, struct text *out)
{
    static const struct text none;
    end_item(f, "completed", out);
    f->item.kind = kind;
    f->item.index = f->n_items++;
    openai_id(kind == EVENT_CALL ? "fc_" : kind == EVENT_TEXT ? "msg_" : "rs_", f->item.id, sizeof f->item.id);
    if (!out || kind == EVENT_CALL) return;
    put_item_event(f, "response.output_item.added", "in_progress", out);
    put_part_event(f, "response.content_part.added", &none, out);
}

static void begin_call(struct responses *f, const char *id, const char *name, size_t n, struct text *out)
{
    size_t at = 0;
    begin_item(f, EVENT_CALL, out);
    for (; id[at] && at + 1 < sizeof f->item.call_id; at++) f->item.call_id[at] = id[at];
    f->item.call_id[at] = 0;
    text_add(&f->item.name, name, n);
    if (out) put_item_event(f, "response.output_item.added", "in_progress", out);
}

static void put_delta(struct responses *f, const char *name, const struct event *ev, struct text *out)
{
    text_add(&f->item.text, ev->text, ev->n);
    begin_event(f, name, out);
    put_place(&f->item, out);
    if (f->item.kind == EVENT_TEXT) text_put(out, ",\"logprobs\":[]");
    text_put(out, ",\"delta\":");
    text_json(out, ev->text, ev->n);
    end_event(out);
}

static void put_event(void *state, const struct event *ev, struct text *out)
{
    struct responses *f = state;
    switch (ev->kind) {
    case EVENT_THINKING:
    case EVENT_TEXT:
        if (!ev->n) break;
        if (f->item.kind != (int)ev->kind) begin_item(f, ev->kind, out);
        put_delta(f, ev->kind == EVENT_TEXT ? "response.output_text.delta" : "response.reasoning_text.delta", ev, out);
        break;
    case EVENT_CALL: begin_call(f, ev->call_id, ev->text, ev->n, out); break;
    case EVENT_ARGUMENTS: put_delta(f, "response.function_call_arguments.delta", ev, out); break;
    case EVENT_CALL_END: end_item(f, "completed", out); break;
    case EVENT_END:
        end_item(f, ev->finish == FINISH_LENGTH ? "incomplete" : "completed", out);
        f->finish = ev->finish;
    }
}

static void end(void *state, const struct usage *u, struct text *out)
{
    struct responses *f = state;
    if (f->finish == FINISH_LENGTH) put_state(f, "response.incomplete", "incomplete", u, NULL, out);
    else put_state(f, "response.completed", "completed", u, NULL, out);
}

static void fault(void *state, const struct api_error *x, struct text *out)
{
    struct responses *f = state;
    end_item(f, "incomplete", out);
    put_state(f, "response.failed", "failed", NULL, x, out);
}

/* ---- whole ---- */

static void add_item(struct responses *f, int kind, const struct text *text, const char *status)
{
    if (!text->n && kind != EVENT_CALL) return;
    if (kind != EVENT_CALL) begin_item(f, kind, NULL);
    text_add(&f->item.text, text_of(text), text->n);
    end_item(f, status, NULL);
}

static void whole(void *state, const struct choice *c, int n, const struct usage *u, struct text *out)
{
    struct responses *f = state;
    const char *last = c->finish == FINISH_LENGTH ? "incomplete" : "completed";
    (void)n;                         /* this API has one choice */
    add_item(f, EVENT_THINKING, &c->thinking, c->content.n || c->n_calls ? "completed" : last);
    add_item(f, EVENT_TEXT, &c->content, c->n_calls ? "completed" : last);
    for (int i = 0; i < c->n_calls; i++) {
        begin_call(f, c->call[i].id, text_of(&c->call[i].name), c->call[i].name.n, NULL);
        add_item(f, EVENT_CALL, &c->call[i].arguments, "completed");
    }
    put_object(f, last, u, NULL, out);
}

const struct form responses_form = {begin, put_event, end, fault, whole, close_form};
