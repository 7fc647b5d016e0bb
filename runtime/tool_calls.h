/* Tool calls in an answer's text, as it streams: text of both parts in (runtime/reply.h split them), events out.
 *
 * Two forms are read. XML, as Qwen3.5's templates teach it; the first <tool_call> may be missing:
 *     <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n ... </function>\n</tool_call>
 * and JSON: <tool_call>{"name": NAME, "arguments": {...}}</tool_call>. NAME must be in the list. Arguments come out as the text of one
 * JSON object that grows; the pieces, joined, are valid JSON if and only if the call is complete. Numbers, arrays and objects stay as
 * they were written; a value that is not JSON of a kind that the schema allows becomes a string; True, False and None are taken where
 * a boolean or null is allowed, since templates show them so.
 *
 * Whatever is no call comes out as text of its part, nothing lost: unknown names, prose about tags, broken forms. Only white space
 * next to a call belongs to neither. A call in content is announced once its first parameter begins; from there on faults are
 * tolerated (a closing tag twice, </function> missing), and a call that never ends is incomplete.
 *
 * Closing tags inside a value survive, by what follows them: </parameter> ends a value only before another parameter, which is not
 * given yet, or before </function>; and </function></tool_call> only at the end of the part, before another call, or when no such
 * ending comes later. So the end of a call waits for what follows it; nearly always that is the end of the answer.
 *
 * In thinking a call counts only as a whole: complete, with all required parameters, nothing but calls behind it in the block, and
 * content does not begin with a call of the same tool (then it was a draft). Otherwise it is thinking text. But an answer that ends
 * by itself with nothing but thinking in it meant the last whole calls there, which then come at its end.
 *
 * The events, text pieces joined, do not depend on how the text was cut. What is undecided waits: at most Q_TOOL_HELD bytes, beyond
 * which it is text (or, for values that wait to be JSON, a string). Time is linear in the text.
 */
#ifndef Q_TOOL_CALLS_H
#define Q_TOOL_CALLS_H

#include "answer.h"
#include "tool_list.h"

#define Q_TOOL_HELD (256 * 1024)

enum q_tool_event_kind {
    Q_TOOL_THINKING,  /* text */
    Q_TOOL_CONTENT,   /* text */
    Q_TOOL_BEGIN,     /* a call; text: its tool's name */
    Q_TOOL_ARGUMENTS, /* text: more of the call's arguments */
    Q_TOOL_END        /* the call is over; `complete` says whether it may be shown as whole */
};

struct q_tool_event {
    enum q_tool_event_kind kind;
    const char *text; /* valid during the call-back; not zero-ended */
    size_t n;
    int call;         /* of BEGIN, ARGUMENTS, END: 0 for the answer's first call, then 1, ...; one call is open at a time */
    int complete;     /* of END */
};

/* Non-zero, an error code, ends the parsing: push and end return it. */
typedef int q_tool_sink(void *arg, const struct q_tool_event *ev, struct q_err *e);

struct q_tool_calls;
/* tools is borrowed until close; NULL or empty: all text passes as it is. */
int q_tool_calls_open(struct q_tool_calls **p, const struct q_tools *tools, q_tool_sink *sink, void *arg, struct q_err *e);
void q_tool_calls_close(struct q_tool_calls *p);
/* More text of a part, whole characters. Errors: Q_EMEM, the sink's; after one the parser is only good for closing. */
int q_tool_calls_push(struct q_tool_calls *p, enum q_part part, const char *s, size_t n, struct q_err *e);
/* The answer is over. cut: not by the model's own end (Q_FINISH_LENGTH, CANCELLED, a stop string), so nothing is taken for granted. */
int q_tool_calls_end(struct q_tool_calls *p, int cut, struct q_err *e);
/* Calls that are complete so far: an answer with any that ended by itself has finish_reason "tool_calls". An answer cut by length is
 * "length" whatever there is; its incomplete call is not to be listed in a whole message. */
int q_tool_calls_n(const struct q_tool_calls *p);

#endif
