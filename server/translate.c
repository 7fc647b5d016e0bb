#include "translate.h"
#include "chat_ask.h"
#include <stdio.h>

int translate_begin(struct translation *t, const char *text, size_t n, struct api_error *x)
{
    *t = (struct translation){.whole = {text + strspn(text, " \t\r\n"), n}, .x = x};
    if (body_parse(text, n, &t->root, x)) return -1;
    fields_begin(&t->f, t->root, x);
    chat_body_begin(&t->body);
    return 0;
}

int translate_end(struct translation *t, int rc, const struct unsupported *table, size_t n, struct ask *a, struct server *sv)
{
    *a = (struct ask){0};
    if (!rc) rc = fields_finish(&t->f, table, n, sv->told);
    if (!rc && !chat_body_end(&t->body)) rc = api_fail(t->x, 503, "no_memory", NULL, "no memory for the request");
    if (!rc) rc = chat_ask_read(a, sv, t->body.out.at, t->body.out.n, t->x);
    chat_body_free(&t->body);
    cJSON_Delete(t->root);
    return rc;
}

void translate_number(struct translation *t, const char *name, long long value)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", value);
    chat_body_raw(&t->body, name, (struct span){text, (size_t)n});
}

void translate_same(struct translation *t, const char *name)
{
    if (field_get(&t->f, name)) chat_body_raw(&t->body, name, span_member(t->whole, name));
}

/* Takes the value. */
static void put(struct translation *t, const char *name, struct text *value)
{
    chat_body_raw(&t->body, name, (struct span){text_of(value), value->n});
    t->body.out.bad |= value->bad;
    text_free(value);
}

void translate_function_choice(struct translation *t, const char *name)
{
    struct text v = {0};
    text_put(&v, "{\"type\":\"function\",\"function\":{\"name\":");
    text_json_z(&v, name);
    text_put(&v, "}}");
    put(t, "tool_choice", &v);
}

void translate_schema(struct translation *t, const char *name, int strict, struct span schema)
{
    struct text v = {0};
    text_put(&v, "{\"type\":\"json_schema\",\"json_schema\":{\"name\":");
    text_json_z(&v, name);
    text_put(&v, strict ? ",\"strict\":true,\"schema\":" : ",\"schema\":");
    text_add(&v, schema.at, schema.n);
    text_put(&v, "}}");
    put(t, "response_format", &v);
}
