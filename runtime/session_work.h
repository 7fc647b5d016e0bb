/* The session that a process works with: `run --session` and `chat --session`.
 *
 * Opening takes the file's lock; what is there is read and checked before a model is loaded. The first prompt goes on from the last checkpoint
 * that is a beginning of it. Saving keeps the end of what the engine read and the beginnings that its talk keeps (the end of the last user's
 * turn), so that a template that writes the last answer in another way loses that answer alone.
 */
#ifndef Q_SESSION_WORK_H
#define Q_SESSION_WORK_H

#include "answer.h"
#include "scheduler_session.h"
#include "session_snap.h"

/* Snapshots that an engine should have for it. */
enum { SESSION_WORK_SNAPS = SCHED_SESSION_KEPT };

struct session_work {
    const char *path;        /* owned: the file that the name leads to over links; NULL: there is no session */
    int lock;
    struct session *file;    /* owned; NULL: it has not begun */
    int missed;              /* it was said that it is of no use to a prompt */
};

/* path NULL: none. A file that could not be replaced is refused here, before anything is computed for it. */
int session_work_open(struct session_work *w, const char *path, struct q_err *e);
void session_work_close(struct session_work *w);
/* q_engine_opts.formats, with the session as its argument: one of other formats is refused before kernels are built for them. */
int session_work_formats(void *session, const char *kv_k, const char *kv_v, struct q_err *e);
/* Gives the talk the checkpoint that ids[0, n) go on from, once; without one it reads all, and `missed` says once where they leave the session,
 * else it is "". Refuses a file that is not of such an engine, whatever the ids; one with more tokens than the context is no beginning of them. */
enum { SESSION_MISSED = 200 };
int session_work_resume(struct session_work *w, struct q_engine *en, struct q_talk *t, const int32_t *ids, size_t n, char missed[SESSION_MISSED],
                        struct q_err *e);
/* ids: what the session's tokens are, which begin with those of the talk; NULL: those. text: NULL or the writer's. */
int session_work_save(struct session_work *w, struct q_talk *t, const int32_t *ids, size_t n, const char *text,
                      size_t *written, struct q_err *e);

#endif
