/* One answer after the other: a scheduler (scheduler.h) with one slot, so that run, chat and the server read, draw and remember alike. */
#include "answer.h"
#include "scheduler.h"
#include <stdio.h>
#include <stdlib.h>

struct q_talk {
    struct q_sched *sched;               /* owned */
};

/* How the scheduler's answer comes back. */
struct outcome {
    struct q_answer *answer;
    struct q_err *err;
    int ended, rc;
};

int q_talk_open(struct q_talk **out, struct q_engine *en, struct q_err *e)
{
    struct q_talk *t = calloc(1, sizeof *t);
    struct q_sched_engine se = q_sched_engine_of(en);
    if (!t) return q_fail(e, Q_EMEM, "no memory for a talk");
    se.max_seqs = 1;
    int rc = q_sched_open(&t->sched, &se, e);
    if (rc) free(t);
    else *out = t;
    return rc;
}

void q_talk_close(struct q_talk *t)
{
    if (!t) return;
    q_sched_close(t->sched);
    free(t);
}

struct q_sched *q_talk_sched(struct q_talk *t) { return t->sched; }

int q_check_prompt(int ctx, size_t n, struct q_err *e)
{
    if (!n) return q_fail(e, Q_EINPUT, "the prompt is empty");
    if (n > (size_t)ctx) return q_fail(e, Q_ELIMIT, "the prompt has %zu tokens and the context is %d; -c raises it", n, ctx);
    return Q_OK;
}

static void ended(void *arg, const struct q_answer *a, const struct q_err *err)
{
    struct outcome *o = arg;
    o->ended = 1;
    *o->answer = *a;
    if (!err) return;
    o->rc = err->code;
    if (o->err) *o->err = *err;
}

int q_talk_answer(struct q_talk *t, const int32_t *ids, size_t n, const struct q_answer_opts *o, struct q_answer *out, struct q_err *e)
{
    struct outcome end = {.answer = out, .err = e};
    const struct q_sched_ask ask = {.ids = ids, .n = n, .o = *o, .ended = ended, .arg = &end};
    *out = (struct q_answer){.n_prompt = n < INT32_MAX ? (int)n : INT32_MAX, .stopped_by = -1, .other = -1};
    int rc = q_sched_add(t->sched, &ask, e);
    while (!rc && !end.ended) q_sched_step(t->sched);
    return rc ? rc : end.rc;
}

/* Tokens a second. The first comes with the prompt's last step, so the time behind the prompt is that of the others. 0: there are none. */
static double rate(const struct q_answer *a)
{
    return a->n_generated > 1 && a->decode_s > 0 ? (a->n_generated - 1) / a->decode_s : 0;
}

void q_answer_text(char dst[Q_ANSWER_TEXT], const struct q_answer *a)
{
    int n = a->n_generated;
    if (n < 2) snprintf(dst, Q_ANSWER_TEXT, "%d token%s", n, n == 1 ? "" : "s");
    else snprintf(dst, Q_ANSWER_TEXT, "%d tokens, the last %d in %.3f s: %.1f tok/s", n, n - 1, a->decode_s, rate(a));
}

const char *q_reuse_name(enum q_reuse r)
{
    static const char *const names[Q_REUSE_KINDS] = {"untold", "slot", "device", "host", "disk", "empty", "different", "evicted", "no_place", "busy"};
    return names[r];
}
