#define _GNU_SOURCE
#include "gate_ask.h"
#include "child.h"
#include "runtime/clock.h"
#include <cjson/cJSON.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 16 * 1024, TELL_S = 15 };

struct talk {
    struct gate_ask *a;
    struct child child;
    char buf[LINE];
    size_t n;                   /* bytes in buf */
    char text[40];              /* where the child is: "ko-1 at 120"; "": not at any text yet */
    double heard, told;         /* when the last line came, when the user was told last */
    cJSON *answer;
};

/* A sign of life, or the end. */
static void take_line(struct talk *t, const char *line)
{
    cJSON *j = cJSON_Parse(line);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(j, "text"));
    double now = clock_s();
    if (t->text[0] && text && now - t->heard > t->a->slowest) t->a->slowest = now - t->heard;
    t->heard = now;
    if (!text) {
        t->answer = j;
        return;
    }
    snprintf(t->text, sizeof t->text, "%.16s at %d", text, (int)cJSON_GetNumberValue(cJSON_GetObjectItem(j, "at")));
    cJSON_Delete(j);
    if (now - t->told < TELL_S) return;
    t->told = now;
    progress_line(t->a->progress, "gate: reading %s", t->text);
}

/* All whole lines in the buffer. */
static void take_lines(struct talk *t)
{
    char *from = t->buf, *end;
    t->buf[t->n] = 0;
    for (; !t->answer && (end = strchr(from, '\n')); from = end + 1) {
        *end = 0;
        take_line(t, from);
    }
    t->n -= (size_t)(from - t->buf);
    memmove(t->buf, from, t->n);
}

static enum child_news listen_to(struct talk *t)
{
    while (!t->answer) {
        double deadline = t->heard + (t->text[0] ? t->a->silence_s : t->a->load_s);
        size_t got;
        enum child_news w = child_hear(&t->child, t->a->signal_fd, deadline, t->buf + t->n, LINE - 1 - t->n, &got);
        if (w != CHILD_CAME) return w;
        t->n += got;
        take_lines(t);
        if (t->n == LINE - 1) return CHILD_NOISE;
    }
    return CHILD_CAME;
}

/* Signals that no kernel raises: somebody wanted the child to end, or memory ran out. */
static int is_from_outside(int sig) { return sig == SIGKILL || sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT; }

static int what_happened(const struct talk *t, enum child_news h, int status, struct q_err *e)
{
    const char *where = t->text[0] ? t->text : "the start";
    if (h == CHILD_INTERRUPTED) return q_fail(e, Q_EIO, "interrupted");
    if (h == CHILD_LATE) return q_fail(e, Q_EINTERNAL, "hang: nothing came for %.1f s after %s", t->text[0] ? t->a->silence_s : t->a->load_s, where);
    if (h == CHILD_NOISE) return q_fail(e, Q_EINTERNAL, "%d bytes without an end of line after %s", LINE - 1, where);
    if (status > 128 && is_from_outside(status - 128))
        return q_fail(e, Q_EIO, "gate: its process was ended by signal %d (%s) after %s; nothing is written", status - 128,
                      strsignal(status - 128), where);
    if (status > 128) return q_fail(e, Q_EINTERNAL, "crash: signal %d (%s) after %s", status - 128, strsignal(status - 128), where);
    return q_fail(e, Q_EINTERNAL, "end with status %d after %s", status, where);
}

static int talk(struct talk *t, const char *line, struct q_err *e)
{
    char *argv[] = { (char *)t->a->program, "--gate", NULL };
    int to, status = -1, rc = child_start_talk(&t->child, argv, &to, e);
    if (rc) return q_fail(e, Q_EIO, "%s", e->text);
    t->heard = t->told = clock_s();
    enum child_news h = child_tell(to, line) ? CHILD_ENDED : listen_to(t);
    close(to);
    child_kill(&t->child);      /* it has nothing left to do */
    rc = child_end(&t->child, &status, e);
    if (rc || h == CHILD_CAME) return rc;
    return what_happened(t, h, status, e);
}

int gate_ask(struct gate_ask *a, cJSON *job, cJSON **answer, struct q_err *e)
{
    struct talk *t = calloc(1, sizeof *t);
    char *line = cJSON_PrintUnformatted(job);
    int rc = t && line ? Q_OK : q_fail(e, Q_EMEM, "no memory for the gate");
    cJSON_Delete(job);
    a->slowest = 0;
    *answer = NULL;
    if (!rc) {
        t->a = a;
        rc = talk(t, line, e);
        *answer = t->answer;
    }
    if (rc) {
        cJSON_Delete(*answer);
        *answer = NULL;
    }
    cJSON_free(line);
    free(t);
    return rc;
}
