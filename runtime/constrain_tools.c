/* Tool calls in Qwen's form, as grammar. A parameter's value is text up to its closing tag where the schema lets it be any string, else as
 * constrain_schema writes it, with that tag behind it. */
#include "constrain_schema.h"
#include "json_check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANY_ORDER = 6 };

static const char value_end[] = "\n</parameter>\n";

static const cJSON *get(const cJSON *s, const char *key) { return cJSON_GetObjectItemCaseSensitive(s, key); }

/* A name is written between < and >. */
static int check_name(struct schema *b, const char *name, const char *of)
{
    if (*name && !strpbrk(name, "<>\n\r")) return 1;
    schema_fail(b, Q_EUNSUP, "the name '%.60s' of a %s cannot be written in a call: it is empty or has <, > or a line end", name, of);
    return 0;
}

/* <parameter=NAME>\nVALUE\n</parameter>\n, or a text of it, for each of the tool's. */
struct parameter {
    int x, required;
};

static int build_parameter(struct schema *b, const cJSON *p)
{
    char open[300];
    size_t before = schema_enter(b, "properties", p->string);
    if (strlen(p->string) > 256) schema_fail(b, Q_ELIMIT, "a parameter's name has more than 256 bytes");
    check_name(b, p->string, "parameter");
    snprintf(open, sizeof open, "<parameter=%.256s>\n", p->string);
    b->tag = value_end;
    int x = EXPR_SEQ(b->g, schema_text(b, open), schema_build(b, p));
    b->tag = NULL;
    schema_leave(b, before);
    return x;
}

/* Any order: a rule for each set of parameters that have been written. */
static int any_order(struct schema *b, const struct parameter *p, int n)
{
    struct grammar *g = b->g;
    int rule[1 << ANY_ORDER], all = 1 << n;
    for (int set = 0; set < all && !g->rc; set++) rule[set] = grammar_rule(g, "parameters", 10);
    for (int set = 0; set < all && !g->rc; set++) {
        struct expr_kids kids = {0};
        int enough = 1;
        for (int i = 0; i < n; i++) {
            if (set >> i & 1) continue;
            enough &= !p[i].required;
            expr_kids_add(g, &kids, EXPR_SEQ(g, p[i].x, expr_rule(g, rule[set | 1 << i])));
        }
        if (enough) expr_kids_add(g, &kids, expr_empty(g));
        grammar_define(g, rule[set], expr_kids_join(g, X_ALT, &kids));
    }
    return g->rc ? 0 : expr_rule(g, rule[0]);
}

static int in_order(struct schema *b, const struct parameter *p, int n)
{
    struct expr_kids kids = {0};
    for (int i = 0; i < n; i++) expr_kids_add(b->g, &kids, p[i].required ? p[i].x : expr_repeat(b->g, p[i].x, 0, 1));
    return expr_kids_join(b->g, X_SEQ, &kids);
}

/* A rule for the parameter, since it is used in several sets. */
static int parameter_rule(struct schema *b, const cJSON *p)
{
    int x = build_parameter(b, p), rule = grammar_rule(b->g, p->string, strlen(p->string));
    grammar_define(b->g, rule, x);
    return expr_rule(b->g, rule);
}

static int build_parameters(struct schema *b, const cJSON *s)
{
    const cJSON *properties = get(s, "properties"), *p, *r;
    int n = cJSON_GetArraySize(properties), i = 0;
    struct parameter *list = malloc(sizeof *list * (size_t)(n + 1));
    if (!list) return grammar_fail(b->g, Q_EMEM, "no memory for a tool"), 0;
    cJSON_ArrayForEach(p, properties) list[i++] = (struct parameter){parameter_rule(b, p), schema_is_required(s, p->string)};
    cJSON_ArrayForEach(r, get(s, "required"))
        if (!cJSON_IsString(r) || !get(properties, r->valuestring)) schema_fail(b, Q_EINPUT, "'required' names what is not among the properties");
    int x = b->g->rc ? 0 : n <= ANY_ORDER ? any_order(b, list, n) : in_order(b, list, n);
    free(list);
    return x;
}

/* The parameters' schema is an object with properties; a $ref at its top, or several schemas, are not. */
static int check_parameters(struct schema *b, const cJSON *s)
{
    const cJSON *k, *type = get(s, "type");
    if (!s || cJSON_IsNull(s)) return 1;
    if (!cJSON_IsObject(s)) return schema_fail(b, Q_EINPUT, "'parameters' is not a schema"), 0;
    if (type && !(cJSON_IsString(type) && !strcmp(type->valuestring, "object")))
        schema_fail(b, Q_EINPUT, "'parameters' is not a schema of an object");
    if (get(s, "properties") && !cJSON_IsObject(get(s, "properties"))) schema_fail(b, Q_EINPUT, "'properties' is not an object");
    cJSON_ArrayForEach(k, s)
        if (!schema_is_note(k) && strcmp(k->string, "type") && strcmp(k->string, "properties") && strcmp(k->string, "required") &&
            strcmp(k->string, "additionalProperties"))
            schema_fail(b, Q_EUNSUP, "'%.60s' is not supported here", k->string);
    return !b->g->rc;
}

/* <function=NAME>\n parameters </function>\n</tool_call> */
static int build_function(struct schema *b, const cJSON *function, const char *name)
{
    char open[300], what[120];
    const cJSON *parameters = get(function, "parameters");
    snprintf(open, sizeof open, "<function=%.256s>\n", name);
    snprintf(what, sizeof what, "tool '%.60s' parameters", name);
    schema_restart(b, parameters, what);
    if (strlen(name) > 256) schema_fail(b, Q_ELIMIT, "a function's name has more than 256 bytes");
    int x = check_name(b, name, "function") && check_parameters(b, parameters) ? build_parameters(b, parameters) : 0;
    return EXPR_SEQ(b->g, schema_text(b, open), x, schema_text(b, "</function>\n</tool_call>"));
}

static int build_functions(struct grammar *g, const cJSON *tools, const char *only)
{
    struct expr_kids kids = {0};
    const cJSON *tool;
    struct schema b;
    schema_start(&b, g, NULL, "");
    cJSON_ArrayForEach(tool, tools)
    {
        const cJSON *function = get(tool, "function"), *name = get(function, "name");
        if (!cJSON_IsString(name)) grammar_fail(g, Q_EINPUT, "tools: expected {\"type\": \"function\", \"function\": {\"name\": ...}}");
        else if (!only || !strcmp(only, name->valuestring)) expr_kids_add(g, &kids, build_function(&b, function, name->valuestring));
        if (g->rc) break;
    }
    schema_end(&b);
    if (!g->rc && !kids.n) {
        if (only) grammar_fail(g, Q_EINPUT, "tool_choice: no tool is named '%.60s'", only);
        else grammar_fail(g, Q_EINPUT, "tools: there is no tool to call");
    }
    return expr_kids_join(g, X_ALT, &kids);
}

/* An answer of this schema. */
static int build_otherwise(struct grammar *g, const char *json)
{
    struct schema b;
    struct q_err e;
    int rc = json_check(json, strlen(json), JSON_MAX_DEPTH, "json_schema", &e);
    if (rc) return grammar_fail(g, rc, "%s", e.text), 0;
    cJSON *root = cJSON_Parse(json);
    if (!root) return grammar_fail(g, Q_EMEM, "no memory for a schema"), 0;
    schema_start(&b, g, root, "json_schema");
    int x = schema_size_good(g, root) ? schema_build(&b, root) : 0;
    schema_end(&b);
    cJSON_Delete(root);
    return x;
}

/* A model kept from the tag goes on as if it stood there: half a call, as text. So the text may come to the tag, which is its end, once it says
 * anything. */
static int build_no_calls(struct grammar *g, const char *begin)
{
    static const struct expr_range space[] = {{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}}, not_first[] = {{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}, {'<', '<'}};
    int any = expr_repeat(g, expr_class_not(g, X_CLASS, NULL, 0), 0, -1);
    int says = EXPR_SEQ(g, expr_repeat(g, expr_class(g, X_CLASS, space, 3), 0, -1), expr_class_not(g, X_CLASS, not_first, 4), any);
    return EXPR_ALT(g, expr_until(g, X_AVOID, begin), expr_join(g, X_AND, (int[]){expr_until(g, X_UNTIL, begin), says}, 2));
}

static void build_answer(struct grammar *g, const cJSON *tools, const struct q_tool_rules *r)
{
    static const char begin[] = "<tool_call>";
    if (r->none) {
        g->root = grammar_rule(g, "no_calls", 8);
        return grammar_define(g, g->root, build_no_calls(g, begin));
    }
    int call = grammar_rule(g, "call", 4), x = build_functions(g, tools, r->only);
    grammar_define(g, call, EXPR_SEQ(g, expr_text(g, "\n", 1), x));
    int again = EXPR_SEQ(g, expr_text(g, "\n", 1), expr_text(g, begin, sizeof begin - 1), expr_rule(g, call));
    int calls = EXPR_SEQ(g, expr_rule(g, call), r->parallel ? expr_repeat(g, again, 0, -1) : 0);
    g->root = grammar_rule(g, "tools", 5);
    int calls_alone = r->required || r->otherwise ? EXPR_SEQ(g, expr_text(g, begin, sizeof begin - 1), calls) : 0;
    if (r->required) x = calls_alone;
    else if (r->otherwise) x = EXPR_ALT(g, build_otherwise(g, r->otherwise), calls_alone);
    else x = EXPR_ALT(g, expr_until(g, X_AVOID, begin), EXPR_SEQ(g, expr_until(g, X_UNTIL, begin), calls));
    grammar_define(g, g->root, x);
}

void constrain_read_tools(struct grammar *g, const struct constrain_text *text)
{
    struct q_err e;
    int rc = json_check(text->at, text->n, JSON_MAX_DEPTH, "tools", &e);
    if (rc) return grammar_fail(g, rc, "%s", e.text);
    cJSON *tools = cJSON_ParseWithLength(text->at, text->n);
    if (!tools) return grammar_fail(g, Q_EMEM, "no memory for tools");
    if (!cJSON_IsArray(tools)) grammar_fail(g, Q_EINPUT, "tools: expected a list");
    else if (schema_size_good(g, tools)) build_answer(g, tools, &text->tools);
    cJSON_Delete(tools);
}
