#include "tool_calls_impl.h"

int tc_was_given(void *arg, const char *key)
{
    const struct q_tool_calls *p = arg;
    for (size_t i = 0; i < p->given.n; i += strlen(p->given.at + i) + 1)
        if (!strcmp(p->given.at + i, key)) return 1;
    return 0;
}

int tc_begin_value(struct q_tool_calls *p, const char *key, struct q_err *e)
{
    int first = p->given.n == 0;
    p->at = AT_VALUE;
    p->in_value = START;
    p->seen = 0;
    p->nested = 0;
    p->doubtful = 0;
    q_tool_value_start(&p->value, q_tools_kinds(p->tools, p->tool, key));
    int rc = q_text_add(&p->out, first ? "{\"" : ",\"", 2, e);
    if (!rc) rc = q_json_escape(&p->out, key, strlen(key), e);
    if (!rc) rc = q_text_add(&p->out, "\":", 2, e);
    if (!rc) rc = tc_put_out(p, e);
    return rc ? rc : q_text_add(&p->given, key, strlen(key) + 1, e);
}

/* The first n bytes belong to the value. A draft that grows too long is given up at the same byte however the text was cut. */
static int grow_value(struct q_tool_calls *p, size_t n, struct q_err *e)
{
    size_t used = p->events.raw.n;
    if (in_draft(p) && n && used + n > Q_TOOL_HELD) {
        int rc = tc_consume(p, used < Q_TOOL_HELD ? Q_TOOL_HELD - used : 0, e);
        return rc ? rc : tc_drop_draft(p, 0, e);
    }
    if (n) p->in_value = MIDDLE;
    int rc = q_tool_value_push(&p->value, text_of(p), n, &p->out, e);
    if (!rc) rc = tc_put_out(p, e);
    return rc ? rc : tc_consume(p, n, e);
}

/* The value ends at `end`, with the tags behind it at `behind`; then comes parameter `key`, or, if it is NULL, the end of the call. */
static int end_value(struct q_tool_calls *p, size_t end, size_t behind, const char *key, struct q_err *e)
{
    int line = end && text_of(p)[end - 1] == '\n';
    p->doubtful = 0;
    int rc = grow_value(p, end - (size_t)line, e);
    if (rc || p->at != AT_VALUE) return rc;
    rc = q_tool_value_end(&p->value, &p->out, e);
    if (!rc && !key) rc = q_text_add(&p->out, "}", 1, e);
    if (!rc) rc = tc_put_out(p, e);
    if (!rc) rc = tc_consume(p, behind - end + (size_t)line, e);
    return rc ? rc : key ? tc_begin_value(p, key, e) : tc_end_call(p, 1, e);
}

/* Text follows the call's last tag and no better ending came. */
static int end_in_doubt(struct q_tool_calls *p, struct q_err *e) { return end_value(p, p->end, p->behind, NULL, e); }

/* The part is over within a value. What looks like the beginning of its last tags is not shown. */
static int leave_value(struct q_tool_calls *p, size_t shown, struct q_err *e)
{
    if (p->doubtful) return end_in_doubt(p, e);
    int rc = grow_value(p, shown, e);
    if (rc || p->at != AT_VALUE) return rc;
    rc = tc_consume(p, left(p), e);
    return rc ? rc : tc_end_call(p, 0, e);
}

/* What is certainly of the value, and whether there can be more. `c` is where a '<' is undecided, or the end. */
static int wait_in_value(struct q_tool_calls *p, size_t c, int last, int *going, struct q_err *e)
{
    size_t shown = c && text_of(p)[c - 1] == '\n' && !(last && c == left(p)) ? c - 1 : c;
    p->seen = c;
    *going = last;
    if (last) return leave_value(p, shown, e);
    return p->doubtful ? Q_OK : grow_value(p, shown, e);
}

/* In doubt, a call that follows decides. 1: at c one does; -1: not known yet. */
static int call_follows(const struct q_tool_calls *p, size_t c, int last)
{
    struct q_look l = look_at(p, c, last);
    struct q_header h;
    q_look_header(&l, p->tools, &h);
    return l.more ? -1 : h.form != Q_HEADER_NONE;
}

static void doubt(struct q_tool_calls *p, size_t end, const struct q_look *l, const struct q_ending *x)
{
    p->doubtful = 1;
    p->end = end;
    p->behind = p->seen = l->i;
    p->end_tagged = x->tagged;
}

/* Whether c may be the beginning of the last tags, which the end of the part cut off. */
static int cut_off(const struct q_look *l, const struct q_ending *x, size_t c)
{
    return x->kind == Q_ENDING_LITERAL && l->ran_out && (c + 1 == l->n || l->s[c + 1] == '/');
}

static int at_tag(struct q_tool_calls *p, size_t c, int last, int *going, struct q_err *e)
{
    int follows = p->doubtful ? call_follows(p, c, last) : 0;
    if (follows > 0) return end_in_doubt(p, e);
    struct q_look l = look_at(p, c, last);
    int fresh = c ? l.s[c - 1] == '\n' : p->in_value != MIDDLE;
    struct q_in_value v = {p->tools, p->tool, p->nested, fresh, tc_was_given, p};
    struct q_ending x;
    q_look_ending(&l, &v, &x);
    if (l.more || follows < 0 || cut_off(&l, &x, c)) return wait_in_value(p, c, last, going, e);
    p->seen = c + 1;
    p->nested += (x.kind == Q_ENDING_OPENS) - (x.kind == Q_ENDING_CLOSES);
    if (x.kind == Q_ENDING_NEXT) return end_value(p, c, l.i, x.key, e);
    if (x.kind == Q_ENDING_CALL) return end_value(p, c, l.i, NULL, e);
    if (x.kind == Q_ENDING_DOUBTFUL) doubt(p, c, &l, &x);
    return Q_OK;
}

int tc_step_value(struct q_tool_calls *p, int last, int *going, struct q_err *e)
{
    if (p->in_value == START && left(p) && *text_of(p) == '\n') {
        p->in_value = FIRST_LINE;
        return tc_consume(p, 1, e);
    }
    size_t n = left(p), most = p->doubtful ? p->end + Q_TOOL_HELD : n;
    size_t c = next_tag(p, p->seen, n < most ? n : most);
    if (c < n && c < most) return at_tag(p, c, last, going, e);
    if (!p->doubtful || n < most) return wait_in_value(p, n, last, going, e);
    if (p->end_tagged) return end_in_doubt(p, e);
    p->doubtful = 0;
    p->seen = most;
    return Q_OK;
}

