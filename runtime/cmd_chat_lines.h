/* Texts that a person types, with editing and a history, of earlier runs too (cmd_chat_kept.h); or, where input or output is no terminal,
 * plain lines of standard input without a prompt. A line that ends in a backslash goes on in the next one. What is pasted in the middle of a line or
 * over several is one text: by the terminal's marks around it, or, from a terminal without them, because its lines come at once. */
#ifndef Q_CMD_CHAT_LINES_H
#define Q_CMD_CHAT_LINES_H

#include "err.h"
#include <stddef.h>

enum chat_line { CHAT_LINE, CHAT_LINE_BREAK, CHAT_LINE_END };   /* a text; a signal came; no more */

struct chat_lines;
/* keep: read and keep the history. What is wrong with it is told by say(arg, line), and the rest works. */
int chat_lines_open(struct chat_lines **l, int keep, void (*say)(void *arg, const char *line), void *arg, struct q_err *e);
void chat_lines_close(struct chat_lines *l);
/* A person at a terminal. Until the next read what is typed is kept and not echoed. */
int chat_lines_interactive(const struct chat_lines *l);
/* *text is n bytes without the last line end, and a zero byte; valid until the next call. */
enum chat_line chat_lines_read(struct chat_lines *l, const char **text, size_t *n);

#endif
