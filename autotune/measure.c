#define _GNU_SOURCE
#include "measure.h"
#include "child.h"
#include "runtime/clock.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER = 16 * 1024, START_S = 60, PROBLEM_S = 300, CANDIDATE_S = 20, LEAST_S = 5, SLOWER = 50 };

struct measure {
    char program[4096];
    char where[32];
    int signal_fd;
    struct child child;
    int running, to;            /* to: write end of the child's stdin */
    int making;                 /* 1 + the slot whose problem the child has not answered yet; 0: none */
    char answer[ANSWER];
    char *problem[MEASURE_SLOTS];   /* owned: the requests that a new child gets first, NULL for empty slots */
    double limit[MEASURE_SLOTS];    /* seconds that a check may take; 0: none of the slot was checked yet */
    char kind[12];                  /* of the last failure */
    struct record_clocks clocks;    /* at the last samples */
    double pace;                    /* the same */
};

/* --- the child --------------------------------------------------------------------------------------------------------- */

/* Its exit status; whatever it did is over. */
static int stop(struct measure *m)
{
    int status = -1;
    if (!m->running) return status;
    child_kill(&m->child);
    close(m->to);
    child_end(&m->child, &status, NULL);
    m->running = 0;
    return status;
}

/* One line of answer. */
static enum child_news read_line(struct measure *m, double deadline)
{
    for (size_t n = 0, got;;) {
        enum child_news w = child_hear(&m->child, m->signal_fd, deadline, m->answer + n, ANSWER - 1 - n, &got);
        if (w != CHILD_CAME) return w;
        if ((n += got) == ANSWER - 1) return CHILD_ENDED;
        m->answer[n] = 0;
        if (m->answer[n - 1] == '\n') return CHILD_CAME;
    }
}

/* The first line of a child tells whether it stands. */
static int hear_start(struct measure *m, struct q_err *e)
{
    enum child_news w = read_line(m, clock_s() + START_S);
    cJSON *hello = w == CHILD_CAME ? cJSON_Parse(m->answer) : NULL;
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(hello, "why"));
    int rc = Q_OK;
    if (w == CHILD_INTERRUPTED) rc = q_fail(e, Q_EIO, "interrupted");
    else if (!cJSON_IsTrue(cJSON_GetObjectItem(hello, "ok"))) rc = q_fail(e, Q_EIO, "%s", why ? why : "the measuring child does not start");
    cJSON_Delete(hello);
    return rc;
}

static int start(struct measure *m, struct q_err *e)
{
    char *argv[] = { m->program, "--measure", m->where, NULL };
    int rc = child_start_talk(&m->child, argv, &m->to, e);
    m->running = !rc;
    if (!rc && (rc = hear_start(m, e))) stop(m);
    return rc;
}

/* After a crash the next child stands where this one stood. */
static int restart(struct measure *m, struct q_err *e)
{
    int rc = start(m, e);
    for (int i = 0; i < MEASURE_SLOTS && !rc; i++)
        if (m->problem[i] && (child_tell(m->to, m->problem[i]) || read_line(m, clock_s() + PROBLEM_S) != CHILD_CAME))
            rc = q_fail(e, Q_EIO, "the measuring child does not start again");
    return rc;
}

static int died(struct measure *m, enum child_news w, double deadline_s, struct q_err *e)
{
    struct q_err why;
    int status = stop(m), rc;
    if (w == CHILD_INTERRUPTED) return q_fail(e, Q_EIO, "interrupted");
    strcpy(m->kind, w == CHILD_LATE ? "hang" : status == 128 + SIGKILL ? "killed" : "crash");
    if ((rc = restart(m, &why))) return q_fail(e, rc, "%s", why.text);
    if (w == CHILD_LATE) return q_fail(e, Q_EINTERNAL, "did not end within %.0f s", deadline_s);
    if (status > 128) return q_fail(e, Q_EINTERNAL, "ended the measuring child by signal %d (%s)", status - 128, strsignal(status - 128));
    return q_fail(e, Q_EINTERNAL, "ended the measuring child with status %d", status);
}

/* The answer to a problem: made or not. */
static enum child_news hear_made(struct measure *m, int *made, struct q_err *e)
{
    enum child_news w = read_line(m, clock_s() + PROBLEM_S);
    cJSON *answer = w == CHILD_CAME ? cJSON_Parse(m->answer) : NULL;
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(answer, "why"));
    *made = cJSON_IsTrue(cJSON_GetObjectItem(answer, "ok"));
    if (!*made) q_fail(e, Q_EINTERNAL, "%s", why ? why : "the measuring child's answer is not understood");
    cJSON_Delete(answer);
    return w;
}

/* Waits for the problem that is in the making, if one is. A failure is that problem's; a child that somebody killed meanwhile is none. */
static int settle(void *arg, struct q_err *e)
{
    struct measure *m = arg;
    int slot = m->making - 1, made, rc = Q_EINTERNAL;
    if (slot < 0) return Q_OK;
    m->making = 0;
    enum child_news w = hear_made(m, &made, e);
    if (made) return Q_OK;
    char *text = m->problem[slot];
    m->problem[slot] = NULL;
    if (w != CHILD_CAME) rc = died(m, w, PROBLEM_S, e);
    if (text && w == CHILD_ENDED && rc == Q_EINTERNAL && !strcmp(m->kind, "killed") && !child_tell(m->to, text)) {
        w = hear_made(m, &made, e);
        if (w != CHILD_CAME) rc = died(m, w, PROBLEM_S, e);
    }
    if (made) return m->problem[slot] = text, Q_OK;
    cJSON_free(text);
    return rc;
}

/* Sends a request; *answer is the caller's to delete, NULL on failure. */
static int ask(struct measure *m, const char *text, double deadline_s, cJSON **answer, struct q_err *e)
{
    *answer = NULL;
    int rc = settle(m, e);
    if (!rc && !m->running) rc = restart(m, e);
    if (rc) return rc;
    enum child_news w = child_tell(m->to, text) ? CHILD_ENDED : read_line(m, clock_s() + deadline_s);
    if (w != CHILD_CAME) return died(m, w, deadline_s, e);
    *answer = cJSON_Parse(m->answer);
    if (cJSON_IsTrue(cJSON_GetObjectItem(*answer, "ok"))) return Q_OK;
    /* A card that a kernel broke is broken for its process alone: the next child begins anew. */
    int gone = cJSON_IsTrue(cJSON_GetObjectItem(*answer, "gone"));
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(*answer, "why")), *kind = cJSON_GetStringValue(cJSON_GetObjectItem(*answer, "kind"));
    q_fail(e, Q_EINTERNAL, "%s", why ? why : "the measuring child's answer is not understood");
    snprintf(m->kind, sizeof m->kind, "%s", kind ? kind : "crash");
    cJSON_Delete(*answer);
    *answer = NULL;
    if (!gone) return Q_EINTERNAL;
    struct q_err again;
    stop(m);
    return restart(m, &again) ? q_fail(e, again.code, "%s", again.text) : Q_EINTERNAL;
}

static int ask_json(struct measure *m, cJSON *q, double deadline_s, cJSON **answer, struct q_err *e)
{
    char *text = cJSON_PrintUnformatted(q);
    cJSON_Delete(q);
    if (!text) return q_fail(e, Q_EMEM, "no memory for a request");
    int rc = ask(m, text, deadline_s, answer, e);
    cJSON_free(text);
    return rc;
}

/* --- the table --------------------------------------------------------------------------------------------------------- */

static void add_size(cJSON *list, const struct measure_size *s)
{
    cJSON_AddItemToArray(list, cJSON_CreateIntArray((const int[]){ s->rows, s->seqs, s->past }, 3));
}

/* The request, for cJSON_free; NULL: no memory. */
static char *problem_text(int slot, const struct measure_problem *p)
{
    cJSON *q = cJSON_CreateObject();
    cJSON_AddStringToObject(q, "do", "problem");
    cJSON_AddNumberToObject(q, "slot", slot);
    cJSON_AddStringToObject(q, "ref", p->ref);
    cJSON_AddStringToObject(q, "shape", p->shape);
    cJSON *check = cJSON_AddArrayToObject(q, "check"), *time = cJSON_AddArrayToObject(q, "time");
    for (int i = 0; i < 2; i++) add_size(check, &p->check[i]);
    for (int i = 0; i < p->n_time; i++) add_size(time, &p->time[i]);
    cJSON_AddNumberToObject(q, "cold", (double)p->cold_bytes);
    char *text = cJSON_PrintUnformatted(q);
    cJSON_Delete(q);
    return text;
}

static int set_problem(void *arg, int slot, const struct measure_problem *p, struct q_err *e)
{
    struct measure *m = arg;
    char *text = problem_text(slot, p);
    settle(m, NULL);             /* what failed then was told to nobody who asked */
    if (!text) return q_fail(e, Q_EMEM, "no memory for a request");
    cJSON_free(m->problem[slot]);
    m->problem[slot] = NULL;
    m->limit[slot] = 0;
    int rc = m->running ? Q_OK : restart(m, e);
    if (!rc && child_tell(m->to, text)) {
        rc = died(m, CHILD_ENDED, PROBLEM_S, e);       /* while it had nothing to do */
        if (rc == Q_EINTERNAL && !child_tell(m->to, text)) rc = Q_OK;
    }
    if (rc) cJSON_free(text);
    else m->problem[slot] = text;
    m->making = rc ? 0 : slot + 1;
    return rc;
}

enum { PHASE = sizeof(struct q_phase) / sizeof(int) };   /* a phase is whole numbers alone */

int measure_launch(const cJSON *list, struct q_phases *launch)
{
    int n = cJSON_GetArraySize(list), *to = (int *)launch->phase;
    memset(launch, 0, sizeof *launch);
    if (!cJSON_IsArray(list) || n % PHASE || n > Q_PHASES * PHASE) return -1;
    for (int i = 0; i < n; i++) to[i] = cJSON_GetArrayItem(list, i)->valueint;
    launch->n = n / PHASE;
    return 0;
}

static cJSON *candidate(const char *what, int slot, const struct measure_kernel *k)
{
    cJSON *q = cJSON_CreateObject();
    cJSON_AddStringToObject(q, "do", what);
    cJSON_AddNumberToObject(q, "slot", slot);
    cJSON_AddStringToObject(q, "object", k->object);
    cJSON_AddStringToObject(q, "kernel", k->symbol);
    cJSON_AddItemToObject(q, "launch", cJSON_CreateIntArray((const int *)k->launch.phase, k->launch.n * PHASE));
    return q;
}

/* The first candidate of a slot, the default, tells how long its check takes here; others may be much slower, but not endlessly. */
static double limit_after(double took) { return fmin(fmax(SLOWER * took, LEAST_S), CANDIDATE_S); }

static int check(void *arg, int slot, const struct measure_kernel *k, char hash[17], struct q_err *e)
{
    struct measure *m = arg;
    cJSON *q = candidate("check", slot, k), *answer;
    double begin = clock_s();
    cJSON_AddStringToObject(q, "numerics", k->numerics);
    int rc = ask_json(m, q, m->limit[slot] > 0 ? m->limit[slot] : CANDIDATE_S, &answer, e);
    if (!rc && !(m->limit[slot] > 0)) m->limit[slot] = limit_after(clock_s() - begin);
    const char *hex = rc ? NULL : cJSON_GetStringValue(cJSON_GetObjectItem(answer, "hash"));
    snprintf(hash, 17, "%s", hex ? hex : "");
    cJSON_Delete(answer);
    return rc;
}

static void take_clocks(struct record_clocks *c, const cJSON *o)
{
    const char *slowed = cJSON_GetStringValue(cJSON_GetObjectItem(o, "slowed"));
    if (!cJSON_IsObject(o)) return;
    c->sm_mhz = (int)cJSON_GetNumberValue(cJSON_GetObjectItem(o, "sm_mhz"));
    c->mem_mhz = (int)cJSON_GetNumberValue(cJSON_GetObjectItem(o, "mem_mhz"));
    c->watts = (int)cJSON_GetNumberValue(cJSON_GetObjectItem(o, "watts"));
    c->celsius = (int)cJSON_GetNumberValue(cJSON_GetObjectItem(o, "celsius"));
    snprintf(c->slowed, sizeof c->slowed, "%s", slowed ? slowed : "");
}

/* What the child tells of the machine beside its samples. */
static void take_state(struct measure *m, const cJSON *answer)
{
    const cJSON *pace = cJSON_GetObjectItem(answer, "pace");
    take_clocks(&m->clocks, cJSON_GetObjectItem(answer, "clocks"));
    m->pace = cJSON_IsNumber(pace) ? cJSON_GetNumberValue(pace) : 0;
}

static int time_candidate(void *arg, int slot, const struct measure_kernel *k, int size, int n, double *us, struct q_err *e)
{
    cJSON *q = candidate("time", slot, k), *answer;
    cJSON_AddNumberToObject(q, "size", size);
    cJSON_AddNumberToObject(q, "n", n);
    int rc = ask_json(arg, q, CANDIDATE_S, &answer, e);
    const cJSON *list = rc ? NULL : cJSON_GetObjectItem(answer, "us");
    if (!rc && cJSON_GetArraySize(list) != n) rc = q_fail(e, Q_EINTERNAL, "fewer samples than asked for");
    for (int i = 0; i < n && !rc; i++) us[i] = cJSON_GetNumberValue(cJSON_GetArrayItem(list, i));
    take_state(arg, answer);
    cJSON_Delete(answer);
    return rc;
}

static int drop(void *arg, int slot, int all, struct q_err *e)
{
    struct measure *m = arg;
    cJSON *q = cJSON_CreateObject(), *answer;
    cJSON_AddStringToObject(q, "do", "drop");
    cJSON_AddNumberToObject(q, "slot", slot);
    cJSON_AddBoolToObject(q, "all", all);
    if (all) {
        free(m->problem[slot]);
        m->problem[slot] = NULL;
    }
    int rc = ask_json(m, q, CANDIDATE_S, &answer, e);
    cJSON_Delete(answer);
    return rc;
}

int measure_open(struct measure **out, const char *program, const char *where, int signal_fd, struct q_err *e)
{
    struct measure *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return q_fail(e, Q_EMEM, "no memory for a measuring child");
    snprintf(m->program, sizeof m->program, "%s", program);
    snprintf(m->where, sizeof m->where, "%s", where);
    m->signal_fd = signal_fd;
    int rc = start(m, e);
    if (rc) free(m);
    else *out = m;
    return rc;
}

void measure_close(struct measure *m)
{
    if (!m) return;
    stop(m);
    for (int i = 0; i < MEASURE_SLOTS; i++) free(m->problem[i]);
    free(m);
}

static const char *kind(void *arg) { return ((struct measure *)arg)->kind; }

static const struct record_clocks *clocks(void *arg) { return &((struct measure *)arg)->clocks; }

static double pace(void *arg) { return ((struct measure *)arg)->pace; }

struct measurer measure_table(struct measure *m)
{
    return (struct measurer){ m, set_problem, settle, check, time_candidate, drop, kind, clocks, pace };
}
