#include "answer_rules.h"
#include "runtime/constrain.h"
#include <stdlib.h>
#include <string.h>

/* What one field asks for: NULL texts for what it does not. */
struct format {
    struct q_constraint **to;
    const struct tokenizer *t;
    const char *param;           /* the field's name */
    char **schema;               /* becomes the schema's text, malloc'd */
    struct api_error *x;
};

static int wrong(const struct format *c, const char *expected)
{
    return api_fail(c->x, 400, NULL, c->param, "field '%s': expected %s", c->param, expected);
}

static int done(const struct format *c, int rc, const struct q_err *e)
{
    if (!rc) return 0;
    if (rc != Q_EUNSUP) return api_fail_err(c->x, c->param, e);
    return api_fail(c->x, 400, "unsupported_schema", c->param, "%s: %s", c->param, e->text);
}

/* ---- one function a kind ---- */

static int by_schema_text(const struct format *c, const char *json)
{
    struct q_err e;
    int rc = done(c, q_constraint_from_schema(c->to, c->t, json, strlen(json), &e), &e);
    if (!rc) *c->schema = strdup(json);
    return rc || *c->schema ? rc : api_fail(c->x, 503, "no_memory", NULL, "no memory for the request");
}

/* v: the schema; a string is its text, as some clients send it. */
static int by_schema(const struct format *c, const cJSON *v)
{
    if (cJSON_IsString(v)) return by_schema_text(c, v->valuestring);
    if (!cJSON_IsObject(v) && !cJSON_IsBool(v)) return wrong(c, "a JSON schema, an object");
    char *json = cJSON_PrintUnformatted(v);
    if (!json) return api_fail(c->x, 503, "no_memory", NULL, "no memory for the request");
    int rc = by_schema_text(c, json);
    free(json);
    return rc;
}

static int by_object(const struct format *c) { return by_schema_text(c, "{\"type\":\"object\"}"); }

static int by_grammar(const struct format *c, const cJSON *v)
{
    struct q_err e;
    if (!cJSON_IsString(v) || !*v->valuestring) return wrong(c, "a grammar, a string that is not empty");
    return done(c, q_constraint_from_gbnf(c->to, c->t, v->valuestring, strlen(v->valuestring), &e), &e);
}

static int by_regex(const struct format *c, const cJSON *v)
{
    struct q_err e;
    if (!cJSON_IsString(v)) return wrong(c, "a regular expression, a string");
    return done(c, q_constraint_from_regex(c->to, c->t, v->valuestring, strlen(v->valuestring), &e), &e);
}

static int by_choice(const struct format *c, const cJSON *v)
{
    struct q_err e;
    int n = cJSON_IsArray(v) ? cJSON_GetArraySize(v) : 0, k = 0;
    const char **choice = n ? calloc((size_t)n, sizeof *choice) : NULL;
    if (!n) return wrong(c, "a list of strings, at least one");
    if (!choice) return api_fail(c->x, 503, "no_memory", NULL, "no memory for the request");
    for (const cJSON *s = v->child; s && cJSON_IsString(s); s = s->next) choice[k++] = s->valuestring;
    int rc = k < n ? wrong(c, "a list of strings, at least one") : done(c, q_constraint_from_choice(c->to, c->t, choice, n, &e), &e);
    free(choice);
    return rc;
}

static const cJSON *member(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNull(v) ? NULL : v;
}

/* {"type": "json_schema", "json_schema": {"name", "schema", "strict"}}, or the schema right in it, as older clients have it. */
static int by_response_format(const struct format *c, const cJSON *v)
{
    const cJSON *type = member(v, "type"), *outer = member(v, "json_schema"), *schema = member(outer, "schema");
    if (!cJSON_IsString(type)) return wrong(c, "an object with a type: text, json_object or json_schema");
    if (!strcmp(type->valuestring, "text")) return 0;
    if (!schema) schema = member(v, "schema");
    if (!strcmp(type->valuestring, "json_object")) return schema ? by_schema(c, schema) : by_object(c);
    if (!strcmp(type->valuestring, "regex") && member(v, "pattern")) return by_regex(c, member(v, "pattern"));
    if (!strcmp(type->valuestring, "grammar") && member(v, "grammar")) return by_grammar(c, member(v, "grammar"));
    if (strcmp(type->valuestring, "json_schema")) return wrong(c, "the type text, json_object or json_schema");
    return schema ? by_schema(c, schema) : wrong(c, "a json_schema with a schema");
}

static int by_structured_outputs(const struct format *c, const cJSON *v)
{
    const cJSON *only = v ? v->child : NULL;
    if (!cJSON_IsObject(v) || !only || only->next) return wrong(c, "an object with one of json, regex, choice, grammar or json_object");
    if (!strcmp(only->string, "json")) return by_schema(c, only);
    if (!strcmp(only->string, "regex")) return by_regex(c, only);
    if (!strcmp(only->string, "choice")) return by_choice(c, only);
    if (!strcmp(only->string, "grammar")) return by_grammar(c, only);
    if (!strcmp(only->string, "json_object")) return cJSON_IsTrue(only) ? by_object(c) : 0;
    return wrong(c, "an object with one of json, regex, choice, grammar or json_object");
}

/* ---- the fields ---- */

static const struct {
    const char *name;
    int (*make)(const struct format *c, const cJSON *v);
} formats[] = {
    {"response_format", by_response_format}, {"json_schema", by_schema}, {"grammar", by_grammar}, {"guided_json", by_schema},
    {"guided_regex", by_regex}, {"guided_choice", by_choice}, {"guided_grammar", by_grammar}, {"structured_outputs", by_structured_outputs},
};

/* Some clients send all the fields they know, the unused ones empty. */
static int is_empty(const cJSON *v) { return (cJSON_IsString(v) && !*v->valuestring) || ((cJSON_IsArray(v) || cJSON_IsObject(v)) && !v->child); }

char *read_format(struct fields *f, struct ask *a, struct server *sv)
{
    const char *first = NULL;
    char *schema = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats && !fields_bad(f); i++) {
        const cJSON *v = field_get(f, formats[i].name);
        struct q_constraint *made = NULL;
        char *text = NULL;
        const struct format c = {&made, q_engine_tokenizer(worker_engine(sv->worker)), formats[i].name, &text, f->x};
        if (!v || (is_empty(v) && i) || formats[i].make(&c, v) || !made) continue;
        if (a->job.constraint) {
            api_fail(f->x, 400, NULL, formats[i].name, "expected one of the fields '%s' and '%s', found both", first, formats[i].name);
            q_constraint_free(made);
            free(text);
        } else {
            a->job.constraint = made;
            schema = text;
            first = formats[i].name;
        }
    }
    return schema;
}
