#include "track.h"
#include "openai.h"
#include "runtime/tool_calls.h"
#include <stdlib.h>
#include <string.h>

static void give_up(struct track *t, const char *why)
{
    t->ended = 1;
    t->outcome.end = JOB_FAILED;
    q_fail(&t->outcome.err, Q_EMEM, "%s", why);
}

/* Tells it with the tokens that wait. */
static void tell(struct track *t, struct event *ev)
{
    ev->choice = t->choice;
    ev->token = t->token;
    ev->n_tokens = t->n_tokens;
    t->sink(t->arg, ev);
    t->n_tokens = 0;
}

static int keep_tokens(struct track *t)
{
    const struct q_token *token;
    int n = job_tokens(t->job, &token);
    struct q_token *more = n ? realloc(t->token, (size_t)(t->n_tokens + n) * sizeof *more) : NULL;
    if (!n) return 0;
    if (!more) return -1;
    memcpy(more + t->n_tokens, token, (size_t)n * sizeof *more);
    t->token = more;
    t->n_tokens += n;
    return 0;
}

/* ---- text ---- */

static int read_event(void *arg, const struct q_tool_event *from, struct q_err *e)
{
    static const enum event_kind kind[] = {[Q_TOOL_THINKING] = EVENT_THINKING, [Q_TOOL_CONTENT] = EVENT_TEXT, [Q_TOOL_BEGIN] = EVENT_CALL,
        [Q_TOOL_ARGUMENTS] = EVENT_ARGUMENTS, [Q_TOOL_END] = EVENT_CALL_END};
    struct track *t = arg;
    if (from->kind == Q_TOOL_BEGIN) openai_id("call_", t->call_id, sizeof t->call_id);
    struct event ev = {.kind = kind[from->kind], .text = from->text, .n = from->n, .call = from->call, .call_id = t->call_id,
        .complete = from->complete};
    tell(t, &ev);
    return Q_OK;
}

/* piece NULL: no more comes, and what waits was no tag. */
static void take_before_tag(struct track *t, const struct text *piece)
{
    struct tok_text out = {0};
    struct q_err e;
    int rc = piece ? q_stops_push(&t->tag, text_of(piece), piece->n, &out, &e) : q_stops_flush(&t->tag, &out, &e);
    struct event ev = {.kind = EVENT_TEXT, .text = out.at, .n = out.n};
    if (rc) give_up(t, e.text);
    else if (out.n) tell(t, &ev);
    free(out.at);
}

static void take_text(struct track *t, enum q_part part, const struct text *piece)
{
    struct event ev = {.kind = part == Q_PART_THINKING ? EVENT_THINKING : EVENT_TEXT, .text = piece->at, .n = piece->n};
    struct q_err e;
    if (keep_tokens(t) || piece->bad) give_up(t, "no memory for an answer");
    else if (t->no_calls && part == Q_PART_CONTENT) take_before_tag(t, piece);
    else if (!t->calls && piece->n) tell(t, &ev);
    else if (t->calls && q_tool_calls_push(t->calls, part, text_of(piece), piece->n, &e)) give_up(t, e.text);
}

/* ---- the end ---- */

static enum finish finish_of(const struct track *t)
{
    if (t->outcome.answer.finish == Q_FINISH_LENGTH) return FINISH_LENGTH;
    return t->calls && q_tool_calls_n(t->calls) ? FINISH_CALLS : FINISH_STOP;
}

static void take_end(struct track *t)
{
    const struct q_answer *a = &t->outcome.answer;
    struct q_err e;
    job_outcome(t->job, &t->outcome);
    t->ended = 1;
    if (t->outcome.end != JOB_ANSWERED) return;
    if (t->no_calls) take_before_tag(t, NULL);
    if (t->outcome.end != JOB_ANSWERED) return;
    if (t->calls && q_tool_calls_end(t->calls, a->finish != Q_FINISH_STOP || a->stopped_by >= 0, &e)) {
        give_up(t, e.text);
        return;
    }
    struct event ev = {.kind = EVENT_END, .stopped_by = a->stopped_by, .finish = finish_of(t)};
    tell(t, &ev);
}

int track_read_calls(struct track *t, const struct q_tools *tools, struct q_err *e) { return q_tool_calls_open(&t->calls, tools, read_event, t, e); }

int track_end_at_call(struct track *t, struct q_err *e)
{
    static const char *const tag[] = {"<tool_call>", "\n<tool_call>", "\n\n<tool_call>"};
    t->no_calls = 1;
    return q_stops_open(&t->tag, tag, 3, e);
}

enum job_event track_take(struct track *t, double seconds, event_sink sink, void *arg)
{
    struct text piece = {0};
    enum q_part part;
    t->sink = sink;
    t->arg = arg;
    enum job_event got = job_take(t->job, seconds, &part, &piece);
    if (got == JOB_DONE) take_end(t);
    else if (got == JOB_TEXT) take_text(t, part, &piece);
    text_free(&piece);
    return got;
}

void track_close(struct track *t)
{
    job_drop(t->job);
    q_tool_calls_close(t->calls);
    q_stops_close(&t->tag);
    free(t->token);
    *t = (struct track){0};
}
