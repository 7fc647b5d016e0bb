/* How `chat` shows an answer as it comes: on a terminal thinking, dim, a blank line, and the content. Elsewhere standard output
 * gets the content alone, for the next program, and thinking goes to standard error, behind "| ".
 * Control characters never reach a terminal. The texts are also collected, for the conversation. */
#ifndef Q_CMD_CHAT_SHOW_H
#define Q_CMD_CHAT_SHOW_H

#include "answer.h"

struct chat_show {
    int hide_thinking;
    int terminal;               /* standard output is one */
    int shown;                  /* something of this answer */
    enum q_part part;           /* shown last */
    int line_begun;             /* of a "| " block */
    struct tok_text text[2];    /* owned, zero-terminated between answers: by enum q_part */
};

/* quiet: nothing goes to standard error. */
void chat_show_open(struct chat_show *s, int hide_thinking, int quiet);
void chat_show_close(struct chat_show *s);
void chat_show_begin(struct chat_show *s);
/* Non-zero: it cannot be shown or kept. */
int chat_show_text(struct chat_show *s, enum q_part part, const char *text, size_t n);
/* Ends the line, if there is one after a failure; non-zero: no memory for the texts' ends. */
int chat_show_end(struct chat_show *s, int failed);

#endif
