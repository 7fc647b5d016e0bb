/* POST /v1/chat/completions: reads the request, queues a job, writes its answer as it comes or whole. */
#include "api.h"
#include "chat_ask.h"
#include "chat_form.h"
#include "runtime/cli.h"
#include "sse.h"
#include <stdlib.h>

struct reply {
    struct server *sv;
    struct job *job;             /* held */
    struct chat_form form;
    int begun;
};

/* What an outcome that is no answer tells the client. */
static void outcome_error(const struct job_outcome *o, struct api_error *x)
{
    if (o->end == JOB_FAILED) api_fail_err(x, "messages", &o->err);
    else if (o->end == JOB_SHUTDOWN) api_fail(x, 503, "shutting_down", NULL, "the server is shutting down");
    else api_fail(x, 503, "cancelled", NULL, "the request was cancelled");
}

static void note_outcome(struct http_request *rq, const struct job_outcome *o)
{
    static const char *const finish[] = {"stop", "length", "cancelled"};
    const struct q_answer *a = &o->answer;
    double rate = a->n_generated > 1 && a->decode_s > 0 ? (a->n_generated - 1) / a->decode_s : 0;
    if (o->end == JOB_FAILED) http_note(rq, "%.200s", o->err.text);
    else if (o->end != JOB_ANSWERED) http_note(rq, o->end == JOB_SHUTDOWN ? "ended by shutdown" : "cancelled, the client is gone");
    else http_note(rq, "prompt %d (%d cached), answer %d, %s, %.1f tok/s", a->n_prompt, a->n_cached, a->n_generated, finish[a->finish], rate);
}

/* Nobody waits for the job any more: it leaves the queue at once, or the engine after its step. */
static void leave(struct reply *r)
{
    job_cancel(r->job);
    queue_remove(r->sv->queue, r->job);
    job_drop(r->job);
    r->job = NULL;
}

/* ---- streamed ---- */

static int stream_end(struct reply *r, struct text *out)
{
    struct job_outcome o;
    struct api_error x;
    job_outcome(r->job, &o);
    if (o.end == JOB_ANSWERED) {
        chat_form_end(&r->form, &o.answer, out);
    } else {
        outcome_error(&o, &x);
        sse_error(&x, out);
    }
    return 1;
}

static int stream_more(void *arg, struct text *out)
{
    struct reply *r = arg;
    struct text piece = {0};
    enum q_part part;
    if (!r->begun) {
        r->begun = 1;
        chat_form_role(&r->form, out);
        return 0;
    }
    switch (job_take(r->job, SSE_QUIET_S, &part, &piece)) {
    case JOB_DONE: return stream_end(r, out);
    case JOB_TEXT:
        chat_form_delta(&r->form, part, &piece, out);
        out->bad |= piece.bad;
        break;
    case JOB_GONE: return -1;
    case JOB_QUIET: sse_comment(out);
    }
    text_free(&piece);
    return 0;
}

static void stream_closed(void *arg, struct http_request *rq)
{
    struct reply *r = arg;
    struct job_outcome o = {.end = JOB_CANCELLED};
    struct text rest = {0};
    enum q_part part;
    if (job_take(r->job, 0, &part, &rest) == JOB_DONE) job_outcome(r->job, &o);
    text_free(&rest);
    note_outcome(rq, &o);
    leave(r);
    free(r);
}

/* ---- whole ---- */

/* Waits to the end, or until the client is gone. */
static void collect(struct reply *r, struct text parts[2], struct job_outcome *o)
{
    struct text piece = {0};
    enum q_part part;
    *o = (struct job_outcome){.end = JOB_CANCELLED};
    if (job_wait(r->job) == JOB_GONE) return;
    while (job_take(r->job, 0, &part, &piece) == JOB_TEXT) {
        if (piece.n) text_add(&parts[part], piece.at, piece.n);
        parts[part].bad |= piece.bad;
        text_free(&piece);
    }
    job_outcome(r->job, o);
}

static void reply_whole(struct http_request *rq, struct reply *r)
{
    struct text parts[2] = {{0}}, out = {0};
    struct job_outcome o;
    struct api_error x = {0};
    http_patience(rq);
    collect(r, parts, &o);
    note_outcome(rq, &o);
    if (o.end == JOB_ANSWERED) {
        chat_form_whole(&r->form, &o.answer, &parts[Q_PART_CONTENT], &parts[Q_PART_THINKING], &out);
        out.bad |= parts[0].bad | parts[1].bad;
        http_reply_json(rq, 200, &out);
    } else if (o.end != JOB_CANCELLED) {
        outcome_error(&o, &x);
        http_reply_error(rq, &x);
    }
    text_free(&parts[0]);
    text_free(&parts[1]);
    leave(r);
    free(r);
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
    api_fail(&x, 429, "queue_full", NULL, "%d requests are waiting already; try again", sv->o.queue);
    http_reply_later(rq, &x, retry_after(sv));
}

/* 0, or -1 after a reply. */
static int enqueue(struct http_request *rq, struct reply *r)
{
    struct api_error x = {0};
    enum queue_push pushed = queue_push(r->sv->queue, r->job);
    if (pushed == QUEUE_TAKEN) return 0;
    if (pushed == QUEUE_FULL) {
        reply_full(rq);
    } else {
        api_fail(&x, 503, "shutting_down", NULL, "the server is shutting down");
        http_reply_later(rq, &x, 5);
    }
    return -1;
}

static struct reply *open_reply(struct http_request *rq, struct chat_ask *ask, struct api_error *x)
{
    struct server *sv = http_server(rq);
    struct q_err e;
    struct reply *r = calloc(1, sizeof *r);
    if (!r) {
        job_ask_free(&ask->job);
        api_fail(x, 503, "no_memory", NULL, "no memory for a request");
        return NULL;
    }
    r->sv = sv;
    chat_form_init(&r->form, sv->alias, q_engine_numerics_id(worker_engine(sv->worker)), ask->usage);
    if (!job_open(&r->job, &ask->job, http_fd(rq), !ask->stream && http_takes_interim(rq), &e)) return r;
    api_fail_err(x, NULL, &e);
    free(r);
    return NULL;
}

void api_chat(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    size_t n;
    const char *body = http_body(rq, &n);
    struct api_error x = {0};
    struct chat_ask ask;
    struct reply *r = NULL;
    /* Under load a refusal must be cheap; what fills the queue meanwhile is seen when the job is queued. */
    if (queue_counts(sv->queue).waiting >= sv->o.queue) {
        reply_full(rq);
        return;
    }
    if (!chat_ask_read(&ask, sv, body, n, &x)) r = open_reply(rq, &ask, &x);
    if (!r) {
        http_reply_error(rq, &x);
        return;
    }
    if (enqueue(rq, r)) {
        job_drop(r->job);
        free(r);
    } else if (ask.stream) {
        http_reply_stream(rq, &(struct http_stream){stream_more, stream_closed, r});
    } else {
        reply_whole(rq, r);
    }
}
