/* The terminal of `chat`, beside what the line editor does to it: pasted text comes between marks (bracketed paste), and the terminal
 * is as it was found after every way out: the end, a signal, Ctrl-Z until `fg`.
 * One terminal, so one state for the process: a signal's handler can reach nothing else. */
#ifndef Q_CMD_CHAT_TERM_H
#define Q_CMD_CHAT_TERM_H

/* Standard input and output are a terminal, as it was found. `marks`: ask for marks around pasted text, ESC [200~ and ESC [201~. */
void chat_term_open(int marks);
void chat_term_close(void);
/* Takes the terminal's modes as those to come back to after a stop. */
void chat_term_note(void);
/* 1, once, after a stop: what was on the screen is to be drawn again. */
int chat_term_resumed(void);

#endif
