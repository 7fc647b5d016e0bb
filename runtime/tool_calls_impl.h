/* What the two files of the tool-call parser share: tool_calls.c reads text and calls, tool_calls_value.c the values of XML calls. Each
 * step looks at the undecided text, decides what its beginning is, and consumes that; or it needs more text.
 */
#ifndef Q_TOOL_CALLS_IMPL_H
#define Q_TOOL_CALLS_IMPL_H

#include "text.h"
#include "tool_calls.h"
#include "tool_events.h"
#include "tool_json.h"
#include "tool_look.h"
#include "tool_value.h"

enum at {
    AT_TEXT,
    AT_JSON, /* the undecided text begins with a JSON call's <tool_call> */
    AT_VALUE /* of an XML call's parameter */
};

struct q_tool_calls {
    const struct q_tools *tools; /* borrowed */
    struct q_tool_events events;
    enum at at;
    enum q_part part;
    int cut;                     /* the answer ended, and not by the model's own end */
    int after_call;              /* only white space since a call: it is not shown */
    struct tok_text held;        /* the undecided text is from `from` on */
    size_t from;
    size_t seen;                 /* of the undecided text: looked at, needs no second look */
    size_t json;                 /* AT_JSON: where its '{' is */
    struct q_tool_braces braces;
    int json_closed;             /* braces found its end */
    /* the call */
    int tool;
    struct tok_text given;       /* its keys so far, each with a zero byte */
    struct q_tool_value value;
    enum { MIDDLE, START, FIRST_LINE } in_value; /* START: nothing of it was seen; then a first newline, which is not the value's */
    int nested;
    int doubtful;                /* it ended at `end`, up to `behind`, unless a better ending comes */
    size_t end, behind;
    int end_tagged;
    struct tok_text out;         /* JSON text on its way */
};

static inline const char *text_of(const struct q_tool_calls *p) { return p->held.at + p->from; }
static inline size_t left(const struct q_tool_calls *p) { return p->held.n - p->from; }

static inline int in_draft(const struct q_tool_calls *p) { return p->events.drafting && p->part == Q_PART_THINKING; }

static inline struct q_look look_at(const struct q_tool_calls *p, size_t i, int last)
{
    return (struct q_look){.s = text_of(p), .n = left(p), .i = i, .last = last, .cut = p->cut};
}

/* Where the next '<' is from i on, n if nowhere before n. */
static inline size_t next_tag(const struct q_tool_calls *p, size_t i, size_t n)
{
    const char *s = text_of(p), *lt = i < n ? memchr(s + i, '<', n - i) : NULL;
    return lt ? (size_t)(lt - s) : n;
}

/* tool_calls.c. The first n bytes are decided. */
int tc_consume(struct q_tool_calls *p, size_t n, struct q_err *e);
/* The draft is no call: go on behind it as if it had been text all the time. whole: all its calls are. */
int tc_drop_draft(struct q_tool_calls *p, int whole, struct q_err *e);
/* What is in `out` is more of the arguments. */
int tc_put_out(struct q_tool_calls *p, struct q_err *e);
/* Behind a call's last tag, all of it consumed. */
int tc_end_call(struct q_tool_calls *p, int complete, struct q_err *e);

/* tool_calls_value.c. arg: the parser; whether its call has that key already. */
int tc_was_given(void *arg, const char *key);
/* Behind <parameter=KEY>. */
int tc_begin_value(struct q_tool_calls *p, const char *key, struct q_err *e);
/* Decides what comes next in a value. last: the part is over; *going = 0: it needs more text. */
int tc_step_value(struct q_tool_calls *p, int last, int *going, struct q_err *e);

#endif
