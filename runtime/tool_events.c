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
    v->n_shown |= x->kind == Q_TOOL_CONTENT;
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
static const char *next_entry(const struct tok_text *record, size_t *at, struct entry *x)
{
    if (*at == record->n) return NULL;
    memcpy(x, record->at + *at, sizeof *x);
    const char *s = record->at + *at + sizeof *x;
    *at += sizeof *x + x->n;
    return s;
}

int q_tool_events_drafted(const struct q_tool_events *v, const char *name)
{
    struct entry x;
    const char *s;
    for (size_t at = 0; v->drafting && (s = next_entry(&v->record, &at, &x));)
        if (x.kind == Q_TOOL_BEGIN && x.n == strlen(name) && !memcmp(s, name, x.n)) return 1;
    return 0;
}

static int hand_over(struct q_tool_events *v, const struct tok_text *record, struct q_err *e)
{
    struct entry x;
    const char *s;
    int rc = Q_OK;
    for (size_t at = 0; !rc && (s = next_entry(record, &at, &x));) rc = deliver(v, &x, s, e);
    return rc;
}

int q_tool_events_keep(struct q_tool_events *v, struct q_err *e)
{
    v->drafting = 0;
    return hand_over(v, &v->record, e);
}

int q_tool_events_meant(struct q_tool_events *v, struct q_err *e)
{
    return v->n_begun || v->n_shown ? Q_OK : hand_over(v, &v->aside, e);
}

int q_tool_events_drop(struct q_tool_events *v, int whole, struct q_err *e)
{
    struct tok_text spare = v->aside;
    v->drafting = 0;
    if (whole) v->aside = v->record, v->record = spare;
    return q_tool_events_put(v, Q_TOOL_THINKING, v->raw.at, v->raw.n, 0, e);
}

void q_tool_events_free(struct q_tool_events *v)
{
    free(v->raw.at);
    free(v->record.at);
    free(v->aside.at);
}
