#include "tool_look.h"
#include <string.h>

/* More than any model writes; the same tag twice is a known fault. */
enum { MAX_SPACE = 256, MAX_REPEATS = 4 };

static const char CALL[] = "<tool_call>", CALL_END[] = "</tool_call>", FUNCTION[] = "<function=", FUNCTION_END[] = "</function>",
                  PARAMETER[] = "<parameter=", PARAMETER_END[] = "</parameter>";

int q_look_is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static int ran_out(struct q_look *l)
{
    l->ran_out = 1;
    l->more = !l->last;
    return 0;
}

static int word(struct q_look *l, const char *w)
{
    size_t n = strlen(w), left = l->n - l->i, m = n < left ? n : left;
    if (memcmp(l->s + l->i, w, m)) return 0;
    if (m < n) return ran_out(l);
    l->i += n;
    return 1;
}

/* Returns whether there was a line's end in it. */
static int space(struct q_look *l)
{
    int line = 0;
    for (int k = 0; k < MAX_SPACE && l->i < l->n && q_look_is_space(l->s[l->i]); k++) line |= l->s[l->i++] == '\n';
    return line;
}

static int at_end(struct q_look *l)
{
    if (l->i < l->n) return 0;
    ran_out(l);
    return l->last && !l->cut;
}

/* NAME> */
static int name(struct q_look *l, char *out, size_t *n)
{
    for (*n = 0; l->i < l->n && *n <= Q_TOOL_NAME_MAX; ++*n) {
        char c = l->s[l->i++];
        out[*n] = 0;
        if (c == '>') return *n > 0;
        if (c == '<' || (unsigned char)c < 32 || *n == Q_TOOL_NAME_MAX) return 0;
        out[*n] = c;
    }
    return ran_out(l);
}

/* Whether a call follows, or nothing. */
static int call_or_end(struct q_look *l)
{
    struct q_look ahead = *l;
    int yes = at_end(&ahead) || word(&ahead, CALL) || word(&ahead, FUNCTION);
    l->ran_out |= ahead.ran_out;
    l->more |= ahead.more;
    return yes;
}

/* ---- where a call begins ---- */

static enum q_tool_header after_function_tag(struct q_look *l, const struct q_tools *tools, int tagged, struct q_header *h)
{
    size_t n;
    if (!name(l, h->key, &n) || (h->tool = q_tools_find(tools, h->key, n)) < 0) return Q_HEADER_NONE;
    space(l);
    if (word(l, PARAMETER)) return name(l, h->key, &n) ? Q_HEADER_XML : Q_HEADER_NONE;
    if (l->more || !word(l, FUNCTION_END)) return Q_HEADER_NONE;
    size_t behind = l->i;
    space(l);
    if (word(l, CALL_END)) return Q_HEADER_EMPTY;
    if (!tagged || l->more || !call_or_end(l)) return Q_HEADER_NONE;
    l->i = behind;
    return Q_HEADER_EMPTY;
}

void q_look_header(struct q_look *l, const struct q_tools *tools, struct q_header *h)
{
    int tagged = word(l, CALL);
    if (tagged) space(l);
    h->form = Q_HEADER_NONE;
    if (word(l, FUNCTION)) h->form = after_function_tag(l, tools, tagged, h);
    else if (tagged && l->i == l->n) ran_out(l);
    else if (tagged && l->s[l->i] == '{') h->form = Q_HEADER_JSON;
}

int q_look_call_end(struct q_look *l)
{
    size_t behind = l->i;
    space(l);
    if (word(l, CALL_END)) return 1;
    int yes = call_or_end(l);
    l->i = behind;
    return yes;
}

/* ---- where a value ends ---- */

/* </function> was read, which belongs to a </parameter>. */
static enum q_tool_ending after_function_end(struct q_look *l, const struct q_in_value *v, struct q_ending *x)
{
    size_t behind = l->i;
    space(l);
    for (int k = 0; k < MAX_REPEATS && word(l, CALL_END); k++) {
        x->tagged = 1;
        behind = l->i;
        space(l);
    }
    int all = l->i == l->n && l->last, over = x->tagged && all; /* a cut behind the last tag does no harm */
    int follows = !over && call_or_end(l);
    l->i = behind;
    if (over || (follows && all)) return Q_ENDING_CALL;
    if (all || l->more || v->nested) return Q_ENDING_LITERAL;
    return follows ? Q_ENDING_CALL : Q_ENDING_DOUBTFUL;
}

/* </tool_call>, where </function> or </parameter> is missing: only if nothing else can be meant. */
static enum q_tool_ending after_call_end(struct q_look *l, const struct q_in_value *v, struct q_ending *x)
{
    size_t behind = l->i;
    x->tagged = 1;
    space(l);
    int ends = call_or_end(l);
    l->i = behind;
    return ends && !v->nested ? Q_ENDING_CALL : Q_ENDING_LITERAL;
}

/* <parameter= was read. A key that the schema does not know must look exactly as templates write it. */
static enum q_tool_ending after_parameter_tag(struct q_look *l, const struct q_in_value *v, int fresh_line, struct q_ending *x)
{
    size_t n;
    if (!name(l, x->key, &n) || v->nested || v->given(v->arg, x->key)) return Q_ENDING_LITERAL;
    if (q_tools_declares(v->tools, v->tool, x->key)) return Q_ENDING_NEXT;
    if (l->i == l->n) ran_out(l);
    return fresh_line && l->i < l->n && l->s[l->i] == '\n' ? Q_ENDING_NEXT : Q_ENDING_LITERAL;
}

/* </parameter> was read. One that is repeated ends the value where it first begins a line, if it ever does. */
static enum q_tool_ending after_parameter_end(struct q_look *l, const struct q_in_value *v, struct q_ending *x)
{
    int line = space(l);
    for (int k = 0; k < MAX_REPEATS && word(l, PARAMETER_END); k++) {
        if (line && !v->fresh_line) return Q_ENDING_LITERAL;
        line = space(l);
    }
    if (word(l, PARAMETER)) return after_parameter_tag(l, v, v->fresh_line, x);
    if (word(l, FUNCTION_END)) return after_function_end(l, v, x);
    if (word(l, CALL_END)) return after_call_end(l, v, x);
    if (l->i == l->n) ran_out(l);
    return Q_ENDING_LITERAL;
}

static enum q_tool_ending opens_example(struct q_look *l, struct q_ending *x)
{
    size_t n;
    if (!name(l, x->key, &n)) return Q_ENDING_LITERAL;
    space(l);
    return word(l, PARAMETER) ? Q_ENDING_OPENS : Q_ENDING_LITERAL;
}

void q_look_ending(struct q_look *l, const struct q_in_value *v, struct q_ending *x)
{
    x->tagged = 0;
    x->kind = Q_ENDING_LITERAL;
    if (word(l, PARAMETER_END)) x->kind = after_parameter_end(l, v, x);
    else if (word(l, FUNCTION)) x->kind = opens_example(l, x);
    else if (word(l, FUNCTION_END)) {
        if (v->nested) x->kind = Q_ENDING_CLOSES;
        else {
            space(l);
            x->kind = word(l, CALL_END) ? after_call_end(l, v, x) : Q_ENDING_LITERAL;
        }
    }
}
