/* Events of a tool-call parser on their way to its sink, and the draft: calls that were met in thinking and are handed over, or given
 * back as thinking text, when it is known whether they stand. Of drafts that were given back the last one with whole calls is set aside: if
 * the answer brings nothing else, it was meant.
 */
#ifndef Q_TOOL_EVENTS_H
#define Q_TOOL_EVENTS_H

#include "tool_calls.h"

struct q_tool_events {
    q_tool_sink *sink;
    void *arg;
    int n_begun, n_complete;
    int n_shown;            /* bytes of content text, at most 1 */
    int drafting;
    struct tok_text raw;    /* the draft's text, as it came */
    struct tok_text record; /* its events: struct entry and text, one behind the other */
    struct tok_text aside;  /* likewise */
};

/* Of a draft: into it. Errors, of all: Q_EMEM, the sink's. */
int q_tool_events_put(struct q_tool_events *v, enum q_tool_event_kind kind, const char *s, size_t n, int complete, struct q_err *e);
void q_tool_events_draft(struct q_tool_events *v);
/* Whether the draft has a call of that tool. */
int q_tool_events_drafted(const struct q_tool_events *v, const char *name);
/* The draft stands: its events are handed over. */
int q_tool_events_keep(struct q_tool_events *v, struct q_err *e);
/* It does not: its text is thinking. whole: it has no call that is not whole, so it is set aside. */
int q_tool_events_drop(struct q_tool_events *v, int whole, struct q_err *e);
/* The answer is over. What was set aside is handed over if nothing but thinking was. */
int q_tool_events_meant(struct q_tool_events *v, struct q_err *e);
void q_tool_events_free(struct q_tool_events *v);

#endif
