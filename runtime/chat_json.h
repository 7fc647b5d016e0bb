/* JSON text to the values of chat_jinja_value.lua, in a Lua state where those modules are loaded.
 *
 * Keys keep their order; arrays, objects, null and absent stay distinct; a number that Lua or Python would write in
 * another way keeps the caller's text and prints as that. It does not check: the text has passed json_check.
 */
#ifndef Q_CHAT_JSON_H
#define Q_CHAT_JSON_H

#include <stddef.h>

struct lua_State;

/* Where the modules keep their shared table M (metatables, none), in the Lua registry. */
#define CHAT_MODULES "chat"

/* Pushes the value of text[0..n). Raises a Lua error when memory fails. */
void chat_json_push(struct lua_State *L, const char *text, size_t n);

/* Writes x as Python's repr does (shortest digits that read back the same); out holds at least 40 bytes. */
void chat_float_repr(double x, char *out);

#endif
