#include "chat_template.h"
#include "chat_json.h"
#include "chat_lua.h"
#include "json_check.h"
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_A_BYTE = 200, MEMORY_A_BYTE = 16 };

struct chat_template {
    lua_State *L;
    struct chat_bounds bounds;
    size_t memory;  /* the bound without the request's share */
    uint64_t steps; /* likewise */
    char *where;
};

/* One protected call: what goes in, what comes out. */
struct call {
    struct chat_template *t;
    const char *jinja; /* to compile; else: */
    size_t jinja_n;
    const struct chat_request *request;
    char *text; /* owned result */
    size_t text_n;
    int code; /* set by the message handler, with *e */
    struct q_err *e;
};

void chat_template_limits(struct chat_template *t, size_t memory, uint64_t steps)
{
    t->memory = memory;
    t->steps = steps;
}

static void start_bounds(struct chat_template *t, size_t input)
{
    struct chat_bounds *b = &t->bounds;
    b->max_memory = t->memory + MEMORY_A_BYTE * input;
    b->max_steps = t->steps + STEPS_A_BYTE * input;
    b->steps = 0;
    b->out_of_memory = b->out_of_steps = false;
}

static const char *field(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    return lua_tostring(L, -1);
}

/* The line that a run-time error belongs to. */
static lua_Integer current_line(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, CHAT_MODULES);
    lua_getfield(L, -1, "line");
    lua_call(L, 0, 1);
    return lua_tointeger(L, -1);
}

static int memory_error(struct call *c)
{
    if (c->t->bounds.out_of_memory) return q_fail(c->e, Q_EMEM, "%s: out of memory", c->t->where);
    return q_fail(c->e, Q_ELIMIT, "%s: rendering needs more than %zu MiB", c->t->where, c->t->bounds.max_memory >> 20);
}

/* An error that is no table is Lua's own: a bound, the stack, or a fault in the modules. */
static int own_error(lua_State *L, struct call *c)
{
    struct chat_template *t = c->t;
    const char *text = lua_tostring(L, 1);
    if (t->bounds.out_of_steps)
        return q_fail(c->e, Q_ELIMIT, "%s: stopped after %llu steps: the template does not come to an end", t->where,
                      (unsigned long long)t->bounds.steps);
    if (c->code) return c->code; /* a guard failed and said why */
    if (text && strcmp(text, "not enough memory") == 0) return memory_error(c); /* raised again by the modules */
    if (text && strstr(text, "stack overflow")) return q_fail(c->e, Q_ELIMIT, "%s: nested too deep", t->where);
    if (text && strstr(text, "too large")) return q_fail(c->e, Q_ELIMIT, "%s: a text of more than 2 GiB", t->where);
    return q_fail(c->e, Q_EINTERNAL, "%s, line %d: %s", t->where, (int)current_line(L), text ? text : "unknown error");
}

/* Message handler: turns the Lua error into *e while memory errors are still caught. */
static int describe_error(lua_State *L)
{
    struct call *c = lua_touserdata(L, lua_upvalueindex(1));
    if (!lua_istable(L, 1)) {
        c->code = own_error(L, c);
        return 0;
    }
    const char *kind = field(L, "kind"), *msg = field(L, "msg"), *where = c->t->where;
    lua_getfield(L, 1, "line");
    if (strcmp(kind, "messages") == 0) c->code = q_fail(c->e, Q_EINPUT, "%s", msg);
    else if (strcmp(kind, "raised") == 0) c->code = q_fail(c->e, Q_EINPUT, "%s: %s", where, msg);
    else {
        lua_Integer line = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : current_line(L);
        c->code = q_fail(c->e, Q_EINPUT, "%s, line %d: %s", where, (int)line, msg);
    }
    return 0;
}

static void push_module_function(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, CHAT_MODULES);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

static int do_compile(lua_State *L)
{
    struct call *c = lua_touserdata(L, 1);
    push_module_function(L, "open");
    lua_pushlstring(L, c->jinja, c->jinja_n);
    lua_call(L, 1, 0);
    return 0;
}

static void push_json(lua_State *L, const char *text, const char *otherwise)
{
    if (!text) text = otherwise;
    chat_json_push(L, text, strlen(text));
}

static int do_render(lua_State *L)
{
    struct call *c = lua_touserdata(L, 1);
    const struct chat_request *r = c->request;
    push_module_function(L, "render");
    push_json(L, r->messages, NULL);
    push_json(L, r->tools, "null");
    push_json(L, r->options, "{}");
    lua_pushboolean(L, r->add_generation_prompt);
    lua_pushboolean(L, r->as_is);
    lua_call(L, 5, 1);
    const char *text = lua_tolstring(L, -1, &c->text_n);
    c->text = malloc(c->text_n + 1);
    if (!c->text) {
        c->t->bounds.out_of_memory = true;
        return luaL_error(L, "no memory for the prompt");
    }
    memcpy(c->text, text, c->text_n + 1);
    return 0;
}

/* Making the handler's closure takes memory, so it happens inside the outer call. */
static int with_handler(lua_State *L)
{
    struct call *c = lua_touserdata(L, 1);
    lua_pushlightuserdata(L, c);
    lua_pushcclosure(L, describe_error, 1);
    lua_pushcfunction(L, c->request ? do_render : do_compile);
    lua_pushlightuserdata(L, c);
    int status = lua_pcall(L, 1, 0, 2);
    if (status == LUA_ERRMEM) c->code = memory_error(c);
    else if (status && !c->code) c->code = q_fail(c->e, Q_EINTERNAL, "%s: an error could not be described", c->t->where);
    return 0;
}

static int protected_call(struct call *c)
{
    lua_State *L = c->t->L;
    lua_pushcfunction(L, with_handler);
    lua_pushlightuserdata(L, c);
    if (lua_pcall(L, 1, 0, 0) && !c->code) c->code = memory_error(c);
    lua_settop(L, 0);
    return c->code;
}

static int open_template(struct chat_template *t, const char *jinja, size_t n, struct q_err *e)
{
    if (n > CHAT_TEMPLATE_MAX)
        return q_fail(e, Q_ELIMIT, "%s: expected at most %d bytes, found %zu", t->where, CHAT_TEMPLATE_MAX, n);
    if (!utf8_valid(jinja, n)) return q_fail(e, Q_EINPUT, "%s: expected UTF-8 text", t->where);
    start_bounds(t, n);
    t->L = chat_lua_open(&t->bounds, e);
    if (!t->L) return e ? e->code : Q_EMEM;
    struct call c = {.t = t, .jinja = jinja, .jinja_n = n, .e = e};
    return protected_call(&c);
}

int chat_template_open(struct chat_template **out, const char *jinja, size_t n, const char *where, struct q_err *e)
{
    *out = NULL;
    struct chat_template *t = calloc(1, sizeof *t);
    if (t) t->where = strdup(where);
    if (!t || !t->where) {
        free(t);
        return q_fail(e, Q_EMEM, "%s: no memory to open the template", where);
    }
    chat_template_limits(t, (size_t)256 << 20, 100 * 1000 * 1000);
    int err = open_template(t, jinja, n, e);
    if (err) chat_template_close(t);
    else *out = t;
    return err;
}

void chat_template_close(struct chat_template *t)
{
    if (!t) return;
    if (t->L) lua_close(t->L);
    free(t->where);
    free(t);
}

static int check_request(const struct chat_request *r, size_t *total, struct q_err *e)
{
    const char *texts[] = {r->messages, r->tools, r->options}, *names[] = {"messages", "tools", "template options"};
    *total = 0;
    for (int i = 0; i < 3; i++) {
        if (!texts[i]) continue;
        size_t n = strlen(texts[i]);
        int err = json_check(texts[i], n, JSON_MAX_DEPTH, names[i], e);
        if (err) return err;
        *total += n;
    }
    return 0;
}

int chat_template_render(struct chat_template *t, const struct chat_request *r, char **text, size_t *n, struct q_err *e)
{
    *text = NULL, *n = 0;
    struct q_err own;
    if (!e) e = &own;
    size_t total;
    int err = check_request(r, &total, e);
    if (err) return err;
    struct call c = {.t = t, .request = r, .e = e};
    struct chat_guard guard = {.with = r->guard, .e = e, .code = &c.code};
    start_bounds(t, total);
    t->bounds.guard = r->guard ? &guard : NULL;
    err = protected_call(&c);
    t->bounds.guard = NULL;
    free(guard.held);
    lua_gc(t->L, LUA_GCCOLLECT);
    if (err) {
        free(c.text);
        return err;
    }
    *text = c.text, *n = c.text_n;
    return 0;
}
