#include "watch.h"
#include <cjson/cJSON.h>
#include <string.h>

static const char *kind_of(const struct watch *w) { return w->inner.kind ? w->inner.kind(w->inner.arg) : "wrong"; }

/* Whether the candidate is to be asked again. */
static int was_killed(const struct watch *w, int rc) { return rc == Q_EINTERNAL && !strcmp(kind_of(w), "killed"); }

static void tell_bad(struct watch *w, const struct watched *who, const char *why)
{
    const char *kind = kind_of(w);
    journal_bad(w->journal, &who->c, strcmp(kind, "killed") ? kind : "crash", why);
}

static int problem(void *arg, int slot, const struct measure_problem *p, struct q_err *e)
{
    struct watch *w = arg;
    memcpy(w->time[slot], p->time, sizeof p->time);
    return w->inner.problem(w->inner.arg, slot, p, e);
}

static int ready(void *arg, struct q_err *e)
{
    struct watch *w = arg;
    return w->inner.ready(w->inner.arg, e);
}

static int check(void *arg, int slot, const struct measure_kernel *k, char hash[17], struct q_err *e)
{
    struct watch *w = arg;
    struct q_err why = { 0 };
    if (k->who) journal_start(w->journal, &k->who->c, "check");
    int rc = w->inner.check(w->inner.arg, slot, k, hash, &why);
    if (was_killed(w, rc)) rc = w->inner.check(w->inner.arg, slot, k, hash, &why);
    if (k->who && !rc) journal_checked(w->journal, &k->who->c, hash);
    if (k->who && rc == Q_EINTERNAL) tell_bad(w, k->who, why.text);
    return rc ? q_fail(e, rc, "%s", why.text) : Q_OK;
}

static void tell_clocks(struct watch *w, const struct watched *who)
{
    const struct record_clocks *c = w->inner.clocks ? w->inner.clocks(w->inner.arg) : NULL;
    if (!c || !(c->sm_mhz || c->mem_mhz || c->watts || c->celsius)) return;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "params", who->c.params);
    cJSON_AddNumberToObject(o, "sm_mhz", c->sm_mhz);
    cJSON_AddNumberToObject(o, "mem_mhz", c->mem_mhz);
    cJSON_AddNumberToObject(o, "watts", c->watts);
    cJSON_AddNumberToObject(o, "celsius", c->celsius);
    cJSON_AddStringToObject(o, "slowed", c->slowed);
    journal_note(w->journal, "clocks", who->c.key, o);
}

/* At a size where it has not run yet a kernel is as good as new. */
static int time_first(struct watch *w, int slot, const struct measure_kernel *k, int size, int n, double *us, struct q_err *e)
{
    const struct measure_size *z = &w->time[slot][size];
    journal_start(w->journal, &k->who->c, "time");
    int rc = w->inner.time(w->inner.arg, slot, k, size, n, us, e);
    if (was_killed(w, rc)) rc = w->inner.time(w->inner.arg, slot, k, size, n, us, e);
    if (!rc) journal_time(w->journal, &k->who->c, (const int[]){ z->rows, z->seqs, z->past }, us, n);
    if (!rc) tell_clocks(w, k->who);
    k->who->timed |= 1u << size;
    return rc;
}

static int time_kernel(void *arg, int slot, const struct measure_kernel *k, int size, int n, double *us, struct q_err *e)
{
    struct watch *w = arg;
    struct q_err why = { 0 };
    int first = k->who && !(k->who->timed >> size & 1), rc;
    if (first) rc = time_first(w, slot, k, size, n, us, &why);
    else {
        rc = w->inner.time(w->inner.arg, slot, k, size, n, us, &why);
        if (was_killed(w, rc)) rc = w->inner.time(w->inner.arg, slot, k, size, n, us, &why);
    }
    if (k->who && rc == Q_EINTERNAL) tell_bad(w, k->who, why.text);
    return rc ? q_fail(e, rc, "%s", why.text) : Q_OK;
}

static int drop(void *arg, int slot, int all, struct q_err *e)
{
    struct watch *w = arg;
    return w->inner.drop(w->inner.arg, slot, all, e);
}

static const char *kind(void *arg) { return kind_of(arg); }

static const struct record_clocks *clocks(void *arg)
{
    const struct watch *w = arg;
    return w->inner.clocks ? w->inner.clocks(w->inner.arg) : NULL;
}

static double pace(void *arg)
{
    const struct watch *w = arg;
    return w->inner.pace ? w->inner.pace(w->inner.arg) : 0;
}

struct measurer watch_table(struct watch *w) { return (struct measurer){ w, problem, ready, check, time_kernel, drop, kind, clocks, pace }; }
