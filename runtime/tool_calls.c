#include "tool_calls_impl.h"
#include <cjson/cJSON.h>

enum { MAX_RUN = 1024 }; /* white space that waits for what follows it */

int q_tool_calls_open(struct q_tool_calls **out, const struct q_tools *tools, q_tool_sink *sink, void *arg, struct q_err *e)
{
    struct q_tool_calls *p = *out = calloc(1, sizeof *p);
    if (!p) return q_fail(e, Q_EMEM, "no memory to read tool calls");
    p->tools = q_tools_n(tools) ? tools : NULL;
    p->events.sink = sink;
    p->events.arg = arg;
    return Q_OK;
}

void q_tool_calls_close(struct q_tool_calls *p)
{
    if (!p) return;
    q_tool_events_free(&p->events);
    q_tool_value_free(&p->value);
    free(p->held.at);
    free(p->given.at);
    free(p->out.at);
    free(p);
}

int q_tool_calls_n(const struct q_tool_calls *p) { return p->events.n_complete; }

int tc_consume(struct q_tool_calls *p, size_t n, struct q_err *e)
{
    int rc = in_draft(p) ? q_text_add(&p->events.raw, text_of(p), n, e) : Q_OK;
    p->from += n;
    p->seen = p->seen > n ? p->seen - n : 0;
    return rc;
}

int tc_drop_draft(struct q_tool_calls *p, int whole, struct q_err *e)
{
    p->at = AT_TEXT;
    p->seen = 0;
    p->doubtful = p->after_call = 0;
    return q_tool_events_drop(&p->events, whole, e);
}

/* Text ends a draft: in thinking it was none, in content it stands. */
static int settle_draft(struct q_tool_calls *p, struct q_err *e)
{
    if (!p->events.drafting) return Q_OK;
    return in_draft(p) ? tc_drop_draft(p, 1, e) : q_tool_events_keep(&p->events, e);
}

/* The first n bytes are text; they are consumed. White space behind a call is not shown. */
static int pass_text(struct q_tool_calls *p, size_t n, struct q_err *e)
{
    const char *s = text_of(p);
    size_t skip = 0;
    if (p->after_call || p->events.drafting)
        while (skip < n && q_look_is_space(s[skip])) skip++;
    if (skip == n) return tc_consume(p, n, e);
    if (in_draft(p)) skip = 0;
    p->after_call = 0;
    int rc = settle_draft(p, e);
    if (!rc) rc = q_tool_events_put(&p->events, p->part == Q_PART_THINKING ? Q_TOOL_THINKING : Q_TOOL_CONTENT, s + skip, n - skip, 0, e);
    return rc ? rc : tc_consume(p, n, e);
}

/* ---- a call ---- */

static int put(struct q_tool_calls *p, enum q_tool_event_kind kind, const char *s, struct q_err *e)
{
    return q_tool_events_put(&p->events, kind, s, strlen(s), 0, e);
}

int tc_put_out(struct q_tool_calls *p, struct q_err *e)
{
    int rc = q_tool_events_put(&p->events, Q_TOOL_ARGUMENTS, p->out.at, p->out.n, 0, e);
    p->out.n = 0;
    return rc;
}

static int begin_call(struct q_tool_calls *p, int tool, struct q_err *e)
{
    const char *name = q_tools_name(p->tools, tool);
    int rc = Q_OK;
    p->tool = tool;
    p->given.n = 0;
    p->after_call = 0;
    if (p->part == Q_PART_THINKING && !p->events.drafting) q_tool_events_draft(&p->events);
    else if (p->part == Q_PART_CONTENT) rc = q_tool_events_drafted(&p->events, name) ? tc_drop_draft(p, 0, e) : settle_draft(p, e);
    return rc ? rc : put(p, Q_TOOL_BEGIN, name, e);
}

static int has_required(const struct q_tool_calls *p)
{
    const char *key;
    for (int i = 0; (key = q_tools_required(p->tools, p->tool, i)); i++)
        if (!tc_was_given((void *)p, key)) return 0;
    return 1;
}

int tc_end_call(struct q_tool_calls *p, int complete, struct q_err *e)
{
    p->at = AT_TEXT;
    p->seen = 0;
    if (in_draft(p) && (!complete || !has_required(p) || p->events.raw.n > Q_TOOL_HELD)) return tc_drop_draft(p, 0, e);
    p->after_call = 1;
    return q_tool_events_put(&p->events, Q_TOOL_END, "", 0, complete, e);
}

/* ---- steps: each decides what comes next, or sets *going to 0 because it needs more text ---- */

/* The keys of a JSON call's arguments. */
static int note_given(struct q_tool_calls *p, const struct tok_text *arguments, struct q_err *e)
{
    int rc = Q_OK;
    cJSON *object = cJSON_ParseWithLength(arguments->at, arguments->n);
    for (const cJSON *v = object ? object->child : NULL; v && !rc; v = v->next) rc = q_text_add(&p->given, v->string, strlen(v->string) + 1, e);
    cJSON_Delete(object);
    return rc;
}

static int put_json_call(struct q_tool_calls *p, int tool, const struct tok_text *arguments, size_t n, struct q_err *e)
{
    int rc = begin_call(p, tool, e);
    if (!rc) rc = note_given(p, arguments, e);
    if (!rc) rc = q_tool_events_put(&p->events, Q_TOOL_ARGUMENTS, arguments->at, arguments->n, 0, e);
    if (!rc) rc = tc_consume(p, n, e);
    return rc ? rc : tc_end_call(p, 1, e);
}

/* The call ends at `end`, and its tag at `behind`. */
static int end_json(struct q_tool_calls *p, size_t end, size_t behind, struct q_err *e)
{
    struct tok_text arguments = {0};
    int tool, is = q_tool_json_read(text_of(p) + p->json, end - p->json, p->tools, &tool, &arguments, e);
    p->at = AT_TEXT;
    int rc = is < 0 ? Q_EMEM : is ? put_json_call(p, tool, &arguments, behind, e) : pass_text(p, end, e);
    free(arguments.at);
    return rc;
}

static int step_json(struct q_tool_calls *p, int last, int *going, struct q_err *e)
{
    size_t n = left(p) < Q_TOOL_HELD ? left(p) : Q_TOOL_HELD;
    int found = p->json_closed ? 1 : q_tool_braces(&p->braces, text_of(p) + p->json, n - p->json);
    size_t end = p->json + p->braces.at;
    struct q_look l = look_at(p, end, last);
    p->json_closed = found > 0;
    int ends = found > 0 && q_look_call_end(&l);
    *going = found > 0 ? !l.more : found < 0 || last || n == Q_TOOL_HELD;
    if (!*going) return Q_OK;
    if (ends) return end_json(p, end, l.i, e);
    p->at = AT_TEXT;
    return pass_text(p, end, e);
}

/* A header was read up to l->i. */
static int enter(struct q_tool_calls *p, const struct q_look *l, const struct q_header *h, struct q_err *e)
{
    if (h->form == Q_HEADER_JSON) {
        p->at = AT_JSON;
        p->json = l->i;
        p->json_closed = 0;
        p->braces = (struct q_tool_braces){0};
        return Q_OK;
    }
    size_t behind = l->i;
    int rc = begin_call(p, h->tool, e);
    if (!rc) rc = tc_consume(p, behind, e);
    if (rc || h->form == Q_HEADER_XML) return rc ? rc : tc_begin_value(p, h->key, e);
    rc = put(p, Q_TOOL_ARGUMENTS, "{}", e);
    return rc ? rc : tc_end_call(p, 1, e);
}

static int step_text(struct q_tool_calls *p, int last, int *going, struct q_err *e)
{
    const char *s = text_of(p);
    size_t n = left(p), lt = next_tag(p, 0, n), shown = lt;
    while (shown && q_look_is_space(s[shown - 1])) shown--;
    shown += (lt - shown) / MAX_RUN * MAX_RUN;
    if (lt == n && last) shown = n;
    if (shown) return pass_text(p, shown, e);
    struct q_look l = look_at(p, lt, last);
    struct q_header h = {0};
    if (lt < n) q_look_header(&l, p->tools, &h);
    *going = lt < n && !l.more;
    if (!*going) return Q_OK;
    return h.form == Q_HEADER_NONE ? pass_text(p, lt + 1, e) : enter(p, &l, &h, e);
}

static int run(struct q_tool_calls *p, int last, struct q_err *e)
{
    int rc = Q_OK, going = 1;
    while (!rc && going && (left(p) || (last && p->at != AT_TEXT)))
        rc = p->at == AT_TEXT ? step_text(p, last, &going, e) : p->at == AT_JSON ? step_json(p, last, &going, e) : tc_step_value(p, last, &going, e);
    return rc;
}

/* ---- in and out ---- */

static int finish_part(struct q_tool_calls *p, struct q_err *e)
{
    int rc = run(p, 1, e);
    p->after_call = 0;
    return rc;
}

static void forget_decided(struct q_tool_calls *p)
{
    if (!p->from) return;
    p->held.n -= p->from;
    memmove(p->held.at, p->held.at + p->from, p->held.n);
    p->from = 0;
}

int q_tool_calls_push(struct q_tool_calls *p, enum q_part part, const char *s, size_t n, struct q_err *e)
{
    if (!n) return Q_OK;
    if (!p->tools) return q_tool_events_put(&p->events, part == Q_PART_THINKING ? Q_TOOL_THINKING : Q_TOOL_CONTENT, s, n, 0, e);
    int rc = part != p->part ? finish_part(p, e) : Q_OK;
    p->part = part;
    forget_decided(p);
    if (!rc) rc = q_text_add(&p->held, s, n, e);
    return rc ? rc : run(p, 0, e);
}

int q_tool_calls_end(struct q_tool_calls *p, int cut, struct q_err *e)
{
    p->cut = cut;
    int rc = run(p, 1, e);
    if (!rc && p->events.drafting) rc = q_tool_events_keep(&p->events, e);
    return rc || cut ? rc : q_tool_events_meant(&p->events, e);
}
