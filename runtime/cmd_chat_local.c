#define _GNU_SOURCE
#include "chat.h"
#include "cmd_chat_from.h"
#include "reply.h"
#include "session_work.h"
#include <signal.h>
#include <stdlib.h>

/* One place to go back to and one to come: the end of the last user turn, and of this one. */
enum { SNAPS = 2, CTX_HINT = 8192 };

struct local {
    struct chat_from base;       /* first */
    struct q_engine *engine;
    struct q_chat *template;
    struct q_talk *talk;
    struct session_work *session;   /* borrowed */
    struct tok_ids ids;          /* of the prompt; used again for each turn */
    void (*say)(void *arg, const char *line);   /* the engine's */
    void *say_arg;
};

static int encode(struct local *l, const struct chat_ask *ask, struct q_err *e)
{
    const char *options = ask->think < 0 ? NULL : ask->think ? "{\"enable_thinking\": true}" : "{\"enable_thinking\": false}";
    l->ids.n = 0;
    int rc = q_chat_encode(l->template, ask->messages, NULL, options, &l->ids, e);
    size_t n = l->ids.n;
    l->base.left_out = 0;
    if (!rc) rc = q_cut_prompt(q_engine_tokenizer(l->engine), &l->ids, l->base.ctx, (int)ask->most, ask->cut, &l->base.left_out, e);
    if (rc == Q_ELIMIT && ask->cut == Q_CUT_NEVER)
        rc = q_fail(e, Q_ELIMIT, "with this the conversation has %zu tokens and the context is %d: /clear starts over; at the start -c N gives more, "
                    "and --truncate head leaves out the oldest turns", n, l->base.ctx);
    return rc;
}

static int answer(struct chat_from *f, const struct chat_ask *ask, struct q_answer *out, struct q_err *e)
{
    struct local *l = (struct local *)f;
    struct q_answer_opts o = {
        .sampling = ask->sampling->params, .max_tokens = (int)ask->most, .cancelled = ask->cancelled, .text = ask->text, .arg = ask->arg};
    char missed[SESSION_MISSED];
    int rc = encode(l, ask, e);
    if (!rc) rc = session_work_resume(l->session, l->engine, l->talk, l->ids.at, l->ids.n, missed, e);
    if (rc) return rc;
    if (*missed) l->say(l->say_arg, missed);
    o.thinking = q_reply_opens_thinking(q_engine_tokenizer(l->engine), l->ids.at, l->ids.n);
    return q_talk_answer(l->talk, l->ids.at, l->ids.n, &o, out, e);
}

static int save(struct chat_from *f, const char *messages, size_t *written, struct q_err *e)
{
    struct local *l = (struct local *)f;
    return session_work_save(l->session, l->talk, NULL, 0, messages, written, e);
}

static void close_local(struct chat_from *f)
{
    struct local *l = (struct local *)f;
    q_talk_close(l->talk);
    q_chat_close(l->template);
    q_engine_close(l->engine);
    free(l->ids.at);
    free(l);
}

/* The engine's threads keep the mask that they begin with: Ctrl-C is for this one. */
static int open_engine(struct q_engine **engine, const struct q_engine_opts *o, struct q_err *e)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    int rc = q_engine_open(engine, o, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int chat_from_engine(struct chat_from **out, struct q_engine_opts *o, struct session_work *session, struct q_err *e)
{
    struct local *l = calloc(1, sizeof *l);
    if (!l) return q_fail(e, Q_EMEM, "no memory for a conversation");
    l->base = (struct chat_from){.answer = answer, .close = close_local, .save = session->path ? save : NULL};
    l->session = session;
    l->say = o->say;
    l->say_arg = o->say_arg;
    o->max_snaps = session->path ? SESSION_WORK_SNAPS : SNAPS;
    o->ctx_hint = CTX_HINT + (session->file ? session_head(session->file)->n_ids : 0);
    o->formats = session_work_formats;
    o->formats_arg = session;
    int rc = open_engine(&l->engine, o, e);
    if (!rc) rc = q_chat_open(&l->template, l->engine, NULL, e);
    if (!rc) rc = q_talk_open(&l->talk, l->engine, e);
    if (!rc && session->file) rc = session_fits(session->file, l->engine, e);
    if (rc) {
        close_local(&l->base);
        return rc;
    }
    l->base.ctx = q_engine_ctx(l->engine);
    *out = &l->base;
    return Q_OK;
}
