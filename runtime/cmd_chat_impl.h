/* The conversation of `quarry chat`, as its files share it: cmd_chat.c (options, turns), cmd_chat_commands.c (what begins with /). */
#ifndef Q_CMD_CHAT_IMPL_H
#define Q_CMD_CHAT_IMPL_H

#include "chat_history.h"
#include "cmd_chat_from.h"
#include "cmd_chat_lines.h"
#include "cmd_chat_show.h"
#include "session_work.h"

/* Sums over the answers of this run. Tokens; seconds. */
struct chat_totals {
    int answers;
    long prompt, cached, generated, timed;   /* timed: those of the answers that came after their first one */
    double prefill_s, decode_s;
    int in_context;                          /* prompt and answer of the last turn */
};

struct chat {
    struct q_cli cli;
    struct cli_sampling sampling;
    const char *system, *url, *key, *session_path;
    const char *engine_option;   /* the first that was given of those that only a model of this process has */
    int cut;                     /* enum q_cut */
    long most;                   /* tokens of an answer; < 0: no limit but the context */
    int think;                   /* < 0: as the template has it */
    int hide_thinking, no_history, failed, over;

    struct session_work session;
    int session_told;            /* it was said that it is saved, and where */
    struct chat_from *from;
    struct chat_history *history;
    struct chat_lines *lines;
    struct chat_show show;
    struct chat_totals totals;
    char *saved;                 /* owned: what /save wrote last, and may write again */
};

/* Runs a line that begins with '/'. */
void chat_command(struct chat *c, const char *line);
void chat_count(struct chat_totals *t, const struct q_answer *a);

#endif
