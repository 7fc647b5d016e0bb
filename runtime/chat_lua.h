/* Private to chat_*.c: the Lua state behind a chat template. */
#ifndef Q_CHAT_LUA_H
#define Q_CHAT_LUA_H

#include "chat_template.h"
#include "err.h"
#include <lua.h>

/* A guard at work. `held` owns its last result until Lua has a copy: a Lua error in between must not lose it. */
struct chat_guard {
    const struct chat_text_guard *with;
    char *held;
    struct q_err *e;
    int *code; /* where its failure is kept while Lua unwinds */
};

/* What the allocator and the hook of a state watch; reached from the state by chat_bounds_of. */
struct chat_bounds {
    size_t used, max_memory;
    uint64_t steps, max_steps;
    bool out_of_memory;       /* the last refusal was the system's, not the bound's */
    bool out_of_steps;
    struct chat_guard *guard; /* of the render in progress, or NULL */
};

/* A state with the sandbox's libraries and the modules loaded, or NULL (e). `b` outlives it. */
lua_State *chat_lua_open(struct chat_bounds *b, struct q_err *e);

struct chat_bounds *chat_bounds_of(lua_State *L);

/* Replaces the string on top of the stack by the guard's version. Raises a Lua error when the guard fails. */
void chat_guard_top(lua_State *L, struct chat_guard *g);

/* Adds the C functions that the Lua modules need as M.prim; M is on top of the stack. */
void chat_prim_install(lua_State *L);

#endif
