#include "tool_events.h"
#include "text.h"

struct entry {
    enum q_tool_event_kind kind;
    int complete;
    size_t n;
};

static int deliver(struct q_tool_events *v, const struct entry *x, const char *s, struct q_err *e)
{
    v->n_begun += x->kind == Q_TOOL_BEGIN;
    v->n_complete += x->kind == Q_TOOL_END && x->complete;
    struct q_tool_event ev = {.kind = x->kind, .text = x->n ? s : "", .n = x->n, .call = v->n_begun - 1, .complete = x->complete};
    return v->sink(v->arg, &ev, e);
}

int q_tool_events_put(struct q_tool_events *v, enum q_tool_event_kind kind, const char *s, size_t n, int complete, struct q_err *e)
{
    struct entry x = {kind, complete, n};
    if (!n && (kind == Q_TOOL_CONTENT || kind == Q_TOOL_THINKING || kind == Q_TOOL_ARGUMENTS)) return Q_OK;
    if (!v->drafting) return deliver(v, &x, s, e);
    int rc = q_text_add(&v->record, (const char *)&x, sizeof x, e);
    return rc ? rc : q_text_add(&v->record, s, n, e);
}

void q_tool_events_draft(struct q_tool_events *v)
{
    v->drafting = 1;
    v->raw.n = v->record.n = 0;
}

/* The entry at *at, and its text; *at moves behind them. NULL: no more. */
static const char *next_entry(const struct q_tool_events *v, size_t *at, struct entry *x)
{
    if (*at == v->record.n) return NULL;
    memcpy(x, v->record.at + *at, sizeof *x);
    const char *s = v->record.at + *at + sizeof *x;
    *at += sizeof *x + x->n;
    return s;
}

int q_tool_events_drafted(const struct q_tool_events *v, const char *name)
{
    struct entry x;
    const char *s;
    for (size_t at = 0; v->drafting && (s = next_entry(v, &at, &x));)
        if (x.kind == Q_TOOL_BEGIN && x.n == strlen(name) && !memcmp(s, name, x.n)) return 1;
    return 0;
}

int q_tool_events_keep(struct q_tool_events *v, struct q_err *e)
{
    struct entry x;
    const char *s;
    int rc = Q_OK;
    v->drafting = 0;
    for (size_t at = 0; !rc && (s = next_entry(v, &at, &x));) rc = deliver(v, &x, s, e);
    return rc;
}

int q_tool_events_drop(struct q_tool_events *v, struct q_err *e)
{
    v->drafting = 0;
    return q_tool_events_put(v, Q_TOOL_THINKING, v->raw.at, v->raw.n, 0, e);
}

void q_tool_events_free(struct q_tool_events *v)
{
    free(v->raw.at);
    free(v->record.at);
}
