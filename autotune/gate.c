#define _GNU_SOURCE
#include "gate_impl.h"
#include "gate_plan.h"
#include "runtime/clock.h"
#include "runtime/model.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER 128            /* tokens of a continuation */
#define LOAD_S 600.0          /* a child may take to open its model */
#define PATIENT_S 120.0       /* silence between steps, until it is known how long a step takes here */
#define LEAST_S 20.0          /* silence that no set is failed for: a machine may be busy with other things */
#define DEFAULT_BOUND 1e-2    /* mean KLD from the default params' set: what int8 activations cost; other reduction trees cost a part of that */

/* For the reference; sets read the same texts in about half the time, and there are at least two. */
static const struct {
    const char *effort;
    double seconds;
} budgets[] = { { "quick", 3.4 }, { "normal", 40 }, { "exhaustive", 400 } };

static void set_budget(struct gate *g)
{
    size_t n = sizeof budgets / sizeof *budgets, i = 0;
    while (i + 1 < n && strcmp(budgets[i].effort, g->o->effort)) i++;
    g->seconds = budgets[i].seconds;
    g->answer = ANSWER;
}

/* About half of what two cores with AVX-512 did; of a card's kernels, what they should do at least: no plan was held against one yet. */
static struct gate_speed speed_of(const struct q_card *c, enum q_numerics numerics)
{
    int reference = numerics == Q_REFERENCE;
    if (c->kind == Q_CARD_CUDA) return (struct gate_speed){ c->sms * (reference ? 4e9 : 16e9), reference ? 16 : 64 };
    return (struct gate_speed){ c->threads * (reference ? 20e9 : 80e9), reference ? 4 : 16 };
}

/* --- jobs -------------------------------------------------------------------------------------------------------------- */

static void add(cJSON *q, const char *name, const char *text)
{
    if (text) cJSON_AddStringToObject(q, name, text);
}

static cJSON *job(const struct gate *g, const char *what, enum q_numerics numerics, const char *tunes)
{
    const struct gate_opts *o = g->o;
    struct gate_speed speed = speed_of(&o->t->card, numerics);
    char dir[Q_PATH] = "";
    cJSON *q = cJSON_CreateObject();
    path_dir(dir, o->program, NULL);
    add(q, "do", what);
    add(q, "trace", g->trace);
    add(q, "report", g->lines);
    add(q, "model", o->model);
    add(q, "preset", o->preset);
    add(q, "type", o->preset ? o->type : NULL);
    add(q, "device", o->device);
    add(q, "numerics", q_numerics_name(numerics));
    add(q, "kv_k", o->t->kv_k);
    add(q, "kv_v", o->t->kv_v);
    add(q, "tunes", tunes);
    add(q, "program_dir", dir);
    cJSON_AddNumberToObject(q, "threads", o->t->card.threads);
    cJSON_AddNumberToObject(q, "n_ctx", o->t->model->config.n_ctx_train);
    cJSON_AddNumberToObject(q, "answer", g->answer);
    cJSON_AddNumberToObject(q, "rate", speed.rate);
    cJSON_AddNumberToObject(q, "least", speed.least);
    cJSON_AddNumberToObject(q, "must", g->against_default);
    cJSON_AddNumberToObject(q, "seconds", g->seconds);
    cJSON_AddNumberToObject(q, "patience", 4 * g->seconds + 20);
    return q;
}

/* What the child says about a job: that it failed is no error here. */
static int ask(struct gate *g, cJSON *q, cJSON **answer, struct verdict *v, struct q_err *e)
{
    int rc = gate_ask(&g->ask, q, answer, e);
    memset(v, 0, sizeof *v);
    if (rc && rc != Q_EINTERNAL) return rc;
    const char *why = rc ? e->text : cJSON_GetStringValue(cJSON_GetObjectItem(*answer, "why"));
    v->failed = rc || !cJSON_IsTrue(cJSON_GetObjectItem(*answer, "ok"));
    v->slow = cJSON_IsTrue(cJSON_GetObjectItem(*answer, "slow"));
    if (v->failed) snprintf(v->why, sizeof v->why, "%.399s", why ? why : "gives an answer that is not understood");
    return Q_OK;
}

/* --- the reference ----------------------------------------------------------------------------------------------------- */

static int read_texts(struct gate *g, enum q_numerics numerics, struct verdict *v, struct q_err *e)
{
    cJSON *answer = NULL;
    g->ask.load_s = LOAD_S;
    g->ask.silence_s = fmax(PATIENT_S, 4 * g->seconds);
    int rc = ask(g, job(g, "reference", numerics, g->against_default ? g->set : NULL), &answer, v, e);
    cJSON_Delete(answer);
    return rc;
}

/* In the reference's place: the set of default params. It reads one text however slow it is. */
static int read_by_default(struct gate *g, struct verdict *v, struct q_err *e)
{
    g->against_default = 1;
    memcpy(g->why_not, v->why, sizeof g->why_not);
    progress_line(g->o->progress, "gate: no reference: %s; the default params' set stands in for it", g->why_not);
    g->n_use = 0;
    g->seconds *= 4;
    int rc = gate_write_set(g, g->o->t->numerics, 0, e);
    if (!rc) rc = read_texts(g, g->o->t->numerics, v, e);
    return !rc && v->failed ? q_fail(e, Q_EINTERNAL, "gate: even the set of default params fails: %s; nothing is written", v->why) : rc;
}

/* A reference that does not fit this machine, in time, memory or kernels, can be done without; one that crashes cannot. */
static int reference(struct gate *g, struct q_err *e)
{
    struct verdict v = { .failed = 1, .slow = 1 };
    struct q_err why;
    int rc = gate_write_set(g, Q_REFERENCE, 1, &why);
    if (rc == Q_EINTERNAL || rc == Q_EUNSUP) snprintf(v.why, sizeof v.why, "%.399s", why.text);
    else if (rc) return q_fail(e, rc, "%s", why.text);
    else if ((rc = read_texts(g, Q_REFERENCE, &v, e))) return rc;
    if (v.failed && !v.slow) return q_fail(e, Q_EINTERNAL, "gate: the reference fails: %s; nothing is written", v.why);
    if (v.failed && (rc = read_by_default(g, &v, e))) return rc;
    g->ask.silence_s = fmax(PATIENT_S, 4 * g->ask.slowest);
    return gate_trace_open(&g->t, g->trace, e);
}

/* --- a set's score ----------------------------------------------------------------------------------------------------- */

static double number(const cJSON *answer, const char *name) { return cJSON_GetNumberValue(cJSON_GetObjectItem(answer, name)); }

static void take_places(struct score *s, const cJSON *places)
{
    for (int i = 0; i < SCORE_PLACES; i++) {
        const cJSON *p = cJSON_GetArrayItem(places, i);
        double v[5];
        for (int j = 0; j < 5; j++) v[j] = cJSON_GetNumberValue(cJSON_GetArrayItem(p, j));
        s->place[i] = (struct score_place){ v[0] > 0 ? (int)v[0] : 0, v[1] > 0 ? (int)v[1] : 0, v[2], v[3], v[4] };
    }
}

/* NaN comes as null, and as NaN out of it. */
static void take_score(struct score *s, const cJSON *answer)
{
    const cJSON *worst = cJSON_GetObjectItem(answer, "worst");
    s->kld = number(answer, "kld");
    s->angle = number(answer, "angle");
    s->rows = (int)number(answer, "rows");
    s->kept = (int)number(answer, "kept");
    s->differ = (int)number(answer, "differ");
    s->exceptions = (int)number(answer, "exceptions");
    take_places(s, cJSON_GetObjectItem(answer, "places"));
    for (int i = 0; i < SCORE_WORST && i < cJSON_GetArraySize(worst); i++) {
        const char *line = cJSON_GetStringValue(cJSON_GetArrayItem(worst, i));
        snprintf(s->worst[i], sizeof s->worst[i], "%s", line ? line : "");
    }
}

static int score_set(struct gate *g, const char *name, struct verdict *v, struct q_err *e)
{
    enum q_numerics numerics = g->o->t->numerics;
    cJSON *answer = NULL;
    int rc = gate_write_set(g, numerics, 0, e);
    if (!rc) rc = ask(g, job(g, "score", numerics, g->set), &answer, v, e);
    if (!rc && !v->failed) take_score(&v->s, answer);
    if (!rc) gate_report_set(g, name, v);
    cJSON_Delete(answer);
    return rc;
}

/* --- the verdict ------------------------------------------------------------------------------------------------------- */

static int passes(const struct gate *g, const struct verdict *v, const struct score *base)
{
    const struct score *s = &v->s;
    if (v->failed) return 0;
    if (g->against_default) return s->kld <= DEFAULT_BOUND && !s->exceptions;
    if (!(s->kld <= 1.5 * base->kld + 1e-6)) return 0;
    return g->t->synthetic ? s->angle <= 1.5 * base->angle + 1e-6 : s->exceptions <= base->exceptions;
}

static const struct found *changed(const struct gate *g, int i) { return &g->l->f[g->changed[i]]; }

/* The least number of winners, in their order, that fail together: the last of them is the culprit. */
static int find_culprit(struct gate *g, const struct score *base, int *culprit, struct q_err *e)
{
    int good = 0, bad = g->n_changed, rc = Q_OK;
    struct verdict v;
    char name[300], set[340];
    while (bad - good > 1 && !rc) {
        int middle = (good + bad) / 2;
        progress_name(name, sizeof name, &changed(g, middle - 1)->problem);
        snprintf(set, sizeof set, "%d winners, up to %s", middle, name);
        g->n_use = middle;
        rc = score_set(g, set, &v, e);
        if (!rc) *(passes(g, &v, base) ? &good : &bad) = middle;
    }
    *culprit = bad - 1;
    return rc;
}

static void tell_culprit(const struct gate *g, const struct verdict *v, const struct score *base, const struct found *f)
{
    char what[sizeof v->why + 32], params[200], name[300];
    progress_difference(params, sizeof params, f->record.params, f->base.params);
    if (v->failed) snprintf(what, sizeof what, "the set fails: %s", v->why);
    else snprintf(what, sizeof what, "mean KLD %.3g (default params %.3g), %d first choices differ beyond a margin of %.1f", v->s.kld, base->kld,
                  v->s.exceptions, GATE_MARGIN);
    progress_name(name, sizeof name, &f->problem);
    progress_line(g->o->progress, "gate: %s: %s with %s is to blame and keeps its default params", what, name, params);
    if (!v->failed) gate_tell(g, &v->s);
    if (g->report) fprintf(g->report, "%s with %s is to blame and keeps its default params\n", name, params);
}

/* How far default params are, which is what a set is held against; and how long a step takes. */
static int judge_default(struct gate *g, struct score *base, struct q_err *e)
{
    struct verdict v = { 0 };
    g->n_use = 0;
    int rc = g->against_default ? Q_OK : score_set(g, "default params", &v, e);
    if (rc) return rc;
    if (v.failed) return q_fail(e, Q_EINTERNAL, "gate: even the set of default params fails: %s; nothing is written", v.why);
    if (!(v.s.kld < 1))
        return q_fail(e, Q_EINTERNAL, "gate: even default params are %.3g (mean KLD) away from the reference; nothing is written", v.s.kld);
    *base = v.s;
    g->ask.silence_s = fmax(LEAST_S, 8 * g->ask.slowest);
    return Q_OK;
}

static int judge(struct gate *g, struct verdict *v, struct score *base, struct q_err *e)
{
    int culprit, rc = judge_default(g, base, e);
    while (!rc) {
        *v = (struct verdict){ .s = *base };
        if (!g->n_changed) return Q_OK;
        g->n_use = g->n_changed;
        if ((rc = score_set(g, "all winners", v, e)) || passes(g, v, base) || (rc = find_culprit(g, base, &culprit, e))) return rc;
        tell_culprit(g, v, base, changed(g, culprit));
        gate_drop(g, culprit);
    }
    return rc;
}

static int run(struct gate *g, char *summary, size_t cap, struct q_err *e)
{
    struct verdict v;
    struct score base = { 0 };
    int rc = gate_list_changed(g, e);
    if (!rc) rc = path_join(g->set, e, g->dir, "set", NULL);
    if (!rc) rc = path_join(g->trace, e, g->dir, "trace", NULL);
    if (!rc) rc = path_join(g->lines, e, g->dir, "lines", NULL);
    if (!rc) rc = reference(g, e);
    if (!rc) rc = judge(g, &v, &base, e);
    if (rc) return rc;
    gate_tell(g, &v.s);
    gate_summarise(g, &v.s, &base, summary, cap);
    if (g->report) fprintf(g->report, "%s\n", summary);
    return Q_OK;
}

int gate_run(const struct gate_opts *o, struct found_list *l, char *summary, size_t cap, struct q_err *e)
{
    struct gate g = { .o = o, .l = l, .ask = { .program = o->program, .signal_fd = o->build->signal_fd, .progress = o->progress } };
    char *text = NULL;
    size_t n = 0;
    summary[0] = 0;
    g.start = clock_s();
    set_budget(&g);
    g.report = open_memstream(&text, &n);
    int rc = store_workdir(o->build->store, g.dir, e);
    if (!rc) {
        rc = run(&g, summary, cap, e);
        gate_trace_close(g.t);
        free(g.changed);
        dir_remove(g.dir);
    }
    if (g.report) fclose(g.report);
    if (text && n) gate_write_report(&g, text, n);
    free(text);
    return rc;
}
