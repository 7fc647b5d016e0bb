#include "session_work.h"
#include "prompt_marks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int session_work_open(struct session_work *w, const char *path, struct q_err *e)
{
    struct stat st;
    *w = (struct session_work){.lock = -1};
    char target[Q_PATH];
    if (!path) return Q_OK;
    int rc = session_target(target, path, e);
    if (rc) return rc;
    if (!(w->path = strdup(target))) return q_fail(e, Q_EMEM, "no memory for a session");
    if ((w->lock = session_lock(target, e)) < 0) {
        rc = -w->lock;
        session_work_close(w);
        return rc;
    }
    session_clean_beside(target);
    rc = session_can_write(target, e);
    if (!rc && !fstat(w->lock, &st) && !st.st_size) return Q_OK;
    if (!rc) rc = session_open(&w->file, target, e);
    if (rc) session_work_close(w);
    return rc;
}

void session_work_close(struct session_work *w)
{
    session_close(w->file);
    if (w->path) session_unlock(w->lock, w->path);
    free((char *)w->path);
    *w = (struct session_work){.lock = -1};
}

int session_work_formats(void *session, const char *kv_k, const char *kv_v, struct q_err *e)
{
    const struct session_work *w = session;
    return w->file ? session_check_kv(w->path, session_head(w->file), kv_k, kv_v, e) : Q_OK;
}

/* As the server's log says it of a prompt. */
static void tell_missed(const struct session *s, const struct tokenizer *tk, const int32_t *ids, int n, char to[SESSION_MISSED])
{
    const struct session_head *h = session_head(s);
    char role[PROMPT_ROLE], where[80] = "";
    int at = 0, message;
    while (at < n && at < h->n_ids && ids[at] == session_ids(s)[at]) at++;
    if (at == n || at == h->n_ids) {
        snprintf(to, SESSION_MISSED, "nothing of the session is re-used: no state is kept in the %d tokens that the prompt begins with too", at);
        return;
    }
    if ((message = prompt_message(tk, ids, n, at, role))) snprintf(where, sizeof where, ", in message %d (%s)", message, *role ? role : "no role");
    snprintf(to, SESSION_MISSED, "nothing of the session's %d tokens is re-used: token %d differs%s", h->n_ids, at, where);
}

int session_work_resume(struct session_work *w, struct q_engine *en, struct q_talk *t, const int32_t *ids, size_t n, char missed[SESSION_MISSED],
                        struct q_err *e)
{
    *missed = 0;
    if (!w->file) return Q_OK;
    int rc = session_is_of(w->file, en, e), part = rc ? -1 : session_find(w->file, ids, (int)n, q_engine_ctx(en));
    if (!rc && part < 0 && !w->missed++) tell_missed(w->file, q_engine_tokenizer(en), ids, (int)n, missed);
    if (rc || part < 0) return rc;
    if ((rc = q_sched_load(q_talk_sched(t), 0, w->file, part, e))) return rc;
    session_close(w->file);
    w->file = NULL;
    return Q_OK;
}

int session_work_save(struct session_work *w, struct q_talk *t, const int32_t *ids, size_t n, const char *text, size_t *written, struct q_err *e)
{
    struct q_sched_save save = {.path = w->path, .ids = ids, .n = n, .text = text, .lock = &w->lock};
    int rc = q_sched_save(q_talk_sched(t), 0, &save, e);
    *written = save.written;
    return rc;
}
