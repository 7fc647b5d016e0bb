/* A data file: a Lua text that returns one table of plain values, such as gen/models/qwen3.5-9b.lua and gen/cards/t4.lua.
 *
 * It runs with no library, no global and no file within reach, in bounded memory and for a bounded number of steps, so anybody's file can
 * be read: the worst that it does is to be refused with one line. Lua is the notation only; nobody calls a function of it. */
#ifndef Q_DATA_FILE_H
#define Q_DATA_FILE_H

#include "err.h"
#include <lua.h>
#include <stddef.h>

enum { DATA_FILE_BYTES = 64 * 1024 };

/* Stays where it is while it is open: the state counts its memory here. */
struct data_file {
    lua_State *L;        /* the table is the one value on its stack; lua_rawgeti and data_file_field do not raise */
    size_t used;
};

/* Runs the text. `where` begins every line of e; on an error there is nothing to close. */
int data_file_run(struct data_file *d, const char *text, size_t n, const char *where, struct q_err *e);
/* The same for a file on disk. Q_EMISS when there is none. */
int data_file_open(struct data_file *d, const char *path, struct q_err *e);
void data_file_close(struct data_file *d);

/* Pushes field `name` of the table at `index` and answers its type (LUA_TNIL: absent). */
int data_file_field(struct data_file *d, int index, const char *name);
/* A text of the table, borrowed; NULL when the field is absent or no string. */
const char *data_file_text(struct data_file *d, const char *name);

/* Q_EINPUT where the table has a field that is none of known[0..n): the line names it and the one that it is most like. */
int data_file_only(struct data_file *d, const char *const *known, int n, const char *where, struct q_err *e);

/* Whether an option's argument is the path of a data file and no name: it has a '/' or ends in ".lua". */
int data_file_is_path(const char *text);
/* "t4" of "cards/t4.lua". Q_EINPUT unless that is made of letters, digits, '_', '-' and '.'. */
int data_file_stem(char *dst, size_t cap, const char *path, struct q_err *e);

#endif
