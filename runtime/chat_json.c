#include "chat_json.h"
#include "json_check.h"
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The stack holds, from `base`: the metatables of list, dict, int_text and float_text, then none. */
struct reader {
    lua_State *L;
    const char *p, *end;
    int list, dict, int_text, float_text, none;
};

/* Python's layout: plain digits for exponents -4..15, else d.ddde+XX. */
void chat_float_repr(double x, char *out)
{
    if (!isfinite(x)) {
        strcpy(out, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    char sci[40];
    for (int digits = 0; digits < 17; digits++) {
        snprintf(sci, sizeof sci, "%.*e", digits, x);
        if (strtod(sci, NULL) == x) break;
    }
    int exponent = atoi(strchr(sci, 'e') + 1);
    int fraction = (int)(strchr(sci, 'e') - sci) - (sci[0] == '-') - 2; /* digits behind the point, -1 if there is none */
    if (fraction < 0) fraction = 0;
    if (exponent < -4 || exponent >= 16) strcpy(out, sci);
    else snprintf(out, 40, "%.*f", fraction > exponent ? fraction - exponent : 1, x);
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r')) r->p++;
}

/* Pushes the string whose opening quote is at r->p, and moves behind the closing one. */
static void push_string(struct reader *r)
{
    const char *from = ++r->p;
    while (*r->p != '"' && *r->p != '\\') r->p++;
    if (*r->p == '"') {
        lua_pushlstring(r->L, from, (size_t)(r->p++ - from));
        return;
    }
    luaL_Buffer b;
    luaL_buffinit(r->L, &b);
    luaL_addlstring(&b, from, (size_t)(r->p - from));
    while (*r->p != '"') {
        char c[4];
        if (*r->p == '\\') {
            r->p++;
            luaL_addlstring(&b, c, (size_t)json_unescape(&r->p, c));
        } else {
            luaL_addchar(&b, *r->p++);
        }
    }
    r->p++;
    luaL_pushresult(&b);
}

/* A table { text, value } for a number that would not print as it was written. */
static void push_number_text(struct reader *r, const char *text, size_t n, double value, int metatable)
{
    lua_createtable(r->L, 0, 2);
    lua_pushlstring(r->L, text, n);
    lua_setfield(r->L, -2, "text");
    lua_pushnumber(r->L, value);
    lua_setfield(r->L, -2, "value");
    lua_pushvalue(r->L, metatable);
    lua_setmetatable(r->L, -2);
}

static void push_number(struct reader *r)
{
    const char *from = r->p;
    while (r->p < r->end && strchr("+-.0123456789eE", *r->p)) r->p++;
    size_t n = (size_t)(r->p - from);
    lua_pushlstring(r->L, from, n); /* a copy that ends in a zero byte */
    const char *text = lua_tostring(r->L, -1);
    char canonical[40];
    if (strpbrk(text, ".eE")) {
        double x = strtod(text, NULL);
        chat_float_repr(x, canonical);
        if (strcmp(text, canonical) == 0) lua_pushnumber(r->L, x);
        else push_number_text(r, text, n, x, r->float_text);
    } else {
        long long i = n < 20 ? strtoll(text, NULL, 10) : 0;
        snprintf(canonical, sizeof canonical, "%lld", i);
        if (n < 20 && strcmp(text, canonical) == 0) lua_pushinteger(r->L, i);
        else push_number_text(r, text, n, strtod(text, NULL), r->int_text);
    }
    lua_remove(r->L, -2);
}

static void push_value(struct reader *r);

static void push_array(struct reader *r)
{
    lua_newtable(r->L);
    r->p++;
    for (lua_Integer i = 1;; i++) {
        skip_space(r);
        if (*r->p == ']') break;
        push_value(r);
        lua_rawseti(r->L, -2, i);
        skip_space(r);
        if (*r->p == ',') r->p++;
    }
    r->p++;
    lua_pushvalue(r->L, r->list);
    lua_setmetatable(r->L, -2);
}

/* { keys = {k1, k2, ...}, map = {k1 = v1, ...} } */
static void push_object(struct reader *r)
{
    lua_State *L = r->L;
    lua_createtable(L, 0, 2);
    lua_newtable(L);
    lua_newtable(L);
    r->p++;
    for (lua_Integer i = 1;;) {
        skip_space(r);
        if (*r->p == '}') break;
        push_string(r);
        skip_space(r);
        r->p++; /* ':' */
        lua_pushvalue(L, -1);
        lua_rawseti(L, -4, i++);
        push_value(r);
        lua_rawset(L, -3);
        skip_space(r);
        if (*r->p == ',') r->p++;
    }
    r->p++;
    lua_setfield(L, -3, "map");
    lua_setfield(L, -2, "keys");
    lua_pushvalue(L, r->dict);
    lua_setmetatable(L, -2);
}

static void push_word(struct reader *r)
{
    if (*r->p == 'n') lua_pushvalue(r->L, r->none);
    else lua_pushboolean(r->L, *r->p == 't');
    r->p += *r->p == 'f' ? 5 : 4;
}

/* Recursion is bounded by json_check's depth. */
static void push_value(struct reader *r)
{
    luaL_checkstack(r->L, 8, "JSON nested too deep");
    skip_space(r);
    switch (*r->p) {
    case '"': push_string(r); break;
    case '[': push_array(r); break;
    case '{': push_object(r); break;
    case 't':
    case 'f':
    case 'n': push_word(r); break;
    default: push_number(r);
    }
}

void chat_json_push(lua_State *L, const char *text, size_t n)
{
    struct reader r = {.L = L, .p = text, .end = text + n};
    luaL_checkstack(L, 10, "JSON");
    lua_getfield(L, LUA_REGISTRYINDEX, CHAT_MODULES);
    lua_getfield(L, -1, "metatables");
    int metatables = lua_gettop(L);
    int *slots[] = {&r.list, &r.dict, &r.int_text, &r.float_text};
    const char *names[] = {"list", "dict", "int_text", "float_text"};
    for (int i = 0; i < 4; i++) {
        lua_getfield(L, metatables, names[i]);
        *slots[i] = lua_gettop(L);
    }
    lua_getfield(L, metatables - 1, "none");
    r.none = lua_gettop(L);
    push_value(&r);
    lua_replace(L, metatables - 1);
    lua_settop(L, metatables - 1);
}
