/* The loop of an answer on one sequence: read what is new of the prompt, draw a token, feed it back. What a token means is turn.h's. */
#include "answer.h"
#include "answer_reuse.h"
#include "clock.h"
#include "turn.h"
#include <stdio.h>
#include <stdlib.h>

struct q_talk {
    struct q_engine *engine;             /* borrowed */
    const struct tokenizer *tokenizer;   /* borrowed; NULL: ids are all there is */
    struct q_timeline timeline;
};

struct answering {
    struct q_talk *talk;
    const struct q_answer_opts *o;
    struct q_turn turn;
};

int q_talk_open(struct q_talk **out, struct q_engine *en, struct q_err *e)
{
    struct q_talk *t = calloc(1, sizeof *t);
    if (!t) return q_fail(e, Q_EMEM, "no memory for a talk");
    t->engine = en;
    t->tokenizer = q_engine_tokenizer(en);
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

static int over(struct answering *a)
{
    if (!a->turn.over && a->o->cancelled && a->o->cancelled(a->o->arg)) q_turn_finish(&a->turn, Q_FINISH_CANCELLED);
    return a->turn.over;
}

/* One step over ids[0, n); `draws`: its last row draws the next token. */
static int feed(struct answering *a, const int32_t *ids, int n, int keep, int draws, struct q_err *e)
{
    struct q_row last = {0};
    struct q_result r;
    int rc = draws ? q_turn_draw(&a->turn, &last, e) : Q_OK;
    if (!rc) rc = timeline_feed(&a->talk->timeline, ids, n, keep, last.want, last.sampling, &r, e);
    return rc || !draws ? rc : q_turn_take(&a->turn, &r, 0, e);
}

static int read_prompt(struct answering *a, const int32_t *ids, int n, struct q_err *e)
{
    struct q_timeline *t = &a->talk->timeline;
    int keep = place_to_keep(a->talk->tokenizer, ids, n), most = q_engine_max_rows(a->talk->engine);
    int rc = timeline_reach(t, ids, n, e);
    a->turn.out->n_cached = t->n;
    while (!rc && t->n < n && !over(a)) {
        int m = n - t->n < most ? n - t->n : most, last = t->n + m == n;
        rc = feed(a, ids + t->n, m, keep, last && a->o->max_tokens, e);
    }
    if (!rc && !a->o->max_tokens) q_turn_finish(&a->turn, Q_FINISH_LENGTH);
    return rc;
}

static int answer(struct answering *a, const int32_t *ids, int n, struct q_err *e)
{
    double begin = clock_s();
    int rc = read_prompt(a, ids, n, e);
    double read = clock_s();
    a->turn.out->prefill_s = read - begin;
    while (!rc && !over(a)) {
        int32_t id = a->turn.id;
        rc = feed(a, &id, 1, 0, 1, e);
    }
    if (!rc) rc = q_turn_end(&a->turn, e);
    a->turn.out->decode_s = clock_s() - read;
    return rc;
}

int q_check_prompt(int ctx, size_t n, struct q_err *e)
{
    if (!n) return q_fail(e, Q_EINPUT, "the prompt is empty");
    if (n > (size_t)ctx) return q_fail(e, Q_ELIMIT, "the prompt has %zu tokens and the context is %d; -c raises it", n, ctx);
    return Q_OK;
}

int q_talk_answer(struct q_talk *t, const int32_t *ids, size_t n, const struct q_answer_opts *o, struct q_answer *out, struct q_err *e)
{
    struct answering a = {.talk = t, .o = o};
    int ctx = q_engine_ctx(t->engine);
    *out = (struct q_answer){.n_prompt = n < INT32_MAX ? (int)n : INT32_MAX, .stopped_by = -1};
    int rc = q_check_prompt(ctx, n, e);
    if (!rc) rc = q_turn_open(&a.turn, t->tokenizer, ctx, (int)n, o, out, e);
    if (rc) return rc;
    rc = answer(&a, ids, (int)n, e);
    q_turn_close(&a.turn);
    return rc;
}

double q_answer_rate(const struct q_answer *a)
{
    return a->n_generated > 1 && a->decode_s > 0 ? (a->n_generated - 1) / a->decode_s : 0;
}

void q_answer_text(char dst[Q_ANSWER_TEXT], const struct q_answer *a)
{
    int n = a->n_generated;
    if (n < 2) snprintf(dst, Q_ANSWER_TEXT, "%d token%s", n, n == 1 ? "" : "s");
    else snprintf(dst, Q_ANSWER_TEXT, "%d tokens, the last %d in %.3f s: %.1f tok/s", n, n - 1, a->decode_s, q_answer_rate(a));
}

const char *q_reuse_name(enum q_reuse r)
{
    static const char *const names[Q_REUSE_KINDS] = {"untold", "slot", "snapshot", "empty", "different", "no_place", "busy"};
    return names[r];
}
