/* Looking ahead in the undecided text of an answer for the tags of tool calls.
 *
 * A look tries to read what the grammar says; when the text ends too early to tell, it says so in `more` and the caller comes back with
 * more text. What it says otherwise holds whatever follows, so nothing depends on how the text was cut. Every look is bounded: names by
 * Q_TOOL_NAME_MAX, white space and repeated tags by small numbers.
 */
#ifndef Q_TOOL_LOOK_H
#define Q_TOOL_LOOK_H

#include "tool_list.h"

struct q_look {
    const char *s;
    size_t n, i;    /* bytes of text; how far they were read */
    int last;       /* the part ends with this text */
    int cut;        /* and it was cut there: not by the model's own end */
    int ran_out;    /* the text ended within something that was being read */
    int more;       /* so it is undecided: never when it is the last */
};

enum q_tool_header {
    Q_HEADER_NONE,
    Q_HEADER_XML,   /* up to and with the first <parameter=KEY> */
    Q_HEADER_EMPTY, /* a whole call without parameters */
    Q_HEADER_JSON   /* up to the '{' */
};

struct q_header {
    enum q_tool_header form;
    int tool;
    char key[Q_TOOL_NAME_MAX + 1];
};

/* l->i stands at a '<'. Afterwards behind what was read, if it is a header and nothing is undecided. */
void q_look_header(struct q_look *l, const struct q_tools *tools, struct q_header *h);

/* Whether a JSON call ends at l->i, behind its '}'; then l->i stands behind the tag, if there is one. */
int q_look_call_end(struct q_look *l);

/* What stands at a '<' inside a value. */
enum q_tool_ending {
    Q_ENDING_LITERAL,  /* part of the value */
    Q_ENDING_OPENS,    /* so is this, and it opens an example call, which has endings of its own */
    Q_ENDING_CLOSES,   /* and this closes one */
    Q_ENDING_NEXT,     /* the value ends, and parameter `key` begins behind l->i */
    Q_ENDING_CALL,     /* the call ends at l->i */
    Q_ENDING_DOUBTFUL  /* it does if no better ending comes: text follows */
};

/* The value in which an ending is looked for. */
struct q_in_value {
    const struct q_tools *tools;
    int tool;
    int nested;                        /* example calls that are open within the value */
    int fresh_line;                    /* the '<' is the first character of its line */
    int (*given)(void *arg, const char *key);
    void *arg;
};

struct q_ending {
    enum q_tool_ending kind;
    int tagged;     /* </tool_call> was there */
    char key[Q_TOOL_NAME_MAX + 1];
};

void q_look_ending(struct q_look *l, const struct q_in_value *v, struct q_ending *x);

int q_look_is_space(char c);

#endif
