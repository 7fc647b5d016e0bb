#include "exchange.h"
#include "sse.h"
#include "runtime/clock.h"
#include "runtime/tool_list.h"
#include "track.h"
#include "transcript.h"
#include <stdio.h>
#include <stdlib.h>

struct exchange {
    struct server *sv;
    const struct form *form;
    void *f;                     /* owned: the form's state */
    struct track *track;         /* owned: [n], one a choice */
    struct q_tools *tools;       /* owned, or NULL */
    int n, per_prompt;           /* choices, and of one prompt */
    int n_cut;                   /* tokens left out of the prompts */
    int begun;
    int lively;                  /* the choice that spoke last: it is the one to be woken by */
};

/* ---- how it went: usage, errors, the log line ---- */

static void add_usage(const struct exchange *x, struct usage *u)
{
    *u = (struct usage){.n_cut = x->n_cut};
    for (int i = 0; i < x->n; i++) {
        const struct q_answer *a = &x->track[i].outcome.answer;
        if (i % x->per_prompt == 0) u->n_prompt += a->n_prompt, u->n_cached += a->n_cached;
        u->n_generated += a->n_generated;
        u->n_thinking += a->n_thinking;
        u->n_timed += a->n_generated > 1 ? a->n_generated - 1 : 0;
        u->prefill_s = a->prefill_s > u->prefill_s ? a->prefill_s : u->prefill_s;
        u->decode_s = a->decode_s > u->decode_s ? a->decode_s : u->decode_s;
    }
}

/* The first choice that ended without an answer; NULL: none did. */
static const struct job_outcome *failure(const struct exchange *x)
{
    for (int i = 0; i < x->n; i++)
        if (x->track[i].ended && x->track[i].outcome.end != JOB_ANSWERED) return &x->track[i].outcome;
    return NULL;
}

/* What an outcome that is no answer tells the client. */
static void outcome_error(const struct job_outcome *o, struct api_error *x)
{
    if (o->end == JOB_FAILED) api_fail_err(x, NULL, &o->err);
    else if (o->end == JOB_SHUTDOWN) api_fail(x, 503, "shutting_down", NULL, "the server is shutting down");
    else api_fail(x, 503, "cancelled", NULL, "the request was cancelled");
}

static int all_ended(const struct exchange *x)
{
    for (int i = 0; i < x->n; i++)
        if (!x->track[i].ended) return 0;
    return 1;
}

/* Where the prompt leaves what is kept: "; token 412 differs, in message 1 (system)". Tokens themselves only where texts are logged. */
static const char *tell_difference(const struct exchange *x, char *to, size_t cap)
{
    const struct q_answer *a = &x->track[0].outcome.answer;
    const struct tok_ids *ids = &job_asked(x->track[0].job)->prompt;
    const struct tokenizer *tk = q_engine_tokenizer(worker_engine(x->sv->worker));
    *to = 0;
    if (a->other < 0 || (size_t)a->n_shared >= ids->n) return to;
    int n = snprintf(to, cap, "; token %d differs", a->n_shared);
    if (x->sv->o.log_text) {
        struct tok_str is = tok_piece(tk, ids->at[a->n_shared]), was = tok_piece(tk, a->other);
        n += snprintf(to + n, cap - (size_t)n, ": '%.*s' was '%.*s'", (int)(is.n < 40 ? is.n : 40), is.at ? is.at : "",
                      (int)(was.n < 40 ? was.n : 40), was.at ? was.at : "");
    }
    if (a->message) snprintf(to + n, cap - (size_t)n, ", in message %d (%s)", a->message, a->role[0] ? a->role : "no role");
    return to;
}

static void note(struct http_request *rq, const struct exchange *x)
{
    static const char *const finish[] = {"stop", "length", "cancelled"};
    const struct job_outcome *bad = failure(x);
    struct usage u;
    if (bad && bad->end == JOB_FAILED) {
        http_note(rq, "%.200s", bad->err.text);
    } else if (bad || !all_ended(x)) {
        http_note(rq, bad && bad->end == JOB_SHUTDOWN ? "ended by shutdown" : "cancelled, the client is gone");
    } else {
        add_usage(x, &u);
        const struct q_answer *first = &x->track[0].outcome.answer;
        char cut[40] = "", differs[200];
        if (u.n_cut) snprintf(cut, sizeof cut, "%d left out, ", u.n_cut);
        http_note(rq, "prompt %d (%s%d cached: %s%s), answer %d, %s, %.1f tok/s", u.n_prompt, cut, u.n_cached, q_reuse_name(first->reuse),
                  tell_difference(x, differs, sizeof differs), u.n_generated, x->n > 1 ? "several" : finish[first->finish],
                  u.decode_s > 0 ? u.n_timed / u.decode_s : 0);
    }
}

/* Nobody waits for the jobs any more: each leaves the queue at once, or the engine after its step. */
static void close_exchange(struct exchange *x)
{
    for (int i = 0; i < x->n; i++) {
        struct job *j = x->track[i].job;
        if (j) {
            job_cancel(j);
            queue_remove(x->sv->queue, j);
        }
        track_close(&x->track[i]);
    }
    if (x->f) x->form->free(x->f);
    free(x->track);
    q_tools_close(x->tools);
    free(x);
}

/* ---- streamed ---- */

struct writer {
    struct exchange *x;
    struct text *out;
};

static void write_event(void *arg, const struct event *ev)
{
    struct writer *w = arg;
    w->x->form->event(w->x->f, ev, w->out);
}

static int write_end(struct exchange *x, struct text *out)
{
    const struct job_outcome *bad = failure(x);
    struct usage u;
    struct api_error err = {0};
    if (bad) {
        outcome_error(bad, &err);
        x->form->fault(x->f, &err, out);
    } else {
        add_usage(x, &u);
        x->form->end(x->f, &u, out);
    }
    return 1;
}

/* What one choice has; whether it had anything, or is gone, comes back. */
static enum job_event take(struct exchange *x, int i, double seconds, struct text *out)
{
    struct writer w = {x, out};
    return x->track[i].ended ? JOB_QUIET : track_take(&x->track[i], seconds, write_event, &w);
}

/* What any choice has: each is looked at; if none has a thing, one that runs is waited for (those that run speak at about the same time), but
 * not long where there are others. */
static enum job_event take_any(struct exchange *x, struct text *out)
{
    const double end = clock_s() + x->sv->o.quiet_s, turn_s = 0.02;
    enum job_event got = JOB_QUIET;
    for (double now; got == JOB_QUIET && (now = clock_s()) < end;) {
        int waits = -1;
        for (int i = 0; i < x->n; i++) {
            enum job_event one = take(x, i, 0, out);
            if (one == JOB_GONE) return JOB_GONE;
            if (one != JOB_QUIET) got = one, x->lively = i;
            else if (!x->track[i].ended && (waits < 0 || i == x->lively)) waits = i;
        }
        if (got == JOB_QUIET && waits >= 0) got = take(x, waits, x->n > 1 ? turn_s : end - now, out);
    }
    return got;
}

static int stream_more(void *arg, struct text *out)
{
    struct exchange *x = arg;
    if (!x->begun) {
        x->begun = 1;
        x->form->begin(x->f, out);
        return 0;
    }
    if (failure(x) || all_ended(x)) return write_end(x, out);
    enum job_event got = take_any(x, out);
    if (got == JOB_GONE) return -1;
    if (got == JOB_QUIET) sse_comment(out);
    return 0;
}

static void ignore_event(void *arg, const struct event *ev) {}

static void stream_closed(void *arg, struct http_request *rq)
{
    struct exchange *x = arg;
    /* A client may leave with the last bytes on their way; how it ended is told all the same. */
    for (int i = 0; i < x->n; i++)
        if (!x->track[i].ended) track_take(&x->track[i], 0, ignore_event, NULL);
    note(rq, x);
    close_exchange(x);
}

/* ---- whole ---- */

static void keep_event(void *arg, const struct event *ev) { transcript_add(arg, ev); }

/* Waits to the end of all, until one fails, or until the client is gone. */
static void collect(struct exchange *x, struct choice *choices)
{
    for (int i = 0; i < x->n && !failure(x); i++) {
        if (job_wait(x->track[i].job) == JOB_GONE) return;
        while (!x->track[i].ended) track_take(&x->track[i], 0, keep_event, choices);
    }
}

static void reply_collected(struct http_request *rq, struct exchange *x, struct choice *choices)
{
    const struct job_outcome *bad = failure(x);
    struct api_error err = {0};
    struct text out = {0};
    struct usage u;
    /* Cancelled: nobody is there to be told, and nothing failed. */
    if (bad && bad->end != JOB_CANCELLED) {
        outcome_error(bad, &err);
        http_reply_error(rq, &err);
    } else if (!bad && all_ended(x)) {
        add_usage(x, &u);
        x->form->whole(x->f, choices, x->n, &u, &out);
        out.bad |= !transcript_ok(choices, x->n);
        http_reply_json(rq, 200, &out);
    }
}

static void reply_whole(struct http_request *rq, struct exchange *x)
{
    struct choice *choices = calloc((size_t)x->n, sizeof *choices);
    struct api_error err = {0};
    http_patience(rq);
    if (choices) {
        collect(x, choices);
        note(rq, x);
        reply_collected(rq, x, choices);
        transcript_free(choices, x->n);
    } else {
        api_fail(&err, 503, "no_memory", NULL, "no memory for an answer");
        http_reply_error(rq, &err);
    }
    free(choices);
    close_exchange(x);
}

/* ---- into the queue ---- */

/* As long as what waits will take, by the answers of late. */
static int retry_after(struct server *sv)
{
    struct queue_counts c = queue_counts(sv->queue);
    double s = (c.waiting + 1) * c.answer_s;
    return s < 1 ? 1 : s > 60 ? 60 : (int)s;
}

static void reply_full(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    struct api_error x = {0};
    api_fail(&x, 429, "queue_full", NULL, "%d requests are waiting already, of %d that may; try again", queue_counts(sv->queue).waiting, sv->o.queue);
    http_reply_later(rq, &x, retry_after(sv));
}

int exchange_full(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    if (queue_counts(sv->queue).waiting < sv->o.queue) return 0;
    reply_full(rq);
    return 1;
}

/* 0, or -1 after a reply. */
static int enqueue(struct http_request *rq, struct exchange *x)
{
    struct api_error err = {0};
    enum queue_push pushed = QUEUE_TAKEN;
    for (int i = 0; i < x->n && pushed == QUEUE_TAKEN; i++) pushed = queue_push(x->sv->queue, x->track[i].job);
    if (pushed == QUEUE_TAKEN) return 0;
    if (pushed == QUEUE_FULL) {
        reply_full(rq);
    } else {
        api_fail(&err, 503, "shutting_down", NULL, "the server is shutting down");
        http_reply_later(rq, &err, 5);
    }
    return -1;
}

static int open_jobs(struct http_request *rq, struct exchange *x, const struct ask *ask, struct q_err *e)
{
    struct job_ask one;
    int rc = Q_OK;
    for (int i = 0; i < x->n && !rc; i++) {
        x->track[i].choice = i;
        rc = ask_job(ask, i, &one, e);
        one.client = http_client(rq);
        /* One of them is enough to probe the client. */
        if (!rc && x->tools) rc = track_read_calls(&x->track[i], x->tools, e);
        if (!rc && ask->no_calls) rc = track_end_at_call(&x->track[i], e);
        if (rc) job_ask_free(&one);
        if (!rc) rc = job_open(&x->track[i].job, &one, http_fd(rq), !i && !ask->stream && http_takes_interim(rq), e);
    }
    return rc;
}

static struct exchange *open_exchange(struct http_request *rq, struct ask *ask, const struct form *form, void *f, struct q_err *e)
{
    struct exchange *x = f ? calloc(1, sizeof *x) : NULL;
    struct track *track = x ? calloc((size_t)ask_choices(ask), sizeof *track) : NULL;
    if (!track) {
        free(x);
        if (f) form->free(f);
        q_fail(e, Q_EMEM, "no memory for a request");
        return NULL;
    }
    *x = (struct exchange){.sv = http_server(rq), .form = form, .f = f, .track = track, .n = ask_choices(ask), .per_prompt = ask->n,
        .tools = ask->tools, .n_cut = ask->n_cut};
    ask->tools = NULL;
    if (!open_jobs(rq, x, ask, e)) return x;
    close_exchange(x);
    return NULL;
}

void exchange(struct http_request *rq, struct ask *ask, const struct form *form, void *f)
{
    struct q_err e;
    struct api_error err = {0};
    int stream = ask->stream;
    struct exchange *x = open_exchange(rq, ask, form, f, &e);
    ask_free(ask);
    if (!x) {
        api_fail_err(&err, NULL, &e);
        http_reply_error(rq, &err);
    } else if (enqueue(rq, x)) {
        close_exchange(x);
    } else if (stream) {
        http_reply_stream(rq, &(struct http_stream){stream_more, stream_closed, x});
    } else {
        reply_whole(rq, x);
    }
}

void exchange_body(struct http_request *rq, int (*read)(struct ask *a, struct server *sv, const char *body, size_t n, struct api_error *x),
                   const struct form *form, void *(*open)(struct server *sv, const struct ask *ask))
{
    struct server *sv = http_server(rq);
    struct api_error x = {0};
    struct ask ask;
    size_t n;
    const char *body = http_body(rq, &n);
    if (exchange_full(rq)) return;
    if (read(&ask, sv, body, n, &x)) http_reply_error(rq, &x);
    else exchange(rq, &ask, form, open(sv, &ask));
}
