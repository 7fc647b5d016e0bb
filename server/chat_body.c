#include "chat_body.h"

void chat_body_begin(struct chat_body *b)
{
    *b = (struct chat_body){0};
    text_put(&b->out, "{\"messages\":[");
}

static void begin_message(struct chat_body *b, const char *role)
{
    if (b->n_messages++) text_put(&b->out, ",");
    text_put(&b->out, "{\"role\":");
    text_json_z(&b->out, role);
}

static void clear(struct text *t)
{
    t->n = 0;
    if (t->at) *t->at = 0;
}

/* The assistant's turn, if one is open, becomes a message. */
static void close_turn(struct chat_body *b)
{
    if (!b->answering) return;
    b->answering = 0;
    begin_message(b, "assistant");
    text_put(&b->out, ",\"content\":");
    text_json(&b->out, text_of(&b->content), b->content.n);
    if (b->thinking.n) {
        text_put(&b->out, ",\"reasoning_content\":");
        text_json(&b->out, b->thinking.at, b->thinking.n);
    }
    if (b->calls.n) {
        text_put(&b->out, ",\"tool_calls\":[");
        text_add(&b->out, b->calls.at, b->calls.n);
        text_put(&b->out, "]");
    }
    text_put(&b->out, "}");
    b->out.bad |= b->content.bad | b->thinking.bad | b->calls.bad;
    clear(&b->content);
    clear(&b->thinking);
    clear(&b->calls);
}

void chat_body_message(struct chat_body *b, const char *role, const char *text, size_t n)
{
    close_turn(b);
    begin_message(b, role);
    text_put(&b->out, ",\"content\":");
    text_json(&b->out, text, n);
    text_put(&b->out, "}");
}

void chat_body_result(struct chat_body *b, const char *call_id, const char *text, size_t n)
{
    close_turn(b);
    begin_message(b, "tool");
    text_put(&b->out, ",\"tool_call_id\":");
    text_json_z(&b->out, call_id);
    text_put(&b->out, ",\"content\":");
    text_json(&b->out, text, n);
    text_put(&b->out, "}");
}

void chat_body_said(struct chat_body *b, const char *text, size_t n)
{
    b->answering = 1;
    text_add(&b->content, text, n);
}

void chat_body_thought(struct chat_body *b, const char *text, size_t n)
{
    b->answering = 1;
    text_add(&b->thinking, text, n);
}

void chat_body_call(struct chat_body *b, const char *call_id, const char *name, struct span arguments)
{
    struct text *t = &b->calls;
    b->answering = 1;
    text_put(t, t->n ? ",{\"id\":" : "{\"id\":");
    text_json_z(t, call_id);
    text_put(t, ",\"type\":\"function\",\"function\":{\"name\":");
    text_json_z(t, name);
    text_put(t, ",\"arguments\":");
    if (arguments.at) text_add(t, arguments.at, arguments.n);
    else text_put(t, "{}");
    text_put(t, "}}");
}

void chat_body_tool(struct chat_body *b, const char *name, const char *description, struct span schema)
{
    struct text *t = &b->tools;
    text_put(t, t->n ? ",{\"type\":\"function\",\"function\":{\"name\":" : "{\"type\":\"function\",\"function\":{\"name\":");
    text_json_z(t, name);
    if (description) {
        text_put(t, ",\"description\":");
        text_json_z(t, description);
    }
    if (schema.at) {
        text_put(t, ",\"parameters\":");
        text_add(t, schema.at, schema.n);
    }
    text_put(t, "}}");
}

void chat_body_fields(struct chat_body *b)
{
    close_turn(b);
    text_put(&b->out, "]");
}

static void put_name(struct chat_body *b, const char *name)
{
    text_put(&b->out, ",");
    text_json_z(&b->out, name);
    text_put(&b->out, ":");
}

void chat_body_raw(struct chat_body *b, const char *name, struct span value)
{
    if (!value.at) return;
    put_name(b, name);
    text_add(&b->out, value.at, value.n);
}

void chat_body_text(struct chat_body *b, const char *name, const char *value)
{
    if (!value) return;
    put_name(b, name);
    text_json_z(&b->out, value);
}

int chat_body_end(struct chat_body *b)
{
    if (b->tools.n) {
        put_name(b, "tools");
        text_put(&b->out, "[");
        text_add(&b->out, b->tools.at, b->tools.n);
        text_put(&b->out, "]");
    }
    text_put(&b->out, "}");
    return text_ok(&b->out) && !b->tools.bad;
}

void chat_body_free(struct chat_body *b)
{
    text_free(&b->out);
    text_free(&b->content);
    text_free(&b->thinking);
    text_free(&b->calls);
    text_free(&b->tools);
}
