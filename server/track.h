/* One choice of an exchange: its job's text becomes events.
 *
 * The job says what is thinking and what is content; what of that is a tool call is found here (runtime/tool_calls.h).
 */
#ifndef S_TRACK_H
#define S_TRACK_H

#include "exchange.h"
#include "runtime/stop_strings.h"

typedef void (*event_sink)(void *arg, const struct event *ev);

struct track {
    struct job *job;                 /* held; NULL: dropped */
    int choice;
    int ended;                       /* the outcome holds, and EVENT_END was sent if it is an answer */
    struct job_outcome outcome;
    struct q_tool_calls *calls;      /* owned; NULL: the text is not read for calls */
    int no_calls;                    /* content ends at the tag of a call */
    struct q_stops tag;              /* owned: looks for it */
    char call_id[40];                /* of the call that is open */
    struct q_token *token;           /* owned: [n_tokens] not told yet */
    int n_tokens;
    event_sink sink;                 /* during a take */
    void *arg;
};

/* Reads for calls of `tools`, borrowed until track_close. */
int track_read_calls(struct track *t, const struct q_tools *tools, struct q_err *e);
/* tool_choice none: content ends before the tag of a call, and the white space before that. */
int track_end_at_call(struct track *t, struct q_err *e);
void track_close(struct track *t);
/* What the job has within `seconds`, as events. JOB_DONE: it has ended, see the outcome. */
enum job_event track_take(struct track *t, double seconds, event_sink sink, void *arg);

#endif
