#include "track.h"
#include <stdlib.h>
#include <string.h>

static void fail(struct track *t)
{
    t->ended = 1;
    t->outcome.end = JOB_FAILED;
    q_fail(&t->outcome.err, Q_EMEM, "no memory for an answer");
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

static void take_text(struct track *t, enum q_part part, const struct text *piece)
{
    struct event ev = {.kind = part == Q_PART_THINKING ? EVENT_THINKING : EVENT_TEXT, .text = piece->at, .n = piece->n};
    if (keep_tokens(t) || piece->bad) fail(t);
    else if (piece->n) tell(t, &ev);
}

static void take_end(struct track *t)
{
    job_outcome(t->job, &t->outcome);
    t->ended = 1;
    if (t->outcome.end != JOB_ANSWERED) return;
    const struct q_answer *a = &t->outcome.answer;
    struct event ev = {.kind = EVENT_END, .stopped_by = a->stopped_by, .finish = a->finish == Q_FINISH_LENGTH ? FINISH_LENGTH : FINISH_STOP};
    tell(t, &ev);
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
    free(t->token);
    *t = (struct track){0};
}
