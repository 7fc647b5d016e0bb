/* Values without parts, and what is any JSON. */
#include "constrain_number.h"
#include "constrain_schema.h"
#include "json_check.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int schema_text(struct schema *b, const char *s) { return expr_text(b->g, s, strlen(s)); }

/* A rule that is made when it is needed first. */
static int made(struct schema *b, int *rule, const char *name, int (*body)(struct schema *b))
{
    if (*rule < 0) {
        *rule = grammar_rule(b->g, name, strlen(name));
        grammar_define(b->g, *rule, body(b));
    }
    return expr_rule(b->g, *rule);
}

static int white_body(struct schema *b)
{
    struct grammar *g = b->g;
    int line = expr_repeat(g, schema_text(b, "\n"), 1, 2);
    int indent = expr_repeat(g, expr_class(g, X_CLASS, (struct expr_range[]){{' ', ' '}, {'\t', '\t'}}, 2), 0, 20);
    return EXPR_ALT(g, expr_empty(g), schema_text(b, " "), EXPR_SEQ(g, line, indent));
}

int schema_white(struct schema *b) { return made(b, &b->white, "white", white_body); }

static int any_char(struct schema *b, enum expr_kind kind) { return expr_class_not(b->g, kind, NULL, 0); }

static int string_body(struct schema *b)
{
    return EXPR_SEQ(b->g, schema_text(b, "\""), expr_repeat(b->g, any_char(b, X_JSON), 0, -1), schema_text(b, "\""));
}

int schema_any_string(struct schema *b) { return made(b, &b->string, "string", string_body); }

static int text_body(struct schema *b) { return expr_until(b->g, X_UNTIL, b->tag); }

int schema_any_text(struct schema *b) { return made(b, &b->text, "text", text_body); }

/* "[" or "{", items with commas between, and the end. */
static int list_body(struct schema *b, const char *open, int item, const char *close)
{
    struct grammar *g = b->g;
    int w = schema_white(b), one = EXPR_SEQ(g, item, w);
    int more = expr_repeat(g, EXPR_SEQ(g, schema_text(b, ","), w, one), 0, -1);
    return EXPR_SEQ(g, schema_text(b, open), w, expr_repeat(g, EXPR_SEQ(g, one, more), 0, 1), schema_text(b, close));
}

static int object_body(struct schema *b)
{
    int w = schema_white(b);
    return list_body(b, "{", EXPR_SEQ(b->g, schema_any_string(b), w, schema_text(b, ":"), w, schema_any(b)), "}");
}

static int array_body(struct schema *b) { return list_body(b, "[", schema_any(b), "]"); }

int schema_any_object(struct schema *b) { return made(b, &b->object, "object", object_body); }

int schema_any_array(struct schema *b) { return made(b, &b->array, "array", array_body); }

static int value_body(struct schema *b)
{
    return EXPR_ALT(b->g, schema_any_object(b), schema_any_array(b), schema_any_string(b), schema_number(b, NULL, 0), schema_text(b, "true"),
                    schema_text(b, "false"), schema_text(b, "null"));
}

int schema_any(struct schema *b) { return made(b, &b->value, "value", value_body); }

/* ---- counts and numbers ---- */

int schema_count(struct schema *b, const cJSON *s, const char *key, int otherwise)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(s, key);
    if (!v) return otherwise;
    if (!cJSON_IsNumber(v) || v->valuedouble < 0 || v->valuedouble != floor(v->valuedouble))
        return schema_fail(b, Q_EINPUT, "'%s' is not a whole number from 0", key), 0;
    if (v->valuedouble > GRAMMAR_MAX_COUNT) return schema_fail(b, Q_ELIMIT, "'%s' is more than %d", key, GRAMMAR_MAX_COUNT), 0;
    return (int)v->valuedouble;
}

static void bound(struct schema *b, const cJSON *s, const char *key, int out, int *has, double *at, int *open, int upper)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(s, key);
    if (!v) return;
    if (!cJSON_IsNumber(v)) return schema_fail(b, Q_EINPUT, "'%s' is not a number", key);
    if (fabs(v->valuedouble) > NUMBER_MOST) return schema_fail(b, Q_EUNSUP, "'%s' is beyond 2^53, where bounds are not supported", key);
    if (*has && (upper ? *at < v->valuedouble : *at > v->valuedouble)) return;
    *open = *has && *at == v->valuedouble ? *open | out : out;
    *has = 1;
    *at = v->valuedouble;
}

static int any_number(struct schema *b)
{
    struct grammar *g = b->g;
    static const char form[] = "-?(0|[1-9][0-9]{0,19})(\\.[0-9]{1,20})?([eE][+-]?([0-9]{1,2}|1[0-9]{2}|2[0-7][0-9]))?";
    return constrain_regex(g, form, sizeof form - 1, X_CLASS, 0, "number");
}

static int any_integer(struct schema *b)
{
    static const char form[] = "-?(0|[1-9][0-9]{0,19})";
    return constrain_regex(b->g, form, sizeof form - 1, X_CLASS, 0, "integer");
}

int schema_number(struct schema *b, const cJSON *s, int integer)
{
    struct number_bounds n = {0};
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(s, "format");
    if (cJSON_IsString(format) && !strstr(" int32 int64 uint32 uint64 float double ", format->valuestring))
        schema_fail(b, Q_EUNSUP, "the format '%.60s' of a number is not supported", format->valuestring);
    bound(b, s, "minimum", 0, &n.has_min, &n.min, &n.above_min, 0);
    bound(b, s, "exclusiveMinimum", 1, &n.has_min, &n.min, &n.above_min, 0);
    bound(b, s, "maximum", 0, &n.has_max, &n.max, &n.below_max, 1);
    bound(b, s, "exclusiveMaximum", 1, &n.has_max, &n.max, &n.below_max, 1);
    if (b->g->rc) return 0;
    if (!n.has_min && !n.has_max) return integer ? any_integer(b) : any_number(b);
    return integer ? expr_integer(b->g, &n) : expr_number(b->g, &n);
}

/* ---- strings ---- */

#define YEAR "([1-9]\\d{3}|0[1-9]\\d{2}|00[1-9]\\d|000[1-9])"
#define LEAP "(\\d\\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
#define DATE "(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))|" LEAP "-02-29)"
#define TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define HEX "[0-9a-fA-F]"

static int format(struct schema *b, const cJSON *f, enum expr_kind kind)
{
    static const struct { const char *name, *form; } known[] = {
        {"date", DATE}, {"time", TIME}, {"date-time", DATE "T" TIME}, {"uuid", HEX "{8}(-" HEX "{4}){3}-" HEX "{12}"}};
    const char *name = cJSON_IsString(f) ? f->valuestring : "";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) return constrain_regex(b->g, known[i].form, strlen(known[i].form), kind, 0, "format");
    schema_fail(b, Q_EUNSUP, "the format '%.60s' is not supported; date, time, date-time and uuid are", name);
    return 0;
}

static int pattern(struct schema *b, const cJSON *p, enum expr_kind kind)
{
    char what[260];
    if (!cJSON_IsString(p)) return schema_fail(b, Q_EINPUT, "'pattern' is not a string"), 0;
    snprintf(what, sizeof what, "%s %s: pattern", b->what, b->path);
    return constrain_regex(b->g, p->valuestring, strlen(p->valuestring), kind, 1, what);
}

/* The characters that are written in more than one byte, or in several ways. */
static int wide_body(struct schema *b)
{
    static const struct expr_range json[] = {{' ', '!'}, {'#', '.'}, {'0', '['}, {']', '~'}}, raw[] = {{1, 0x7F}};
    return b->tag ? expr_class_not(b->g, X_CLASS, raw, 1) : expr_class_not(b->g, X_JSON, json, 4);
}

/* min to max characters. In a very long text those of one byte are edges and the others calls, so that it is one state a character; masks
 * cost more then. */
static int long_text(struct schema *b, int min, int max)
{
    if (min <= 4000 && max <= 4000) return expr_repeat(b->g, any_char(b, b->tag ? X_CLASS : X_JSON), min, max);
    static const struct expr_range json[] = {{' ', '!'}, {'#', '.'}, {'0', '['}, {']', '~'}}, raw[] = {{1, 0x7F}};
    int rule = -1, narrow = b->tag ? expr_class(b->g, X_CLASS, raw, 1) : expr_class(b->g, X_CLASS, json, 4);
    int wide = made(b, b->tag ? &rule : &b->wide, "wide", wide_body);
    return expr_repeat(b->g, EXPR_ALT(b->g, narrow, wide), min, max);
}

static int both(struct schema *b, int x, int y) { return expr_join(b->g, X_AND, (int[]){x, y}, 2); }

/* `key` and a limit of the length that leaves none of its texts. A text of a length in between may be missing all the same. */
static void check_lengths(struct schema *b, const char *key, const cJSON *value, int x, int min, int max)
{
    const char *text = cJSON_IsString(value) ? value->valuestring : "";
    int least, most;
    if (b->g->rc) return;
    expr_lengths(b->g, x, &least, &most);
    if (max >= 0 && least > max)
        schema_fail(b, Q_EINPUT, "'%s' \"%.100s\" and 'maxLength' %d contradict each other: no text of the %s is shorter than %d", key, text, max, key, least);
    else if (most >= 0 && most < min)
        schema_fail(b, Q_EINPUT, "'%s' \"%.100s\" and 'minLength' %d contradict each other: no text of the %s is longer than %d", key, text, min, key, most);
}

static int string_text(struct schema *b, const cJSON *s, int min, int max)
{
    enum expr_kind kind = b->tag ? X_CLASS : X_JSON;
    const cJSON *p = cJSON_GetObjectItemCaseSensitive(s, "pattern"), *f = cJSON_GetObjectItemCaseSensitive(s, "format");
    int x = p ? pattern(b, p, kind) : -1, y = f ? format(b, f, kind) : -1;
    if (p) check_lengths(b, "pattern", p, x, min, max);
    if (f) check_lengths(b, "format", f, y, min, max);
    if (f) x = p ? both(b, x, y) : y;
    if (x < 0) return long_text(b, min, max);
    return min || max >= 0 ? both(b, x, expr_repeat(b->g, any_char(b, kind), min, max)) : x;
}

static int same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

/* A rule of its own, so that what may follow inside of it does not depend on what it is in, and once for all strings like it. */
static int string_rule(struct schema *b, const cJSON *s, int min, int max)
{
    const char *p = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(s, "pattern"));
    const char *f = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(s, "format"));
    for (int i = 0; i < b->n_strings; i++) {
        const struct schema_string *x = b->strings + i;
        if (x->min == min && x->max == max && same_text(x->pattern, p) && same_text(x->format, f)) return expr_rule(b->g, x->rule);
    }
    if (b->n_strings == b->cap_strings) {
        int cap = b->cap_strings * 2 + 16;
        struct schema_string *list = realloc(b->strings, sizeof *list * (size_t)cap);
        if (!list) return grammar_fail(b->g, Q_EMEM, "no memory for a schema"), 0;
        b->strings = list;
        b->cap_strings = cap;
    }
    int rule = grammar_rule(b->g, b->path, strlen(b->path));
    grammar_define(b->g, rule, EXPR_SEQ(b->g, schema_text(b, "\""), string_text(b, s, min, max), schema_text(b, "\"")));
    b->strings[b->n_strings++] = (struct schema_string){p, f, min, max, rule};
    return expr_rule(b->g, rule);
}

int schema_string(struct schema *b, const cJSON *s)
{
    int min = schema_count(b, s, "minLength", 0), max = schema_count(b, s, "maxLength", -1);
    int more = min || max >= 0 || cJSON_GetObjectItemCaseSensitive(s, "pattern") || cJSON_GetObjectItemCaseSensitive(s, "format");
    if (max >= 0 && max < min) schema_fail(b, Q_EINPUT, "'minLength' %d is more than 'maxLength' %d", min, max);
    if (!more) return b->tag ? schema_any_text(b) : schema_any_string(b);
    return b->tag ? schema_close(b, string_text(b, s, min, max)) : string_rule(b, s, min, max);
}

/* ---- this value ---- */

static uint32_t next_char(const char **s)
{
    unsigned char c = (unsigned char)*(*s)++;
    int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
    uint32_t v = more ? c & (0x3Fu >> more) : c;
    for (; more; more--) v = v << 6 | ((unsigned char)*(*s)++ & 0x3F);
    return v;
}

int schema_quoted(struct schema *b, const char *s)
{
    struct expr_kids kids = {0};
    expr_kids_add(b->g, &kids, schema_text(b, "\""));
    while (*s) {
        const char *from = s;
        while (*s >= ' ' && *s < 0x7F && *s != '"' && *s != '\\' && *s != '/') s++;
        if (s > from) expr_kids_add(b->g, &kids, expr_text(b->g, from, (size_t)(s - from)));
        uint32_t c = s > from ? 0 : next_char(&s);
        if (c) expr_kids_add(b->g, &kids, expr_class(b->g, X_JSON, &(struct expr_range){c, c}, 1));
    }
    expr_kids_add(b->g, &kids, schema_text(b, "\""));
    return expr_kids_join(b->g, X_SEQ, &kids);
}

static int literal_list(struct schema *b, const cJSON *v)
{
    struct expr_kids kids = {0};
    const cJSON *x;
    int w = schema_white(b), object = cJSON_IsObject(v);
    expr_kids_add(b->g, &kids, schema_text(b, object ? "{" : "["));
    expr_kids_add(b->g, &kids, w);
    cJSON_ArrayForEach(x, v)
    {
        if (x != v->child) expr_kids_add(b->g, &kids, EXPR_SEQ(b->g, schema_text(b, ","), w));
        if (object) expr_kids_add(b->g, &kids, EXPR_SEQ(b->g, schema_quoted(b, x->string), w, schema_text(b, ":"), w));
        expr_kids_add(b->g, &kids, EXPR_SEQ(b->g, schema_literal(b, x), w));
    }
    expr_kids_add(b->g, &kids, schema_text(b, object ? "}" : "]"));
    return expr_kids_join(b->g, X_SEQ, &kids);
}

int schema_literal(struct schema *b, const cJSON *v)
{
    const char *tag = b->tag;
    if (cJSON_IsString(v)) return tag ? schema_text(b, v->valuestring) : schema_quoted(b, v->valuestring);
    if (cJSON_IsNumber(v) && fabs(v->valuedouble) > NUMBER_MOST) schema_fail(b, Q_EUNSUP, "a number beyond 2^53 as a value is not supported");
    if (b->g->rc) return 0;
    b->tag = NULL;
    char *s = cJSON_IsObject(v) || cJSON_IsArray(v) ? NULL : cJSON_PrintUnformatted(v);
    int x = s ? schema_text(b, s) : literal_list(b, v);
    cJSON_free(s);
    b->tag = tag;
    return x;
}
