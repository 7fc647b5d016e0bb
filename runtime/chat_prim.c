/* What the Lua modules of chat templates cannot do by themselves: Unicode case and classes, number text, dates, JSON. */
#include "chat_json.h"
#include "chat_lua.h"
#include "json_check.h"
#include <lauxlib.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>

static int float_repr(lua_State *L)
{
    char text[48];
    chat_float_repr(luaL_checknumber(L, 1), text);
    lua_pushstring(L, text);
    return 1;
}

/* By bytes, which for UTF-8 is by code points; Lua's own `<` would follow the locale. */
static int bytes_less(lua_State *L)
{
    size_t n, m;
    const char *a = luaL_checklstring(L, 1, &n), *b = luaL_checklstring(L, 2, &m);
    int order = memcmp(a, b, n < m ? n : m);
    lua_pushboolean(L, order < 0 || (order == 0 && n < m));
    return 1;
}

/* Characters one by one; those whose other case is several characters (sharp s) stay one. */
static int map_case(lua_State *L, utf8proc_int32_t (*map)(utf8proc_int32_t))
{
    size_t n;
    const char *s = luaL_checklstring(L, 1, &n);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (size_t at = 0; at < n;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)s + at, (utf8proc_ssize_t)(n - at), &c);
        if (len < 1) return luaL_error(L, "malformed UTF-8");
        utf8proc_uint8_t out[4];
        luaL_addlstring(&b, (char *)out, (size_t)utf8proc_encode_char(map(c), out));
        at += (size_t)len;
    }
    luaL_pushresult(&b);
    return 1;
}

static int upper(lua_State *L) { return map_case(L, utf8proc_toupper); }
static int lower(lua_State *L) { return map_case(L, utf8proc_tolower); }
static int title(lua_State *L) { return map_case(L, utf8proc_totitle); }

static int cased(lua_State *L)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)luaL_checkinteger(L, 1));
    lua_pushboolean(L, c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT);
    return 1;
}

/* As Python's repr decides: not a control, format, surrogate, private or unassigned character, no space but U+0020. */
static int printable(lua_State *L)
{
    lua_Integer cp = luaL_checkinteger(L, 1);
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    bool hidden = c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CS ||
                  c == UTF8PROC_CATEGORY_CO || c == UTF8PROC_CATEGORY_CN || c == UTF8PROC_CATEGORY_ZL ||
                  c == UTF8PROC_CATEGORY_ZP || c == UTF8PROC_CATEGORY_ZS;
    lua_pushboolean(L, cp == ' ' || !hidden);
    return 1;
}

static int strftime_now(lua_State *L)
{
    char text[256];
    struct tm tm;
    time_t now = time(NULL);
    localtime_r(&now, &tm);
    lua_pushlstring(L, text, strftime(text, sizeof text, luaL_checkstring(L, 1), &tm));
    return 1;
}

/* json_decode(text) -> value, or nil and one line. */
static int json_decode(lua_State *L)
{
    struct q_err e;
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    if (json_check(text, n, JSON_MAX_DEPTH, "invalid", &e)) {
        lua_pushnil(L);
        lua_pushstring(L, e.text);
        return 2;
    }
    chat_json_push(L, text, n);
    return 1;
}

/* guard(text) -> text, as the caller of the render wants it; without a guard, itself. */
static int guard(lua_State *L)
{
    struct chat_guard *g = chat_bounds_of(L)->guard;
    luaL_checkstring(L, 1);
    lua_settop(L, 1);
    if (g) chat_guard_top(L, g);
    return 1;
}

void chat_prim_install(lua_State *L)
{
    static const luaL_Reg functions[] = {{"float_repr", float_repr}, {"bytes_less", bytes_less}, {"upper", upper},
                                         {"lower", lower}, {"title", title}, {"cased", cased}, {"printable", printable},
                                         {"strftime_now", strftime_now}, {"json_decode", json_decode}, {"guard", guard}, {NULL, NULL}};
    luaL_newlib(L, functions);
    lua_setfield(L, -2, "prim");
}
