#define _GNU_SOURCE
#include "data_file.h"
#include "files.h"
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MEMORY = 4 << 20, MOST_STEPS = 1 << 20 };

/* The one memory function of a state. */
static void *bounded(void *ud, void *p, size_t old, size_t size)
{
    struct data_file *d = ud;
    if (!p) old = 0;                     /* then it is a type tag */
    if (!size) {
        free(p);
        d->used -= old;
        return NULL;
    }
    if (size > old && d->used + (size - old) > MOST_MEMORY) return NULL;
    void *q = realloc(p, size);
    if (q) d->used += size - old;
    return q;
}

static void too_many_steps(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    luaL_error(L, "it computes for too long, expected plain data");
}

struct chunk {
    const char *text;
    size_t n;
};

/* Protected: an empty table stands for the globals; what the text returns is left. */
static int run(lua_State *L)
{
    const struct chunk *c = lua_touserdata(L, 1);
    if (luaL_loadbufferx(L, c->text, c->n, "=line", "t")) return lua_error(L);
    lua_newtable(L);
    lua_setupvalue(L, -2, 1);
    lua_call(L, 0, 1);
    return 1;
}

/* Lua names the line where it can: "line:3: unexpected symbol". */
static int failed(struct data_file *d, const char *where, struct q_err *e)
{
    const char *why = lua_type(d->L, -1) == LUA_TSTRING ? lua_tostring(d->L, -1) : "it fails without a message";
    int rc = q_fail(e, Q_EINPUT, "%.500s: %.300s", where, why);
    data_file_close(d);
    return rc;
}

int data_file_run(struct data_file *d, const char *text, size_t n, const char *where, struct q_err *e)
{
    struct chunk c = { text, n };
    d->used = 0;
    d->L = lua_newstate(bounded, d);
    if (!d->L) return q_fail(e, Q_EMEM, "%s: no memory to read it", where);
    lua_sethook(d->L, too_many_steps, LUA_MASKCOUNT, MOST_STEPS);
    lua_pushcfunction(d->L, run);
    lua_pushlightuserdata(d->L, &c);
    if (lua_pcall(d->L, 1, 1, 0)) return failed(d, where, e);
    if (lua_istable(d->L, 1)) return Q_OK;
    data_file_close(d);
    return q_fail(e, Q_EINPUT, "%s: expected 'return { ... }', one table", where);
}

int data_file_open(struct data_file *d, const char *path, struct q_err *e)
{
    char *text;
    size_t n;
    int rc = file_read(path, DATA_FILE_BYTES, &text, &n, e);
    if (rc) return rc;
    rc = data_file_run(d, text, n, path, e);
    free(text);
    return rc;
}

void data_file_close(struct data_file *d)
{
    if (d->L) lua_close(d->L);
    d->L = NULL;
}

/* --- fields: raw, for a metatable may not be asked and nothing may raise; `next` walks without a new string --- */

int data_file_field(struct data_file *d, int index, const char *name)
{
    int table = lua_absindex(d->L, index);
    lua_pushnil(d->L);
    while (lua_next(d->L, table)) {
        if (lua_type(d->L, -2) == LUA_TSTRING && !strcmp(lua_tostring(d->L, -2), name)) {
            lua_remove(d->L, -2);
            return lua_type(d->L, -1);
        }
        lua_pop(d->L, 1);
    }
    lua_pushnil(d->L);
    return LUA_TNIL;
}

const char *data_file_text(struct data_file *d, const char *name)
{
    size_t n = 0;
    const char *text = data_file_field(d, 1, name) == LUA_TSTRING ? lua_tolstring(d->L, -1, &n) : NULL;
    lua_pop(d->L, 1);                    /* the table holds the string */
    return text && strlen(text) == n ? text : NULL;
}

/* --- fields that nobody knows ------------------------------------------------------------------------------------------------ */

enum { NAME_MOST = 60 };

static int least(int a, int b) { return a < b ? a : b; }

/* How many letters are put in, left out or changed to make b of a; of a's first NAME_MOST. */
static int letters_between(const char *a, const char *b)
{
    int row[NAME_MOST + 1], n = (int)strnlen(a, NAME_MOST);
    for (int i = 0; i <= n; i++) row[i] = i;
    for (int j = 0; b[j]; j++) {
        int corner = row[0]++;
        for (int i = 1; i <= n; i++) {
            int above = row[i];
            row[i] = least(corner + (a[i - 1] != b[j]), 1 + least(above, row[i - 1]));
            corner = above;
        }
    }
    return row[n];
}

static int refuse_field(const char *name, const char *const *known, int n, const char *where, struct q_err *e)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (letters_between(name, known[i]) < letters_between(name, known[best])) best = i;
    return q_fail(e, Q_EINPUT, "%.500s: unknown field '%.*s', the nearest that is known is '%s'", where, NAME_MOST, name, known[best]);
}

int data_file_only(struct data_file *d, const char *const *known, int n, const char *where, struct q_err *e)
{
    int rc = Q_OK;
    lua_pushnil(d->L);
    while (!rc && lua_next(d->L, 1)) {
        const char *name = lua_type(d->L, -2) == LUA_TSTRING ? lua_tostring(d->L, -2) : NULL;
        int i = 0;
        while (name && i < n && strcmp(known[i], name)) i++;
        if (!name) rc = q_fail(e, Q_EINPUT, "%.500s: expected fields as '%s = ...', found a value without a name", where, known[0]);
        else if (i == n) rc = refuse_field(name, known, n, where, e);
        lua_pop(d->L, 1);
    }
    lua_settop(d->L, 1);
    return rc;
}

/* --- names ----------------------------------------------------------------------------------------------------------------- */

static size_t base_length(const char *text)
{
    size_t n = strlen(text);
    return n > 4 && !strcmp(text + n - 4, ".lua") ? n - 4 : n;
}

int data_file_is_path(const char *text) { return strchr(text, '/') || base_length(text) < strlen(text); }

int data_file_stem(char *dst, size_t cap, const char *path, struct q_err *e)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = base_length(base);
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (!n || n >= cap || strspn(base, plain) < n)
        return q_fail(e, Q_EINPUT, "%.300s: expected a file name of letters, digits, '_', '-' and '.'", path);
    memcpy(dst, base, n);
    dst[n] = 0;
    return Q_OK;
}
