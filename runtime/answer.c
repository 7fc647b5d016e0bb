/* The loop of an answer: read what is new of the prompt, draw a token, show its text, feed it back.
 *
 * Text goes id -> whole characters (tok_stream) -> thinking or content (reply) -> without what may be a stop string (stop_strings)
 * -> the caller. A stop string is looked for in thinking and in content, not across the two.
 */
#include "answer.h"
#include "answer_reuse.h"
#include "reply.h"
#include "stop_strings.h"
#include "text.h"
#include <time.h>

struct q_talk {
    struct q_engine *engine;             /* borrowed */
    const struct tokenizer *tokenizer;   /* borrowed; NULL: ids are all there is */
    struct q_timeline timeline;
    int32_t end_of_turn;                 /* <|im_end|>, -1 */
};

struct answering {
    struct q_talk *talk;
    const struct q_answer_opts *o;
    struct q_answer *out;
    struct q_history *history;
    struct q_sampling sampling;
    int id;                              /* drawn last */
    float logprob;
    int over;                            /* `finish` is decided */
    int left;                            /* the caller wants no more text */

    struct tok_stream stream;
    struct q_reply reply;
    struct q_stops stops;
    enum q_part part;                    /* that `stops` reads */
    struct tok_text piece, shown;        /* owned, used again for each token */
    struct q_reply_text split;
};

int q_talk_open(struct q_talk **out, struct q_engine *en, struct q_err *e)
{
    struct q_talk *t = calloc(1, sizeof *t);
    if (!t) return q_fail(e, Q_EMEM, "no memory for a talk");
    t->engine = en;
    t->tokenizer = q_engine_tokenizer(en);
    t->end_of_turn = t->tokenizer ? tok_find(t->tokenizer, "<|im_end|>", 10) : -1;
    int rc = timeline_open(&t->timeline, en, e);
    if (rc) free(t);
    else *out = t;
    return rc;
}

void q_talk_close(struct q_talk *t)
{
    if (!t) return;
    timeline_close(&t->timeline);
    free(t);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void finish(struct answering *a, enum q_finish how)
{
    a->out->finish = how;
    a->over = 1;
}

static int cancelled(struct answering *a)
{
    if (a->o->cancelled && a->o->cancelled(a->o->arg)) finish(a, Q_FINISH_CANCELLED);
    return a->over;
}

/* ---- text ---- */

/* Hands over what is in `shown`. */
static void emit(struct answering *a)
{
    if (a->shown.n && !a->left && a->o->text && a->o->text(a->o->arg, a->part, a->shown.at, a->shown.n)) {
        a->left = 1;
        if (!a->over) finish(a, Q_FINISH_CANCELLED);
    }
    a->shown.n = 0;
}

static int flush_stops(struct answering *a, struct q_err *e)
{
    int rc = q_stops_flush(&a->stops, &a->shown, e);
    if (!rc) emit(a);
    return rc;
}

static int show_part(struct answering *a, enum q_part part, struct tok_text *text, struct q_err *e)
{
    int rc = Q_OK;
    if (!text->n || a->stops.met) return Q_OK;
    if (part != a->part) rc = flush_stops(a, e);
    a->part = part;
    if (!rc) rc = q_stops_push(&a->stops, text->at, text->n, &a->shown, e);
    text->n = 0;
    if (rc) return rc;
    if (a->stops.met) finish(a, Q_FINISH_STOP);
    emit(a);
    return Q_OK;
}

/* What is in `piece`; `last`: there will be no more. */
static int show(struct answering *a, int last, struct q_err *e)
{
    int rc = Q_OK;
    if (a->o->raw) {
        rc = show_part(a, Q_PART_CONTENT, &a->piece, e);
    } else {
        rc = q_reply_push(&a->reply, a->piece.at, a->piece.n, &a->split, e);
        if (!rc && last) rc = q_reply_end(&a->reply, &a->split, e);
        if (!rc) rc = show_part(a, Q_PART_THINKING, &a->split.thinking, e);
        if (!rc) rc = show_part(a, Q_PART_CONTENT, &a->split.content, e);
    }
    a->piece.n = 0;
    return rc || !last ? rc : flush_stops(a, e);
}

static int show_id(struct answering *a, struct q_err *e)
{
    const struct tokenizer *t = a->talk->tokenizer;
    if (!t || !a->o->text || tok_type(t, a->id) == TOK_CONTROL) return Q_OK;
    int rc = tok_stream_push(&a->stream, t, a->id, &a->piece, e);
    return rc ? rc : show(a, 0, e);
}

static int show_rest(struct answering *a, struct q_err *e)
{
    if (!a->o->text || a->left || a->stops.met) return Q_OK;
    int rc = tok_stream_flush(&a->stream, &a->piece, e);
    return rc ? rc : show(a, 1, e);
}

/* ---- tokens ---- */

/* Behind the last finished turn: the next prompt of this conversation is the same up to there, while the template may write what
 * follows in another way (it drops earlier thinking). A prompt without turns may come back whole, and its last token is read anew. */
static int place_to_keep(const struct q_talk *t, const int32_t *ids, int n)
{
    for (int i = n; i > 0; i--)
        if (ids[i - 1] == t->end_of_turn) return i;
    return n - 1;
}

static int draw(struct answering *a, const int32_t *ids, int n, int keep, unsigned want, struct q_err *e)
{
    struct q_result r;
    q_history_fill(a->history, &a->sampling);
    int rc = timeline_feed(&a->talk->timeline, ids, n, keep, want, &a->sampling, &r, e);
    if (rc || !want) return rc;
    a->id = r.id[0];
    a->logprob = r.logprob[0];
    if (a->id < 0) return q_fail(e, Q_EINTERNAL, "the model gave no usable logits after token %d", a->talk->timeline.n);
    return Q_OK;
}

static int read_prompt(struct answering *a, const int32_t *ids, int n, struct q_err *e)
{
    struct q_timeline *t = &a->talk->timeline;
    int keep = place_to_keep(a->talk, ids, n), most = q_engine_max_rows(a->talk->engine);
    int rc = timeline_reach(t, ids, n, e);
    a->out->n_cached = t->n;
    a->sampling.position = n;
    while (!rc && t->n < n && !cancelled(a)) {
        int m = n - t->n < most ? n - t->n : most, last = t->n + m == n;
        rc = draw(a, ids + t->n, m, keep, last && a->o->max_tokens ? Q_WANT_ID : 0, e);
    }
    return rc;
}

/* Takes the token that was drawn; decides whether it is the last. */
static int take(struct answering *a, struct q_err *e)
{
    const struct q_answer_opts *o = a->o;
    int rc = q_history_push(a->history, a->id, e);
    if (rc) return rc;
    a->out->n_generated++;
    if (o->token && o->token(o->arg, a->id, a->logprob)) finish(a, Q_FINISH_CANCELLED);
    else if (a->talk->tokenizer && tok_is_end(a->talk->tokenizer, a->id)) finish(a, Q_FINISH_STOP);
    else rc = show_id(a, e);
    return rc;
}

static int decode(struct answering *a, struct q_err *e)
{
    const struct q_timeline *t = &a->talk->timeline;
    int rc = take(a, e);
    while (!rc && !a->over) {
        int full = a->o->max_tokens >= 0 && a->out->n_generated >= a->o->max_tokens;
        if (full || t->n == q_engine_ctx(a->talk->engine)) finish(a, Q_FINISH_LENGTH);
        if (a->over || cancelled(a)) break;
        int32_t id = a->id;
        a->sampling.position++;
        rc = draw(a, &id, 1, 0, Q_WANT_ID, e);
        if (!rc) rc = take(a, e);
    }
    return rc;
}

static int answer(struct answering *a, const int32_t *ids, int n, struct q_err *e)
{
    double begin = seconds();
    int rc = read_prompt(a, ids, n, e);
    double read = seconds();
    a->out->prefill_s = read - begin;
    if (!rc && !a->over && !a->o->max_tokens) finish(a, Q_FINISH_LENGTH);
    if (!rc && !a->over) rc = decode(a, e);
    if (!rc) rc = show_rest(a, e);
    a->out->decode_s = seconds() - read;
    return rc;
}

static int check_prompt(const struct q_talk *t, size_t n, struct q_err *e)
{
    int ctx = q_engine_ctx(t->engine);
    if (!n) return q_fail(e, Q_EINPUT, "the prompt is empty");
    if (n > (size_t)ctx) return q_fail(e, Q_ELIMIT, "the prompt has %zu tokens and the context is %d; -c raises it", n, ctx);
    return Q_OK;
}

int q_talk_answer(struct q_talk *t, const int32_t *ids, size_t n, const struct q_answer_opts *o, struct q_answer *out, struct q_err *e)
{
    struct answering a = {.talk = t, .o = o, .out = out, .sampling.p = o->sampling};
    *out = (struct q_answer){.n_prompt = n < INT32_MAX ? (int)n : INT32_MAX};
    int rc = check_prompt(t, n, e);
    if (!rc) rc = q_stops_open(&a.stops, o->stop, o->n_stop, e);
    if (!rc) rc = q_history_open(&a.history, o->sampling.last_n, e);
    if (rc) return rc;
    q_reply_start(&a.reply, o->thinking);
    a.part = o->thinking && !o->raw ? Q_PART_THINKING : Q_PART_CONTENT;
    rc = answer(&a, ids, (int)n, e);
    q_history_close(a.history);
    q_stops_close(&a.stops);
    free(a.piece.at);
    free(a.shown.at);
    free(a.split.thinking.at);
    free(a.split.content.at);
    return rc;
}
