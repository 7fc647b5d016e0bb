/* Two schemas as one that both allow: allOf, and a $ref or anyOf with conditions beside it. What cannot be merged into one is refused by name. */
#include "constrain_schema.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MADE = 2000, MAX_MADE_PARTS = 400000 };

static cJSON *get(const cJSON *s, const char *key) { return cJSON_GetObjectItemCaseSensitive(s, key); }

int schema_is_note(const cJSON *key)
{
    static const char *const notes[] = {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$schema",
                                        "$id", "$comment", "$defs", "definitions", "discriminator"};
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (!strcmp(key->string, notes[i])) return 1;
    if (!strcmp(key->string, "uniqueItems") || !strcmp(key->string, "nullable")) return cJSON_IsFalse(key);
    return !strncmp(key->string, "x-", 2);
}

static int count_parts(const cJSON *s)
{
    int n = 1;
    for (const cJSON *k = s ? s->child : NULL; k; k = k->next) n += count_parts(k);
    return n;
}

/* b keeps it, or frees it. */
static cJSON *kept(struct schema *b, cJSON *s)
{
    b->made_parts += count_parts(s);
    if (b->n_made >= MAX_MADE || b->made_parts > MAX_MADE_PARTS) schema_fail(b, Q_ELIMIT, "more than %d schemas are merged", b->n_made);
    if (b->n_made == b->cap_made && s && !b->g->rc) {
        int cap = b->cap_made * 2 + 16;
        cJSON **p = realloc(b->made, sizeof *p * (size_t)cap);
        if (!p) grammar_fail(b->g, Q_EMEM, "no memory for a schema");
        else b->made = p, b->cap_made = cap;
    }
    if (!s) grammar_fail(b->g, Q_EMEM, "no memory for a schema");
    if (b->g->rc) return cJSON_Delete(s), NULL;
    return b->made[b->n_made++] = s;
}

static int is(const cJSON *key, const char *list) /* list: "|a|b|" */
{
    char name[64];
    if (strlen(key->string) > 60) return 0;
    snprintf(name, sizeof name, "|%s|", key->string);
    return strstr(list, name) != NULL;
}

/* A list of both, that only one of them allows out. */
static cJSON *common(const cJSON *x, const cJSON *y)
{
    cJSON *list = cJSON_CreateArray(), *v, *w;
    cJSON_ArrayForEach(v, x)
    {
        int found = 0;
        cJSON_ArrayForEach(w, y) found |= cJSON_Compare(v, w, 1);
        if (found) cJSON_AddItemToArray(list, cJSON_Duplicate(v, 1));
    }
    return list;
}

static cJSON *all_names(const cJSON *x, const cJSON *y)
{
    cJSON *list = cJSON_Duplicate(x, 1), *w;
    cJSON_ArrayForEach(w, y) cJSON_AddItemToArray(list, cJSON_Duplicate(w, 1));
    return list;
}

/* A type, or a list of them, as a list; integer is within number. */
static cJSON *as_list(const cJSON *t)
{
    if (cJSON_IsArray(t)) return cJSON_Duplicate(t, 1);
    cJSON *list = cJSON_CreateArray();
    cJSON_AddItemToArray(list, cJSON_Duplicate(t, 1));
    return list;
}

static int has(const cJSON *list, const char *type)
{
    const cJSON *t;
    cJSON_ArrayForEach(t, list) if (cJSON_IsString(t) && !strcmp(t->valuestring, type)) return 1;
    return 0;
}

static cJSON *common_types(const cJSON *x, const cJSON *y)
{
    cJSON *a = as_list(x), *c = as_list(y), *list = common(a, c);
    int integer = (has(a, "integer") && has(c, "number")) || (has(c, "integer") && has(a, "number"));
    if (integer && !has(list, "integer") && !has(list, "number")) cJSON_AddItemToArray(list, cJSON_CreateString("integer"));
    cJSON_Delete(a);
    cJSON_Delete(c);
    return list;
}

/* Both, to be merged when they are built. */
static cJSON *all_of(const cJSON *x, const cJSON *y)
{
    cJSON *s = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(s, "allOf");
    cJSON_AddItemToArray(list, cJSON_Duplicate(x, 1));
    cJSON_AddItemToArray(list, cJSON_Duplicate(y, 1));
    return s;
}

static cJSON *both_properties(const cJSON *x, const cJSON *y)
{
    cJSON *all = cJSON_Duplicate(x, 1), *p;
    cJSON_ArrayForEach(p, y)
    {
        cJSON *have = get(all, p->string);
        if (!have) cJSON_AddItemToObject(all, p->string, cJSON_Duplicate(p, 1));
        else if (!cJSON_Compare(have, p, 1)) cJSON_ReplaceItemInObjectCaseSensitive(all, p->string, all_of(have, p));
    }
    return all;
}

/* The key as both say it; NULL: they cannot be said in one. */
static cJSON *both(const cJSON *have, const cJSON *key)
{
    if (cJSON_Compare(have, key, 1)) return cJSON_Duplicate(key, 1);
    if (is(key, "|type|")) return common_types(have, key);
    if (is(key, "|enum|") && cJSON_IsArray(have) && cJSON_IsArray(key)) return common(have, key);
    if (is(key, "|required|") && cJSON_IsArray(have)) return all_names(have, key);
    if (is(key, "|properties|") && cJSON_IsObject(have) && cJSON_IsObject(key)) return both_properties(have, key);
    if (is(key, "|items|")) return all_of(have, key);
    if (!cJSON_IsNumber(have) || !cJSON_IsNumber(key)) return NULL;
    int larger = is(key, "|minimum|exclusiveMinimum|minLength|minItems|"), take = (key->valuedouble > have->valuedouble) == larger;
    return cJSON_Duplicate(take ? key : have, 1);
}

/* additionalProperties of the one speaks about the properties that only the other has. */
static int mix_properties(const cJSON *x, const cJSON *y)
{
    const cJSON *p, *sides[] = {x, y};
    for (int i = 0; i < 2; i++) {
        const cJSON *more = get(sides[i], "additionalProperties");
        if (!more || cJSON_IsTrue(more)) continue;
        cJSON_ArrayForEach(p, get(sides[1 - i], "properties")) if (!get(get(sides[i], "properties"), p->string)) return 1;
    }
    return 0;
}

static void merge_key(struct schema *b, cJSON *into, const cJSON *key)
{
    const cJSON *have = get(into, key->string);
    if (schema_is_note(key)) return;
    b->made_parts += have ? (cJSON_GetArraySize(have) / 8 + 1) * (cJSON_GetArraySize(key) / 8 + 1) : 1;
    if (b->made_parts > MAX_MADE_PARTS) return schema_fail(b, Q_ELIMIT, "schemas that are merged are too large");
    cJSON *v = have ? both(have, key) : cJSON_Duplicate(key, 1);
    if (!v) return schema_fail(b, Q_EUNSUP, "'%.60s' twice, in schemas that both hold, is not supported", key->string);
    if (have) cJSON_ReplaceItemInObjectCaseSensitive(into, key->string, v);
    else cJSON_AddItemToObject(into, key->string, v);
}

const cJSON *schema_merge(struct schema *b, const cJSON *x, const cJSON *y)
{
    static const cJSON anything = {.type = cJSON_Object};
    const cJSON *key;
    if (b->g->rc) return NULL;
    if (!y || cJSON_IsTrue(y)) y = &anything;
    if (cJSON_IsFalse(y) || cJSON_IsFalse(x)) return cJSON_IsFalse(y) ? y : x;
    if (!cJSON_IsObject(y)) return schema_fail(b, Q_EINPUT, "expected a schema, an object or true or false"), NULL;
    if (mix_properties(x, y)) return schema_fail(b, Q_EUNSUP, "additionalProperties in one of several schemas that all hold is not supported"), NULL;
    cJSON *all = kept(b, cJSON_Duplicate(x, 1));
    if (all) cJSON_ArrayForEach(key, y) merge_key(b, all, key);
    return b->g->rc ? NULL : all;
}
