#include "chat_lua.h"
#include "chat_json.h"
#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_A_HOOK = 10000 };

#define MODULE(name) extern const char chat_lua_##name[]; extern const size_t chat_lua_##name##_size;
#define MODULES(X) X(value) X(op) X(string) X(filter) X(lex) X(parse) X(compile) X(messages)
MODULES(MODULE)

struct chat_bounds *chat_bounds_of(lua_State *L) { return *(struct chat_bounds **)lua_getextraspace(L); }

static void *bounded_alloc(void *ud, void *p, size_t old, size_t size)
{
    struct chat_bounds *b = ud;
    if (!p) old = 0; /* then it is a type tag */
    if (size == 0) {
        free(p);
        b->used -= old;
        return NULL;
    }
    if (size > old && size - old > b->max_memory - (b->used < b->max_memory ? b->used : b->max_memory)) {
        b->out_of_memory = false;
        return NULL;
    }
    void *q = realloc(p, size);
    if (q) b->used += size - old;
    else b->out_of_memory = true;
    return q;
}

static void count_steps(lua_State *L, lua_Debug *ar)
{
    struct chat_bounds *b = chat_bounds_of(L);
    b->steps += STEPS_A_HOOK;
    if (b->steps <= b->max_steps) return;
    b->out_of_steps = true;
    luaL_error(L, "too many steps");
}

static void remove_globals(lua_State *L, int table, const char *const *names)
{
    table = lua_absindex(L, table);
    for (; *names; names++) {
        lua_pushnil(L);
        lua_setfield(L, table, *names);
    }
}

/* Nothing that reaches a file, loads code, or looks into the interpreter. */
static void open_libraries(lua_State *L)
{
    static const char *const base[] = {"collectgarbage", "dofile", "load", "loadfile", "print", "require", "warn", NULL};
    static const char *const string[] = {"dump", NULL};
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    remove_globals(L, -1, base);
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    remove_globals(L, -1, string);
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    luaL_requiref(L, LUA_UTF8LIBNAME, luaopen_utf8, 1);
    lua_settop(L, 0);
}

/* Each module is a chunk that is given the shared table M and adds its part. Order: a module uses those before it. */
static int load_modules(lua_State *L)
{
#define ROW(name) {"=chat_" #name, chat_lua_##name, chat_lua_##name##_size},
    const struct {
        const char *name, *text;
        size_t size;
    } modules[] = {MODULES(ROW)};
    open_libraries(L);
    lua_newtable(L);
    chat_prim_install(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, CHAT_MODULES);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (luaL_loadbufferx(L, modules[i].text, modules[i].size, modules[i].name, "t")) return lua_error(L);
        lua_pushvalue(L, -2);
        lua_call(L, 1, 0);
    }
    return 0;
}

lua_State *chat_lua_open(struct chat_bounds *b, struct q_err *e)
{
    lua_State *L = lua_newstate(bounded_alloc, b);
    if (!L) {
        q_fail(e, Q_EMEM, "no memory for the chat template's interpreter");
        return NULL;
    }
    *(struct chat_bounds **)lua_getextraspace(L) = b;
    lua_sethook(L, count_steps, LUA_MASKCOUNT, STEPS_A_HOOK);
    lua_pushcfunction(L, load_modules);
    int status = lua_pcall(L, 0, 0, 0);
    if (!status) return L;
    if (status == LUA_ERRMEM) q_fail(e, Q_EMEM, "no memory for the chat template's interpreter");
    else q_fail(e, Q_EINTERNAL, "chat template interpreter: %s", lua_isstring(L, -1) ? lua_tostring(L, -1) : "failed to load");
    lua_close(L);
    return NULL;
}

void chat_guard_top(lua_State *L, struct chat_guard *g)
{
    size_t n, guarded_n = 0;
    const char *s = lua_tolstring(L, -1, &n);
    *g->code = g->with->guard(g->with->ctx, s, n, &g->held, &guarded_n, g->e);
    if (*g->code) luaL_error(L, "guard failed");
    if (!g->held) return;
    lua_pushlstring(L, g->held, guarded_n);
    free(g->held);
    g->held = NULL;
    lua_replace(L, -2);
}
