#include "tool_list.h"
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* A walk through a schema, which may refer to itself: what is not found after so many schemas is taken as not said. */
struct walk {
    const cJSON *root;
    int left;
};
enum { MAX_SCHEMAS = 1000 };

struct tool {
    char *name;
    const cJSON *parameters; /* a schema, inside `list`; NULL: none given */
};

struct q_tools {
    cJSON *list; /* the caller's, copied */
    int n;
    struct tool tool[];
};

static const cJSON *get(const cJSON *o, const char *key) { return cJSON_GetObjectItemCaseSensitive(o, key); }

/* ---- reading the list ---- */

static const char *kind_name(const cJSON *v)
{
    return !v ? "nothing" : cJSON_IsString(v) ? "a string" : cJSON_IsNumber(v) ? "a number" : cJSON_IsArray(v) ? "a list"
           : cJSON_IsObject(v) ? "an object" : cJSON_IsNull(v) ? "null" : "a boolean";
}

static int check_name(const char *name, int i, struct q_err *e)
{
    size_t n = strlen(name);
    if (n == 0 || n > Q_TOOL_NAME_MAX) return q_fail(e, Q_EINPUT, "tools[%d]: expected a name of 1 to %d bytes, found %zu", i, Q_TOOL_NAME_MAX, n);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 32 || *c == '<' || *c == '>')
            return q_fail(e, Q_EINPUT, "tools[%d]: the name '%.60s' holds '<', '>' or a control character", i, name);
    return Q_OK;
}

static int read_tool(struct q_tools *t, int i, const cJSON *v, struct q_err *e)
{
    const cJSON *type = get(v, "type"), *inner = get(v, "function"), *f = inner ? inner : v;
    const char *within = inner ? ".function" : "";
    const cJSON *name = get(f, "name"), *parameters = get(f, "parameters");
    if (!cJSON_IsObject(v)) return q_fail(e, Q_EINPUT, "tools[%d]: expected an object, found %s", i, kind_name(v));
    if (type && (!cJSON_IsString(type) || strcmp(type->valuestring, "function")))
        return q_fail(e, Q_EINPUT, "tools[%d].type: expected \"function\", the only kind of tool here, found %.60s", i,
                      cJSON_IsString(type) ? type->valuestring : kind_name(type));
    if (!cJSON_IsObject(f)) return q_fail(e, Q_EINPUT, "tools[%d].function: expected an object, found %s", i, kind_name(f));
    if (!cJSON_IsString(name)) return q_fail(e, Q_EINPUT, "tools[%d]%s.name: expected a string, found %s", i, within, kind_name(name));
    if (parameters && !cJSON_IsObject(parameters) && !cJSON_IsNull(parameters))
        return q_fail(e, Q_EINPUT, "tools[%d]%s.parameters: expected a JSON schema, found %s", i, within, kind_name(parameters));
    int rc = check_name(name->valuestring, i, e), same = q_tools_find(t, name->valuestring, strlen(name->valuestring));
    if (rc) return rc;
    if (same >= 0) return q_fail(e, Q_EINPUT, "tools[%d] and tools[%d] have one name, '%.60s'", same, i, name->valuestring);
    t->tool[t->n++] = (struct tool){name->valuestring, cJSON_IsObject(parameters) ? parameters : NULL};
    return Q_OK;
}

int q_tools_open(struct q_tools **out, const cJSON *list, struct q_err *e)
{
    *out = NULL;
    if (list && !cJSON_IsArray(list) && !cJSON_IsNull(list)) return q_fail(e, Q_EINPUT, "tools: expected a list, found %s", kind_name(list));
    int n = cJSON_GetArraySize(list), rc = Q_OK, i = 0;
    struct q_tools *t = calloc(1, sizeof *t + (size_t)n * sizeof *t->tool);
    if (t && n) t->list = cJSON_Duplicate(list, 1);
    if (!t || (n && !t->list)) rc = q_fail(e, Q_EMEM, "no memory for %d tools", n);
    for (const cJSON *v = t && t->list ? t->list->child : NULL; v && !rc; v = v->next) rc = read_tool(t, i++, v, e);
    if (rc) q_tools_close(t);
    else *out = t;
    return rc;
}

void q_tools_close(struct q_tools *t)
{
    if (!t) return;
    cJSON_Delete(t->list);
    free(t);
}

int q_tools_n(const struct q_tools *t) { return t ? t->n : 0; }

const char *q_tools_name(const struct q_tools *t, int tool) { return t->tool[tool].name; }

int q_tools_find(const struct q_tools *t, const char *name, size_t n)
{
    for (int i = 0; t && i < t->n; i++)
        if (strlen(t->tool[i].name) == n && !memcmp(t->tool[i].name, name, n)) return i;
    return -1;
}

/* ---- schemas ---- */

/* What "#/a/b" points to within root; NULL: nothing. */
static const cJSON *follow(const cJSON *root, const char *ref)
{
    if (*ref++ != '#') return NULL;
    while (root && *ref == '/') {
        char key[Q_TOOL_NAME_MAX + 1];
        size_t n = 0;
        for (ref++; *ref && *ref != '/' && n < Q_TOOL_NAME_MAX; ref++) {
            int escaped = ref[0] == '~' && (ref[1] == '0' || ref[1] == '1'); /* JSON pointer's ~ and / */
            key[n++] = !escaped ? *ref : *++ref == '0' ? '~' : '/';
        }
        key[n] = 0;
        root = cJSON_IsArray(root) ? cJSON_GetArrayItem(root, atoi(key)) : get(root, key);
    }
    return *ref ? NULL : root;
}

static unsigned kinds_of_word(const char *w)
{
    static const struct { const char *word; unsigned kinds; } words[] = {
        {"string", Q_KIND_STRING}, {"integer", Q_KIND_NUMBER}, {"number", Q_KIND_NUMBER}, {"boolean", Q_KIND_BOOLEAN}, {"null", Q_KIND_NULL},
        {"array", Q_KIND_ARRAY}, {"object", Q_KIND_OBJECT},
        /* Python's own words, which hand-written schemas use */
        {"str", Q_KIND_STRING}, {"int", Q_KIND_NUMBER}, {"float", Q_KIND_NUMBER}, {"bool", Q_KIND_BOOLEAN}, {"list", Q_KIND_ARRAY},
        {"dict", Q_KIND_OBJECT},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(w, words[i].word)) return words[i].kinds;
    return Q_KIND_ALL;
}

static unsigned kind_of_value(const cJSON *v)
{
    return cJSON_IsString(v) ? Q_KIND_STRING : cJSON_IsNumber(v) ? Q_KIND_NUMBER : cJSON_IsBool(v) ? Q_KIND_BOOLEAN
           : cJSON_IsArray(v) ? Q_KIND_ARRAY : cJSON_IsObject(v) ? Q_KIND_OBJECT : Q_KIND_NULL;
}

static unsigned kinds_by_type(const cJSON *type)
{
    unsigned kinds = 0;
    if (cJSON_IsString(type)) return kinds_of_word(type->valuestring);
    if (!cJSON_IsArray(type)) return Q_KIND_ALL;
    for (const cJSON *w = type->child; w; w = w->next) kinds |= cJSON_IsString(w) ? kinds_of_word(w->valuestring) : Q_KIND_ALL;
    return kinds;
}

static unsigned kinds_by_values(const cJSON *s)
{
    const cJSON *values = get(s, "enum"), *one = get(s, "const");
    unsigned kinds = 0;
    if (one) return kind_of_value(one);
    if (!cJSON_IsArray(values)) return Q_KIND_ALL;
    for (const cJSON *v = values->child; v; v = v->next) kinds |= kind_of_value(v);
    return kinds;
}

static unsigned kinds(struct walk *w, const cJSON *s);

static unsigned any_of(struct walk *w, const cJSON *list)
{
    unsigned any = 0;
    if (!cJSON_IsArray(list)) return Q_KIND_ALL;
    for (const cJSON *v = list->child; v; v = v->next) any |= kinds(w, v);
    return any;
}

/* Nothing said, by a schema that says of an object or a list what is in it. */
static unsigned kinds_by_shape(const cJSON *s)
{
    return get(s, "properties") ? Q_KIND_OBJECT : get(s, "items") ? Q_KIND_ARRAY : Q_KIND_ALL;
}

static unsigned kinds(struct walk *w, const cJSON *s)
{
    const cJSON *ref = get(s, "$ref"), *all = get(s, "allOf");
    if (!cJSON_IsObject(s) || w->left-- <= 0) return Q_KIND_ALL;
    unsigned k = kinds_by_type(get(s, "type"));
    if (k != Q_KIND_ALL && cJSON_IsTrue(get(s, "nullable"))) k |= Q_KIND_NULL;
    k &= kinds_by_values(s) & any_of(w, get(s, "anyOf")) & any_of(w, get(s, "oneOf"));
    if (cJSON_IsString(ref)) k &= kinds(w, follow(w->root, ref->valuestring));
    for (const cJSON *v = cJSON_IsArray(all) ? all->child : NULL; v; v = v->next) k &= kinds(w, v);
    if (k == Q_KIND_ALL) k = kinds_by_shape(s);
    return k ? k : Q_KIND_ALL;
}

/* What s says under `what`, or under `key` of the object there (if key is not NULL); or what a part of s says. A key may be declared by
 * one of several alternatives; what holds for the whole is not up to them. */
static const cJSON *member(struct walk *w, const cJSON *s, const char *what, const char *key)
{
    static const char *const parts[] = {"allOf", "anyOf", "oneOf"};
    const cJSON *own = get(s, what), *ref = get(s, "$ref"), *found = key ? get(own, key) : own;
    if (w->left-- <= 0) return NULL;
    if (!found && cJSON_IsString(ref)) found = member(w, follow(w->root, ref->valuestring), what, key);
    for (int i = 0; i < (key ? 3 : 1) && !found; i++) {
        const cJSON *list = get(s, parts[i]);
        for (const cJSON *v = cJSON_IsArray(list) ? list->child : NULL; v && !found; v = v->next) found = member(w, v, what, key);
    }
    return found;
}

static struct walk walk_from(const struct q_tools *t, int tool) { return (struct walk){t->tool[tool].parameters, MAX_SCHEMAS}; }

static const cJSON *property(const struct q_tools *t, int tool, const char *key)
{
    struct walk w = walk_from(t, tool);
    return member(&w, w.root, "properties", key);
}

int q_tools_declares(const struct q_tools *t, int tool, const char *key) { return property(t, tool, key) != NULL; }

unsigned q_tools_kinds(const struct q_tools *t, int tool, const char *key)
{
    struct walk w = walk_from(t, tool);
    const cJSON *s = property(t, tool, key);
    if (s) return kinds(&w, s);
    s = member(&w, w.root, "additionalProperties", NULL);
    return cJSON_IsObject(s) && s->child ? kinds(&w, s) : Q_KIND_STRING;
}

const char *q_tools_required(const struct q_tools *t, int tool, int i)
{
    struct walk w = walk_from(t, tool);
    const cJSON *list = member(&w, w.root, "required", NULL), *v = cJSON_IsArray(list) ? cJSON_GetArrayItem(list, i) : NULL;
    return cJSON_IsString(v) ? v->valuestring : NULL;
}
