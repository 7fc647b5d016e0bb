#include "cmd_run_session.h"
#include "reply.h"
#include "text.h"
#include <stdlib.h>
#include <string.h>

static int check_kind(const struct run_session *s, struct q_err *e)
{
    int talks = s->work.file && session_head(s->work.file)->n_text > 0;
    if (!s->work.file || talks != s->raw) return Q_OK;
    if (talks) return q_fail(e, Q_EINPUT, "%s: the session is a conversation: expected no --raw", s->work.path);
    return q_fail(e, Q_EINPUT, "%s: the session is a text and no conversation: expected --raw", s->work.path);
}

int run_session_open(struct run_session *s, const char *path, int raw, struct q_err *e)
{
    *s = (struct run_session){.raw = raw, .work.lock = -1};
    if (!path) return Q_OK;
    int rc = session_work_open(&s->work, path, e);
    if (!rc) rc = check_kind(s, e);
    if (!rc && !raw) rc = chat_history_open(&s->history, e);
    if (!rc && s->history && s->work.file) rc = chat_history_load(s->history, session_text(s->work.file), path, e);
    return rc;
}

void run_session_close(struct run_session *s)
{
    session_work_close(&s->work);
    chat_history_close(s->history);
    free(s->answer.at);
    free(s->text.at);
}

int run_session_length(const struct run_session *s) { return s->work.file ? session_head(s->work.file)->n_ids : 0; }

int run_session_tokens(const struct run_session *s, struct tok_ids *ids, struct q_err *e)
{
    return s->work.file ? tok_ids_add(ids, session_ids(s->work.file), (size_t)session_head(s->work.file)->n_ids, e) : Q_OK;
}

int run_session_messages(struct run_session *s, const char *system, const char *prompt, char **json, struct q_err *e)
{
    int rc = system ? chat_history_system(s->history, system, e) : Q_OK;
    if (!rc) rc = chat_history_user(s->history, prompt, e);
    return rc ? rc : chat_history_json(s->history, json, e);
}

int run_session_resume(struct run_session *s, const struct q_cli *cli, struct q_engine *en, struct q_talk *t, const struct tok_ids *prompt,
                       struct q_err *e)
{
    char missed[SESSION_MISSED];
    int rc = session_work_resume(&s->work, en, t, prompt->at, prompt->n, missed, e);
    if (!rc && *missed) cli_fact(cli, "%s", missed);
    return rc;
}

int run_session_token(struct run_session *s, int id) { return tok_ids_add(&s->answer, &id, 1, NULL); }
int run_session_text(struct run_session *s, const char *text, size_t n) { return q_text_add(&s->text, text, n, NULL); }

/* The answer becomes the conversation's last message. */
static int end_turn(struct run_session *s, int thinking, struct q_err *e)
{
    struct q_reply r = {0};
    struct q_reply_text parts = {0};
    q_reply_start(&r, thinking);
    int rc = q_reply_push(&r, s->text.at ? s->text.at : "", s->text.n, &parts, e);
    if (!rc) rc = q_reply_end(&r, &parts, e);
    if (!rc) rc = q_text_add(&parts.content, "", 1, e);
    if (!rc) rc = q_text_add(&parts.thinking, "", 1, e);
    if (!rc) rc = chat_history_assistant(s->history, parts.content.at, parts.thinking.at, e);
    free(parts.content.at);
    free(parts.thinking.at);
    return rc;
}

int run_session_save(struct run_session *s, const struct q_cli *cli, struct q_talk *t, const struct tok_ids *prompt, int thinking,
                     struct q_err *e)
{
    struct tok_ids all = {0};
    char *json = NULL;
    size_t written;
    int rc = Q_OK;
    if (s->raw) {
        rc = tok_ids_add(&all, prompt->at, prompt->n, e);
        if (!rc) rc = tok_ids_add(&all, s->answer.at, s->answer.n, e);
    } else {
        rc = end_turn(s, thinking, e);
        if (!rc) rc = chat_history_json(s->history, &json, e);
    }
    if (!rc) rc = session_work_save(&s->work, t, all.at, all.n, json, &written, e);
    if (!rc) cli_fact(cli, "session saved to %s: %.1f MiB", s->work.path, (double)written / 1048576);
    free(all.at);
    free(json);
    return rc;
}
