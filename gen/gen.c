/* The C host of the generator: one Lua state with base functions only, a memory limit, and `host`, which reads sources.
 * All decisions are gen.lua's. Nothing here keeps state between calls except the state's loaded modules. */
#include "gen.h"
#include "source.h"
#include <lauxlib.h>
#include <lualib.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_LIMIT = 256 << 20 };

struct gen {
    lua_State *L;
    struct gen_source src;
    size_t used;
};

/* Lua's one memory function. Beyond the limit it answers NULL, which Lua turns into "not enough memory". */
static void *allocate(void *ud, void *p, size_t old, size_t size)
{
    struct gen *g = ud;
    if (!p) old = 0;
    if (size == 0) {
        free(p);
        g->used -= old;
        return NULL;
    }
    if (size > old && g->used + (size - old) > MEMORY_LIMIT) return NULL;
    void *q = realloc(p, size);
    if (q) g->used += size - old;
    return q;
}

static struct gen *self(lua_State *L)
{
    void *ud;
    lua_getallocf(L, &ud);
    return ud;
}

/* host.read(name): the text, or nil. */
static int host_read(lua_State *L)
{
    struct gen_text t;
    if (source_read(&self(L)->src, luaL_checkstring(L, 1), &t)) return 0;
    lua_pushlstring(L, t.text, t.size);
    source_free(&t);
    return 1;
}

/* host.ops(): the names, sorted. */
static int host_ops(lua_State *L)
{
    lua_newtable(L);
    const char *const *op = source_ops(&self(L)->src);
    for (int i = 0; op[i]; i++) {
        lua_pushstring(L, op[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int open_host(lua_State *L)
{
    static const luaL_Reg host[] = {{"read", host_read}, {"ops", host_ops}, {NULL, NULL}};
    luaL_newlib(L, host);
    return 1;
}

/* package.searchers[1]: "gen.lib" is gen/lib.lua of the source. Text only: Lua does not verify bytecode. */
static int require_module(lua_State *L)
{
    const char *name = luaL_gsub(L, luaL_checkstring(L, 1), ".", "/");
    const char *file = lua_pushfstring(L, "%s.lua", name);
    struct gen_text t;
    if (source_read(&self(L)->src, file, &t)) return luaL_error(L, "no module '%s'", file);
    const char *chunk = lua_pushfstring(L, "=%s", file);
    int rc = luaL_loadbufferx(L, t.text, t.size, chunk, "t");
    source_free(&t);
    return rc ? lua_error(L) : 1;
}

/* `require` without a file system: loaded modules in an upvalue table, then `host`, then the sources. */
static int require(lua_State *L)
{
    lua_settop(L, 1);
    if (lua_getfield(L, lua_upvalueindex(1), luaL_checkstring(L, 1)) != LUA_TNIL) return 1;
    if (!strcmp(lua_tostring(L, 1), "host")) lua_pushcfunction(L, open_host);
    else {
        lua_pushcfunction(L, require_module);
        lua_pushvalue(L, 1);
        lua_call(L, 1, 1);
    }
    lua_call(L, 0, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, lua_upvalueindex(1), lua_tostring(L, 1));
    return 1;
}

/* Runs protected: opens the admitted libraries and loads gen.lua, which is left on the stack. */
static int start(lua_State *L)
{
    static const luaL_Reg libs[] = {{"_G", luaopen_base}, {"table", luaopen_table}, {"string", luaopen_string}, {"math", luaopen_math}};
    static const char *const removed[] = {"dofile", "loadfile", "print", "collectgarbage", "warn"};
    for (size_t i = 0; i < sizeof libs / sizeof *libs; i++) {
        luaL_requiref(L, libs[i].name, libs[i].func, 1);
        lua_pop(L, 1);
    }
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++) {
        lua_pushnil(L);
        lua_setglobal(L, removed[i]);
    }
    lua_newtable(L);
    lua_pushcclosure(L, require, 1);
    lua_pushvalue(L, -1);
    lua_setglobal(L, "require");
    lua_pushstring(L, "gen.gen");
    lua_call(L, 1, 1);
    return 1;
}

/* The error value on top of the stack as code and line; pops it. gen.lua raises { code, text }; all else is a fault of ours. */
static int take_error(lua_State *L, struct q_err *e)
{
    int code = Q_EINTERNAL;
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "code");
        code = !strcmp(lua_tostring(L, -1), "unsup") ? Q_EUNSUP : Q_EINPUT;
        lua_getfield(L, -2, "text");
        lua_replace(L, -3);
        lua_pop(L, 1);
    }
    const char *text = lua_tostring(L, -1);
    q_fail(e, code, "%s", text ? text : "the generator failed without a message");
    lua_pop(L, 1);
    return code;
}

int gen_open(struct gen **out, const char *dir, struct q_err *e)
{
    struct gen *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g) return q_fail(e, Q_EMEM, "no memory for a generator");
    int rc = source_open(&g->src, dir, e);
    if (!rc) {
        g->L = lua_newstate(allocate, g);
        if (!g->L) rc = q_fail(e, Q_EMEM, "no memory for a generator");
    }
    if (!rc) {
        lua_pushcfunction(g->L, start);
        if (lua_pcall(g->L, 0, 1, 0)) rc = take_error(g->L, e);
    }
    if (rc) gen_close(g);
    else *out = g;
    return rc;
}

void gen_close(struct gen *g)
{
    if (!g) return;
    if (g->L) lua_close(g->L);
    source_close(&g->src);
    free(g);
}

const char *const *gen_ops(struct gen *g) { return source_ops(&g->src); }

/* --- calls: gen.lua's table is at index 1; a call is made by a C function that runs protected ------------------------ */

struct emit_call {
    const char *text[5];     /* op, shape, params, card, numerics */
    struct gen_kernel *out;
};

static void copy_field(lua_State *L, const char *name, char *dst, size_t cap)
{
    size_t n;
    lua_getfield(L, -1, name);
    const char *s = luaL_tolstring(L, -1, &n);
    if (n >= cap) luaL_error(L, "%s is longer than %d characters", name, (int)cap - 1);
    memcpy(dst, s, n + 1);
    lua_pop(L, 2);
}

static char *copy_text(lua_State *L, const char *name)
{
    size_t n;
    lua_getfield(L, -1, name);
    const char *s = luaL_checklstring(L, -1, &n);
    char *copy = malloc(n + 1);
    if (!copy) luaL_error(L, "not enough memory");
    memcpy(copy, s, n + 1);
    lua_pop(L, 1);
    return copy;
}

/* The flat list that gen.lua's launch_of makes. */
static void copy_launch(lua_State *L, struct q_phases *out)
{
    enum { NUMBERS = 2 + 3 * 4 };
    int v[Q_PHASES * NUMBERS];
    lua_getfield(L, -1, "launch");
    int n = (int)lua_rawlen(L, -1);
    if (n > Q_PHASES * NUMBERS) luaL_error(L, "more than %d phases of launch", Q_PHASES);
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, -1, i + 1);
        v[i] = (int)lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    out->n = n / NUMBERS;
    for (int i = 0; i < out->n; i++) {
        const int *p = v + i * NUMBERS;
        out->phase[i].threads = p[0];
        out->phase[i].smem = p[1];
        for (int a = 0; a < 3; a++) memcpy(&out->phase[i].grid[a], p + 2 + 4 * a, 4 * sizeof *p);
    }
}

/* What only one architecture has ("wgmma") is compiled for that one, sm_90a, not for it and its successors. Here and not in the Lua that names
 * the flags, whose text is part of every record's generator. */
static void one_architecture(struct gen_kernel *k)
{
    char *arch = strstr(k->cflags, "=sm_90 ");
    size_t n = strlen(k->cflags);
    if (!arch || !strstr(k->unit, "wgmma.") || n + 2 > sizeof k->cflags) return;
    memmove(arch + 7, arch + 6, n + 1 - (size_t)(arch + 6 - k->cflags));
    arch[6] = 'a';
}

static int call_emit(lua_State *L)
{
    struct emit_call *c = lua_touserdata(L, 2);
    struct gen_kernel *k = c->out;
    lua_getfield(L, 1, "emit");
    for (int i = 0; i < 5; i++) lua_pushstring(L, c->text[i]);
    lua_call(L, 5, 1);
    copy_field(L, "name", k->name, sizeof k->name);
    copy_field(L, "params", k->params, sizeof k->params);
    copy_field(L, "isa", k->isa, sizeof k->isa);
    copy_field(L, "kind", k->kind, sizeof k->kind);
    copy_field(L, "arch", k->arch, sizeof k->arch);
    copy_field(L, "cflags", k->cflags, sizeof k->cflags);
    copy_launch(L, &k->launch);
    copy_field(L, "numerics", k->numerics, sizeof k->numerics);
    copy_field(L, "layout", k->layout, sizeof k->layout);
    k->source = copy_text(L, "source");
    k->unit = copy_text(L, "unit");
    one_architecture(k);
    return 0;
}

static int protected_call(struct gen *g, lua_CFunction f, void *arg, struct q_err *e)
{
    if (!lua_checkstack(g->L, 8)) return q_fail(e, Q_EMEM, "no memory for a call of the generator");
    lua_pushcfunction(g->L, f);
    lua_pushvalue(g->L, 1);
    lua_pushlightuserdata(g->L, arg);
    return lua_pcall(g->L, 2, 0, 0) ? take_error(g->L, e) : Q_OK;
}

static const char *or_text(const char *s, const char *otherwise) { return s ? s : otherwise; }

int gen_emit(struct gen *g, const char *op, const char *shape, const char *params, const char *card, const char *numerics,
             struct gen_kernel *out, struct q_err *e)
{
    struct emit_call c = {{op, shape, or_text(params, ""), card, or_text(numerics, "pinned")}, out};
    memset(out, 0, sizeof *out);
    int rc = protected_call(g, call_emit, &c, e);
    if (rc) gen_kernel_free(out);
    return rc;
}

void gen_kernel_free(struct gen_kernel *k)
{
    free(k->source);
    free(k->unit);
    k->source = k->unit = NULL;
}

struct space_call {
    const char *text[4];     /* op, shape, card, numerics */
    int (*visit)(void *arg, const char *params, int legal, const char *reason);
    void *arg;
};

static int visit_candidate(lua_State *L)
{
    struct space_call *c = lua_touserdata(L, lua_upvalueindex(1));
    lua_pushboolean(L, c->visit(c->arg, lua_tostring(L, 1), lua_toboolean(L, 2), lua_tostring(L, 3)));
    return 1;
}

static int call_space(lua_State *L)
{
    struct space_call *c = lua_touserdata(L, 2);
    lua_getfield(L, 1, "space");
    for (int i = 0; i < 4; i++) lua_pushstring(L, c->text[i]);
    lua_pushlightuserdata(L, c);
    lua_pushcclosure(L, visit_candidate, 1);
    lua_call(L, 5, 0);
    return 0;
}

int gen_space(struct gen *g, const char *op, const char *shape, const char *card, const char *numerics,
              int (*visit)(void *arg, const char *params, int legal, const char *reason), void *arg, struct q_err *e)
{
    struct space_call c = {{op, shape, card, or_text(numerics, "pinned")}, visit, arg};
    return protected_call(g, call_space, &c, e);
}

struct cost_call {
    const char *op, *shape;
    long rows, past;
    double *bytes, *ops;
};

static int call_cost(lua_State *L)
{
    struct cost_call *c = lua_touserdata(L, 2);
    lua_getfield(L, 1, "cost");
    lua_pushstring(L, c->op);
    lua_pushstring(L, c->shape);
    lua_pushinteger(L, c->rows);
    lua_pushinteger(L, c->past);
    lua_call(L, 4, 2);
    *c->bytes = lua_tonumber(L, -2);
    *c->ops = lua_tonumber(L, -1);
    return 0;
}

int gen_cost(struct gen *g, const char *op, const char *shape, long rows, long past, double *bytes, double *ops, struct q_err *e)
{
    struct cost_call c = {op, shape, rows, past, bytes, ops};
    return protected_call(g, call_cost, &c, e);
}

struct text_call {
    const char *op;
    char *out;
    size_t cap;
};

static int call_hash(lua_State *L)
{
    struct text_call *c = lua_touserdata(L, 2);
    unsigned char sum[crypto_hash_sha256_BYTES];
    size_t n;
    lua_getfield(L, 1, "identity");
    lua_pushstring(L, c->op);
    lua_call(L, 1, 1);
    const char *text = luaL_checklstring(L, -1, &n);
    crypto_hash_sha256(sum, (const unsigned char *)text, n);
    sodium_bin2hex(c->out, c->cap, sum, sizeof sum);
    return 0;
}

int gen_hash(struct gen *g, const char *op, char hex[65], struct q_err *e)
{
    struct text_call c = {op, hex, 65};
    return protected_call(g, call_hash, &c, e);
}

static int call_ref(lua_State *L)
{
    struct text_call *c = lua_touserdata(L, 2);
    lua_getfield(L, 1, "ref_name");
    lua_pushstring(L, c->op);
    lua_call(L, 1, 1);
    size_t n;
    const char *name = luaL_checklstring(L, -1, &n);
    if (n >= c->cap) return luaL_error(L, "op name '%s' is longer than %d characters", name, (int)c->cap - 1);
    memcpy(c->out, name, n + 1);
    return 0;
}

int gen_ref(struct gen *g, const char *op, char name[24], struct q_err *e)
{
    struct text_call c = {op, name, 24};
    return protected_call(g, call_ref, &c, e);
}
