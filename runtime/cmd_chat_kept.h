/* The texts that were typed in earlier runs, for the line editor's history: one file, mode 0600, in the editing library's own format. Each text
 * is added when it is entered, under a lock, so that several chats at once and a run that is killed lose none.
 */
#ifndef Q_CMD_CHAT_KEPT_H
#define Q_CMD_CHAT_KEPT_H

#include "files.h"
#include <histedit.h>

enum { CHAT_KEPT_MOST = 1000 };   /* texts */

struct chat_kept {
    char path[Q_PATH];           /* "": nothing is kept */
};

/* Finds the file and reads it into `h`. After an error nothing is kept, and what is there is left alone. */
int chat_kept_open(struct chat_kept *k, History *h, struct q_err *e);
/* Best effort. */
void chat_kept_add(const struct chat_kept *k, const char *text);

#endif
