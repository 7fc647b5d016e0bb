/* Objects and arrays. */
#include "constrain_schema.h"
#include <stdlib.h>
#include <string.h>

static const cJSON *get(const cJSON *s, const char *key) { return cJSON_GetObjectItemCaseSensitive(s, key); }

int schema_is_required(const cJSON *s, const char *name)
{
    const cJSON *r;
    cJSON_ArrayForEach(r, get(s, "required")) if (cJSON_IsString(r) && !strcmp(r->valuestring, name)) return 1;
    return 0;
}

/* ---- names that are not declared ---- */

struct name {
    const char *rest; /* what is left of it */
};

static uint32_t char_at(const char *s, int *n)
{
    unsigned char c = (unsigned char)*s;
    *n = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    uint32_t v = *n > 1 ? c & (0x7Fu >> *n) : c;
    for (int i = 1; i < *n; i++) v = v << 6 | ((unsigned char)s[i] & 0x3F);
    return v;
}

static int by_text(const void *a, const void *b) { return strcmp(((const struct name *)a)->rest, ((const struct name *)b)->rest); }

/* Any text but those of the names, which are in order. */
static int other_text(struct schema *b, const struct name *name, int n)
{
    struct grammar *g = b->g;
    struct expr_range *first = malloc(sizeof *first * (size_t)(n + 1));
    struct name *rest = malloc(sizeof *rest * (size_t)(n + 1));
    struct expr_kids kids = {0};
    int any = expr_repeat(g, expr_class_not(g, X_JSON, NULL, 0), 0, -1), k = 0, len;
    int ends_here = n && !*name->rest;
    if (!first || !rest) grammar_fail(g, Q_EMEM, "no memory for a schema");
    for (int i = ends_here; i < n && !g->rc;) {
        uint32_t c = char_at(name[i].rest, &len);
        int m = 0;
        for (; i < n && char_at(name[i].rest, &len) == c; i++) rest[m++].rest = name[i].rest + len;
        first[k++] = (struct expr_range){c, c};
        expr_kids_add(g, &kids, EXPR_SEQ(g, expr_class(g, X_JSON, first + k - 1, 1), other_text(b, rest, m)));
    }
    if (!g->rc) expr_kids_add(g, &kids, EXPR_SEQ(g, expr_class_not(g, X_JSON, first, k), any));
    if (!ends_here) expr_kids_add(g, &kids, expr_empty(g));
    free(first);
    free(rest);
    return expr_kids_join(g, X_ALT, &kids);
}

static int other_name(struct schema *b, const cJSON *s)
{
    const cJSON *properties = get(s, "properties"), *required = get(s, "required"), *p;
    int n = cJSON_GetArraySize(properties) + cJSON_GetArraySize(required), k = 0;
    if (!n) return schema_any_string(b);
    struct name *name = malloc(sizeof *name * (size_t)n);
    if (!name) return grammar_fail(b->g, Q_EMEM, "no memory for a schema"), 0;
    cJSON_ArrayForEach(p, properties) name[k++].rest = p->string;
    cJSON_ArrayForEach(p, required) if (cJSON_IsString(p)) name[k++].rest = p->valuestring;
    for (int i = 0; i < k; i++)
        if (strlen(name[i].rest) > 128) schema_fail(b, Q_ELIMIT, "a property's name is longer than 128 bytes beside additionalProperties");
    qsort(name, (size_t)k, sizeof *name, by_text);
    for (int i = n = 0; i < k; i++)
        if (!n || strcmp(name[i].rest, name[n - 1].rest)) name[n++] = name[i];
    int x = b->g->rc ? 0 : EXPR_SEQ(b->g, schema_text(b, "\""), other_text(b, name, n), schema_text(b, "\""));
    free(name);
    return x;
}

/* ---- objects ---- */

/* One property as it is written, with the white space behind it. */
struct part {
    int x, required;
};

static int key_value(struct schema *b, int key, int value)
{
    int w = schema_white(b);
    return EXPR_SEQ(b->g, key, w, schema_text(b, ":"), w, value, w);
}

static int comma(struct schema *b) { return EXPR_SEQ(b->g, schema_text(b, ","), schema_white(b)); }

/* The parts in order, others behind them. */
static int in_order(struct schema *b, const struct part *part, int n, int others)
{
    struct grammar *g = b->g;
    struct expr_kids kids = {0};
    expr_kids_add(g, &kids, comma(b));
    for (int i = 0; i < n; i++) {
        expr_kids_add(g, &kids, part[i].x);
        expr_kids_add(g, &kids, part[i].required);
    }
    if (others >= 0) {
        expr_kids_add(g, &kids, EXPR_SEQ(g, others, expr_repeat(g, EXPR_SEQ(g, comma(b), others), 0, -1)));
        expr_kids_add(g, &kids, 0);
    }
    return expr_kids_join(g, X_PARTS, &kids);
}

/* Declared properties, then required ones that are not declared. */
static int list_parts(struct schema *b, const cJSON *s, const cJSON *more, struct part *part)
{
    const cJSON *properties = get(s, "properties"), *p;
    int n = 0;
    cJSON_ArrayForEach(p, properties)
    {
        size_t before = schema_enter(b, "properties", p->string);
        int required = schema_is_required(s, p->string), never = cJSON_IsFalse(p) && !required;
        if (!never) part[n++] = (struct part){key_value(b, schema_quoted(b, p->string), schema_build(b, p)), required};
        schema_leave(b, before);
    }
    cJSON_ArrayForEach(p, get(s, "required"))
    {
        if (!cJSON_IsString(p)) schema_fail(b, Q_EINPUT, "'required' is not a list of names");
        else if (get(properties, p->valuestring)) continue;
        else if (!more) schema_fail(b, Q_EINPUT, "'%.60s' is required and not among the properties", p->valuestring);
        else part[n++] = (struct part){key_value(b, schema_quoted(b, p->valuestring), schema_build(b, more)), 1};
    }
    return n;
}

static int object_body(struct schema *b, const cJSON *s)
{
    static const cJSON anything = {.type = cJSON_True};
    const cJSON *properties = get(s, "properties"), *more = get(s, "additionalProperties");
    int most = cJSON_GetArraySize(properties) + cJSON_GetArraySize(get(s, "required"));
    if (cJSON_IsFalse(more)) more = NULL;
    else if (!more && !properties) more = &anything;
    if (properties && !cJSON_IsObject(properties)) return schema_fail(b, Q_EINPUT, "'properties' is not an object"), 0;
    if (get(s, "required") && !cJSON_IsArray(get(s, "required"))) return schema_fail(b, Q_EINPUT, "'required' is not a list of names"), 0;
    struct part *part = malloc(sizeof *part * (size_t)(most + 1));
    if (!part) return grammar_fail(b->g, Q_EMEM, "no memory for a schema"), 0;
    int n = list_parts(b, s, more, part), others = -1;
    if (more && !b->g->rc) {
        size_t before = schema_enter(b, "additionalProperties", NULL);
        others = key_value(b, other_name(b, s), schema_build(b, more));
        schema_leave(b, before);
    }
    int inside = b->g->rc ? 0 : in_order(b, part, n, others);
    free(part);
    return EXPR_SEQ(b->g, schema_text(b, "{"), schema_white(b), inside, schema_text(b, "}"));
}

/* In JSON, whatever the value around it is; as a rule, so that equal frames are one. */
static int as_rule(struct schema *b, const cJSON *s, const char *name, int (*body)(struct schema *b, const cJSON *s))
{
    const char *tag = b->tag;
    int rule = grammar_rule(b->g, name, strlen(name));
    b->tag = NULL;
    int x = body(b, s);
    b->tag = tag;
    grammar_define(b->g, rule, x);
    return schema_close(b, expr_rule(b->g, rule));
}

int schema_object(struct schema *b, const cJSON *s)
{
    if (get(s, "properties") || get(s, "additionalProperties") || get(s, "required")) return as_rule(b, s, b->path, object_body);
    return schema_close(b, schema_any_object(b));
}

/* ---- arrays ---- */

static int array_items(struct schema *b, const cJSON *s, int before, int min, int max)
{
    const cJSON *items = get(s, "items");
    struct grammar *g = b->g;
    if (!items && get(s, "prefixItems")) return min > before ? expr_nothing(g) : 0;
    if (cJSON_IsFalse(items)) return min > before ? expr_nothing(g) : 0;
    size_t path = schema_enter(b, "items", NULL);
    int item = EXPR_SEQ(g, items ? schema_build(b, items) : schema_any(b), schema_white(b));
    schema_leave(b, path);
    int next = EXPR_SEQ(g, comma(b), item), least = min > before ? min - before : 0, most = max < 0 ? -1 : max - before;
    if (most == 0) return 0;
    if (before) return expr_repeat(g, next, least, most);
    int some = EXPR_SEQ(g, item, expr_repeat(g, next, least ? least - 1 : 0, most < 0 ? -1 : most - 1));
    return least ? some : expr_repeat(g, some, 0, 1);
}

enum { MOST_PREFIX = 256 };

/* 0 where the failure is in b. */
static int check_array(struct schema *b, const cJSON *s, const cJSON *prefix, int min, int max)
{
    if (prefix && !cJSON_IsArray(prefix)) schema_fail(b, Q_EINPUT, "'prefixItems' is not a list of schemas");
    if (cJSON_IsArray(get(s, "items"))) schema_fail(b, Q_EUNSUP, "'items' as a list is not supported; 'prefixItems' is");
    if (max >= 0 && max < min) schema_fail(b, Q_EINPUT, "'minItems' %d is more than 'maxItems' %d", min, max);
    if (cJSON_GetArraySize(prefix) > MOST_PREFIX) schema_fail(b, Q_ELIMIT, "'prefixItems' has more than %d schemas", MOST_PREFIX);
    return !b->g->rc;
}

/* At most n, each with the comma before it; returns how many there are. */
static int prefix_items(struct schema *b, const cJSON *prefix, int n, int *item)
{
    int i = 0;
    const cJSON *p;
    cJSON_ArrayForEach(p, prefix)
    {
        if (i == n) break;
        size_t before = schema_enter(b, "prefixItems", NULL);
        item[i] = EXPR_SEQ(b->g, i ? comma(b) : 0, schema_build(b, p), schema_white(b));
        schema_leave(b, before);
        i++;
    }
    return i;
}

/* prefixItems from the i-th on, then the rest; an array may end before those that minItems does not ask for. */
static int array_body(struct schema *b, const cJSON *s)
{
    struct grammar *g = b->g;
    const cJSON *prefix = get(s, "prefixItems");
    int min = schema_count(b, s, "minItems", 0), max = schema_count(b, s, "maxItems", -1), item[MOST_PREFIX];
    if (!check_array(b, s, prefix, min, max)) return 0;
    int n = prefix_items(b, prefix, max >= 0 ? max : MOST_PREFIX, item), x = array_items(b, s, n, min, max);
    for (int i = n; i-- > 0;) {
        x = EXPR_SEQ(g, item[i], x);
        if (i >= min) x = expr_repeat(g, x, 0, 1);
    }
    return EXPR_SEQ(g, schema_text(b, "["), schema_white(b), x, schema_text(b, "]"));
}

int schema_array(struct schema *b, const cJSON *s)
{
    if (get(s, "items") || get(s, "prefixItems") || get(s, "minItems") || get(s, "maxItems")) return as_rule(b, s, b->path, array_body);
    return schema_close(b, schema_any_array(b));
}
