/* The parts of a schema that combine others, and which type a part is. */
#include "constrain_schema.h"
#include "json_check.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void schema_start(struct schema *b, struct grammar *g, const cJSON *root, const char *what)
{
    *b = (struct schema){.g = g};
    b->white = b->string = b->value = b->object = b->array = b->wide = b->text = -1;
    schema_restart(b, root, what);
}

void schema_restart(struct schema *b, const cJSON *root, const char *what)
{
    b->root = root;
    b->what = what;
    b->n_strings = 0;
    strcpy(b->path, "#");
}

void schema_end(struct schema *b)
{
    for (int i = 0; i < b->n_made; i++) cJSON_Delete(b->made[i]);
    free(b->made);
    free(b->ref);
    free(b->strings);
}

void schema_fail(struct schema *b, int code, const char *fmt, ...)
{
    char line[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    grammar_fail(b->g, code, "%s %s: %s", b->what, b->path, line);
}

size_t schema_enter(struct schema *b, const char *part, const char *name)
{
    size_t n = strlen(b->path);
    snprintf(b->path + n, sizeof b->path - n, "/%s%s%s", part, name ? "/" : "", name ? name : "");
    return n;
}

void schema_leave(struct schema *b, size_t before) { b->path[before] = 0; }

int schema_close(struct schema *b, int x) { return b->tag ? EXPR_SEQ(b->g, x, schema_text(b, b->tag)) : x; }

/* ---- keywords ---- */

enum about { OF_ALL = 1, OF_OBJECT = 2, OF_ARRAY = 4, OF_STRING = 8, OF_NUMBER = 16 };

/* What a keyword is about; 0: not known. */
static int about(const char *key)
{
    static const struct { const char *key; int about; } known[] = {
        {"type", OF_ALL}, {"enum", OF_ALL}, {"const", OF_ALL}, {"anyOf", OF_ALL}, {"oneOf", OF_ALL}, {"allOf", OF_ALL}, {"$ref", OF_ALL},
        {"nullable", OF_ALL}, {"properties", OF_OBJECT}, {"required", OF_OBJECT}, {"additionalProperties", OF_OBJECT}, {"items", OF_ARRAY},
        {"prefixItems", OF_ARRAY}, {"minItems", OF_ARRAY}, {"maxItems", OF_ARRAY}, {"minLength", OF_STRING}, {"maxLength", OF_STRING},
        {"pattern", OF_STRING}, {"format", OF_STRING}, {"minimum", OF_NUMBER}, {"maximum", OF_NUMBER}, {"exclusiveMinimum", OF_NUMBER},
        {"exclusiveMaximum", OF_NUMBER}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].key, key)) return known[i].about;
    return 0;
}

static int abouts(struct schema *b, const cJSON *s)
{
    int all = 0;
    const cJSON *k;
    cJSON_ArrayForEach(k, s)
    {
        if (schema_is_note(k)) continue;
        int one = about(k->string);
        if (!one) schema_fail(b, Q_EUNSUP, "'%.60s' is not supported", k->string);
        all |= one;
    }
    return all;
}

static const cJSON *get(const cJSON *s, const char *key) { return cJSON_GetObjectItemCaseSensitive(s, key); }

/* Whether the schema says anything besides notes and this key. */
static int says_more(const cJSON *s, const char *key)
{
    const cJSON *k;
    cJSON_ArrayForEach(k, s) if (!schema_is_note(k) && strcmp(k->string, key)) return 1;
    return 0;
}

/* The schema without a key; NULL: recorded. */
static const cJSON *without(struct schema *b, const cJSON *s, const char *key)
{
    const cJSON *copy = schema_merge(b, s, NULL);
    if (copy) cJSON_DeleteItemFromObjectCaseSensitive((cJSON *)copy, key);
    return copy;
}

/* ---- references ---- */

/* One step of a pointer: the text up to the next /, with ~0 and ~1 and %XX read. */
static const cJSON *pointed(const cJSON *at, const char **p)
{
    char name[256];
    size_t n = 0;
    const char *s = *p;
    for (; *s && *s != '/' && n < sizeof name - 1; s++) {
        unsigned hex;
        if (s[0] == '~' && (s[1] == '0' || s[1] == '1')) name[n++] = *++s == '0' ? '~' : '/';
        else if (s[0] == '%' && s[1] && s[2] && sscanf(s + 1, "%2x", &hex) == 1) name[n++] = (char)hex, s += 2;
        else name[n++] = *s;
    }
    name[n] = 0;
    *p = s;
    if (!cJSON_IsArray(at)) return get(at, name);
    char *end;
    long i = strtol(name, &end, 10);
    return n && !*end && i >= 0 ? cJSON_GetArrayItem(at, (int)i) : NULL;
}

static const cJSON *resolve(struct schema *b, const cJSON *ref)
{
    const cJSON *at = b->root;
    const char *s = cJSON_IsString(ref) ? ref->valuestring : "";
    if (*s != '#') return schema_fail(b, Q_EUNSUP, "$ref is '%.100s'; supported are references within the schema, \"#/...\"", s), NULL;
    for (const char *p = s + 1; *p && at;) at = *p == '/' ? p++, pointed(at, &p) : NULL;
    if (!at) schema_fail(b, Q_EINPUT, "$ref '%.100s' leads nowhere", s);
    return at;
}

/* The rule of a part that is referred to, built when it is met first; so recursion ends. */
static int build_ref(struct schema *b, const cJSON *to, const char *name)
{
    for (int i = 0; i < b->n_ref; i++)
        if (b->ref[i].at == to && b->ref[i].tag == b->tag) return expr_rule(b->g, b->ref[i].rule);
    if (b->n_ref == b->cap_ref) {
        int cap = b->cap_ref * 2 + 16;
        struct schema_ref *p = realloc(b->ref, sizeof *p * (size_t)cap);
        if (!p) return grammar_fail(b->g, Q_EMEM, "no memory for a schema"), 0;
        b->ref = p;
        b->cap_ref = cap;
    }
    int rule = grammar_rule(b->g, name, strlen(name));
    b->ref[b->n_ref++] = (struct schema_ref){to, b->tag, rule};
    grammar_define(b->g, rule, schema_build(b, to));
    return expr_rule(b->g, rule);
}

/* ---- several ---- */

static int build_any_of(struct schema *b, const cJSON *s, const char *key)
{
    const cJSON *list = get(s, key), *rest = says_more(s, key) ? without(b, s, key) : NULL, *x;
    struct expr_kids kids = {0};
    int i = 0;
    if (!cJSON_IsArray(list) || !list->child) schema_fail(b, Q_EINPUT, "'%s' is not a list of schemas", key);
    cJSON_ArrayForEach(x, list)
    {
        char name[16];
        snprintf(name, sizeof name, "%d", i++);
        size_t before = schema_enter(b, key, name);
        const cJSON *one = rest && !b->g->rc ? schema_merge(b, rest, x) : x;
        if (!b->g->rc) expr_kids_add(b->g, &kids, schema_build(b, one));
        schema_leave(b, before);
        if (b->g->rc) break;
    }
    return expr_kids_join(b->g, X_ALT, &kids);
}

static int build_all_of(struct schema *b, const cJSON *s)
{
    const cJSON *list = get(s, "allOf"), *all = without(b, s, "allOf"), *x;
    if (!cJSON_IsArray(list)) schema_fail(b, Q_EINPUT, "'allOf' is not a list of schemas");
    cJSON_ArrayForEach(x, list)
    {
        if (b->g->rc) return 0;
        all = schema_merge(b, all, x);
    }
    return b->g->rc ? 0 : schema_build(b, all);
}

/* ---- one value ---- */

static int is_of_type(const cJSON *v, const char *type)
{
    if (!strcmp(type, "string")) return cJSON_IsString(v);
    if (!strcmp(type, "object")) return cJSON_IsObject(v);
    if (!strcmp(type, "array")) return cJSON_IsArray(v);
    if (!strcmp(type, "boolean")) return cJSON_IsBool(v);
    if (!strcmp(type, "null")) return cJSON_IsNull(v);
    if (!strcmp(type, "number")) return cJSON_IsNumber(v);
    return !strcmp(type, "integer") && cJSON_IsNumber(v) && v->valuedouble == (double)(long long)v->valuedouble;
}

static int type_allows(const cJSON *s, const cJSON *v)
{
    const cJSON *type = get(s, "type"), *t;
    if (!type || (cJSON_IsNull(v) && cJSON_IsTrue(get(s, "nullable")))) return 1;
    if (cJSON_IsString(type)) return is_of_type(v, type->valuestring);
    cJSON_ArrayForEach(t, type) if (cJSON_IsString(t) && is_of_type(v, t->valuestring)) return 1;
    return 0;
}

/* const and enum: the values, those that the type allows. */
static int build_values(struct schema *b, const cJSON *s, int about_all)
{
    const cJSON *one = get(s, "const"), *list = get(s, "enum"), *v;
    struct expr_kids kids = {0};
    if (about_all & ~OF_ALL || (one && list)) schema_fail(b, Q_EUNSUP, "'%s' beside other conditions is not supported", one ? "const" : "enum");
    if (one && type_allows(s, one)) expr_kids_add(b->g, &kids, schema_close(b, schema_literal(b, one)));
    if (!one && (!cJSON_IsArray(list) || !list->child)) schema_fail(b, Q_EINPUT, "'enum' is not a list of values");
    if (!one) cJSON_ArrayForEach(v, list) if (type_allows(s, v)) expr_kids_add(b->g, &kids, schema_close(b, schema_literal(b, v)));
    return expr_kids_join(b->g, X_ALT, &kids);
}

static int build_type(struct schema *b, const cJSON *s, const char *type)
{
    if (!strcmp(type, "object")) return schema_object(b, s);
    if (!strcmp(type, "array")) return schema_array(b, s);
    if (!strcmp(type, "string")) return schema_string(b, s);
    if (!strcmp(type, "number")) return schema_close(b, schema_number(b, s, 0));
    if (!strcmp(type, "integer")) return schema_close(b, schema_number(b, s, 1));
    if (!strcmp(type, "null")) return schema_close(b, schema_text(b, "null"));
    if (!strcmp(type, "boolean")) return schema_close(b, EXPR_ALT(b->g, schema_text(b, "true"), schema_text(b, "false")));
    schema_fail(b, Q_EINPUT, "'type' is '%.60s', expected object, array, string, number, integer, boolean or null", type);
    return 0;
}

static int build_types(struct schema *b, const cJSON *s, int about_all)
{
    static const struct { int about; const char *type; } implied[] = {
        {OF_OBJECT, "object"}, {OF_ARRAY, "array"}, {OF_STRING, "string"}, {OF_NUMBER, "number"}};
    const cJSON *type = get(s, "type"), *t;
    struct expr_kids kids = {0};
    if (cJSON_IsString(type)) {
        expr_kids_add(b->g, &kids, build_type(b, s, type->valuestring));
    } else if (type) {
        if (!cJSON_IsArray(type)) schema_fail(b, Q_EINPUT, "'type' is neither a name nor a list of names");
        else if (!type->child) schema_fail(b, Q_EINPUT, "no type is left: nothing is of all those asked for together");
        cJSON_ArrayForEach(t, type) expr_kids_add(b->g, &kids, build_type(b, s, cJSON_IsString(t) ? t->valuestring : ""));
    } else {
        for (int i = 0; i < 4; i++)
            if (about_all & implied[i].about) expr_kids_add(b->g, &kids, build_type(b, s, implied[i].type));
        if (!kids.n) return b->tag ? schema_any_text(b) : schema_any(b);
    }
    if (cJSON_IsTrue(get(s, "nullable"))) expr_kids_add(b->g, &kids, build_type(b, s, "null"));
    return expr_kids_join(b->g, X_ALT, &kids);
}

static int build_ref_or_merge(struct schema *b, const cJSON *s)
{
    const cJSON *to = resolve(b, get(s, "$ref"));
    if (!to) return 0;
    if (!says_more(s, "$ref")) return build_ref(b, to, get(s, "$ref")->valuestring);
    const cJSON *rest = without(b, s, "$ref"), *both = rest ? schema_merge(b, rest, to) : NULL;
    return both ? schema_build(b, both) : 0;
}

static int build_object_schema(struct schema *b, const cJSON *s)
{
    int all = abouts(b, s);
    if (b->g->rc) return 0;
    if (get(s, "$ref")) return build_ref_or_merge(b, s);
    if (get(s, "allOf")) return build_all_of(b, s);
    if (get(s, "anyOf")) return build_any_of(b, s, "anyOf");
    if (get(s, "oneOf")) return build_any_of(b, s, "oneOf");
    if (get(s, "const") || get(s, "enum")) return build_values(b, s, all);
    return build_types(b, s, all);
}

int schema_build(struct schema *b, const cJSON *s)
{
    int x = 0;
    if (b->g->rc) return 0;
    if (cJSON_IsTrue(s)) return b->tag ? schema_any_text(b) : schema_any(b);
    if (cJSON_IsFalse(s)) return expr_nothing(b->g);
    if (!cJSON_IsObject(s)) return schema_fail(b, Q_EINPUT, "expected a schema, an object or true or false"), 0;
    if (b->depth >= GRAMMAR_MAX_DEPTH) return schema_fail(b, Q_ELIMIT, "schemas nest more than %d deep", GRAMMAR_MAX_DEPTH), 0;
    b->depth++;
    x = build_object_schema(b, s);
    b->depth--;
    return x;
}

int schema_size_good(struct grammar *g, const cJSON *json)
{
    const cJSON *k;
    int most = cJSON_IsObject(json) ? 2000 : 5000, n = 0;
    cJSON_ArrayForEach(k, json)
    {
        if (++n > most) grammar_fail(g, Q_ELIMIT, "a schema with %s of more than %d", cJSON_IsObject(json) ? "an object" : "a list", most);
        if (g->rc || !schema_size_good(g, k)) return 0;
    }
    return 1;
}

void constrain_read_schema(struct grammar *g, const struct constrain_text *text)
{
    struct schema b;
    struct q_err e;
    int rc = json_check(text->at, text->n, JSON_MAX_DEPTH, "json_schema", &e);
    if (rc) return grammar_fail(g, rc, "%s", e.text);
    cJSON *root = cJSON_ParseWithLength(text->at, text->n);
    if (!root) return grammar_fail(g, Q_EMEM, "no memory for a schema");
    schema_start(&b, g, root, "json_schema");
    g->root = grammar_rule(g, "json_schema", 11);
    int x = schema_size_good(g, root) ? schema_build(&b, root) : 0;
    if (!g->rc) grammar_define(g, g->root, x);
    schema_end(&b);
    cJSON_Delete(root);
}
