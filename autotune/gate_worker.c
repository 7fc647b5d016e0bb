/* The gate's child: one engine, one job, one line of JSON in, then a line before each step so that whoever waits knows that it lives, and
 * one line at the end. What a bad kernel does to the process ends with it.
 *
 *   in    {"do":"reference"|"score","trace":PATH,"report":PATH,"model":PATH|"preset":NAME,"type":T,"device":D,"threads":N,"numerics":N,
 *          "kv_k":F,"kv_v":F,"tunes":DIR,"program_dir":DIR,"n_ctx":N,"answer":N,"rate":R,"least":ROWS,"seconds":S,"must":0|1,
 *          "patience":S}
 *   each  {"text":NAME,"at":POSITION}
 *   end   reference: {"ok":true,"seconds":S}, its results in the trace; score: {"ok":true, the fields of struct score, a list for each of places}
 *         {"ok":false,"why":LINE}, with "slow":true where the model is too large for this machine or for the seconds given */
#define _GNU_SOURCE
#include "gate.h"
#include "gate_plan.h"
#include "gate_score.h"
#include "gate_walk.h"
#include "progress.h"
#include "runtime/clock.h"
#include "runtime/model.h"
#include <cjson/cJSON.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

struct job {
    const cJSON *q;
    struct walk walk;
    struct trace *t;            /* reference: writable */
    const char *trace_path;
    double start, patience;     /* seconds */
    struct scorer scorer;
};

static const char *text_of(const struct job *j, const char *name) { return cJSON_GetStringValue(cJSON_GetObjectItem(j->q, name)); }
static int number_of(const struct job *j, const char *name)
{
    const cJSON *n = cJSON_GetObjectItem(j->q, name);
    return cJSON_IsNumber(n) ? n->valueint : 0;
}
static double real_of(const struct job *j, const char *name)
{
    const cJSON *n = cJSON_GetObjectItem(j->q, name);
    return cJSON_IsNumber(n) ? n->valuedouble : 0;
}

static void tell(cJSON *answer)
{
    char *line = cJSON_PrintUnformatted(answer);
    cJSON_Delete(answer);
    if (line) puts(line);
    fflush(stdout);
    cJSON_free(line);
}

static void tell_alive(const struct job *j, int text, int pos)
{
    printf("{\"text\":\"%s\",\"at\":%d}\n", j->walk.t->text[text].name, pos);
    fflush(stdout);
}

/* --- the engine -------------------------------------------------------------------------------------------------------- */

static int open_engine(struct job *j, int large, struct q_err *e)
{
    int n_ctx = number_of(j, "n_ctx"), ctx = large ? GATE_LONG_CTX : GATE_CTX, numerics = q_numerics_parse(text_of(j, "numerics"));
    struct q_engine_opts o = { .model = text_of(j, "model"), .preset = text_of(j, "preset"), .preset_type = text_of(j, "type"),
                               .device = text_of(j, "device"), .threads = number_of(j, "threads"), .numerics = (enum q_numerics)numerics,
                               .ctx = ctx < n_ctx ? ctx : n_ctx, .max_seqs = large ? 1 : GATE_BATCH, .max_rows = GATE_STEP, .max_out = GATE_OUT,
                               .kv_k = text_of(j, "kv_k"), .kv_v = text_of(j, "kv_v"), .tunes = text_of(j, "tunes"),
                               .program_dir = text_of(j, "program_dir") };
    int rc = q_engine_open(&j->walk.en, &o, e);
    return rc ? rc : walk_open(&j->walk, o.max_seqs, e);
}

static void close_engine(struct job *j)
{
    walk_close(&j->walk);
    if (j->walk.en) q_engine_close(j->walk.en);
    j->walk.en = NULL;
}

/* The units of one size: the long ones need an engine of their own, so that nobody pays for eight long contexts. */
static int each_unit(struct job *j, int large, int (*unit)(struct job *, struct trace_unit *, struct q_err *), struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < j->walk.t->n_units && !rc; i++) {
        struct trace_unit *u = (struct trace_unit *)&j->walk.t->unit[i];
        if (u->large == large) rc = unit(j, u, e);
    }
    return rc;
}

/* --- the reference ----------------------------------------------------------------------------------------------------- */

/* Breaks off what takes far longer than it should. */
static int reference_step(void *arg, int text, int pos)
{
    struct job *j = arg;
    tell_alive(j, text, pos);
    return clock_s() - j->start > j->patience ? WALK_STOP : Q_OK;
}

static int reference_row(void *arg, int text, int pos, const float *logits, struct q_err *e)
{
    struct job *j = arg;
    const struct trace_text *x = &j->t->text[text];
    (void)e;
    gate_trace_keep(j->t, text, pos, logits);
    if (!j->t->synthetic && pos + 1 >= x->n_prompt && pos + 1 < x->n) j->t->ids[x->at + pos + 1] = gate_largest(logits, j->t->vocab);
    return Q_OK;
}

/* What was read of a unit that was cut counts if every text has some answer. */
static int settle_cut(struct job *j, struct trace_unit *u, int rows)
{
    int whole = 1;
    for (int i = 0; i < u->n; i++) whole &= j->walk.at[i] >= j->t->text[u->text + i].n_prompt + GATE_LEAST_ANSWER;
    if (!whole) return gate_trace_cut(j->t, rows), 0;
    for (int i = 0; i < u->n; i++) j->t->text[u->text + i].n = j->walk.at[i];
    return 1;
}

static int reference_unit(struct job *j, struct trace_unit *u, struct q_err *e)
{
    int rows = j->t->n_rows;
    if (!u->chosen || clock_s() - j->start > j->patience) return Q_OK;
    int rc = walk_unit(&j->walk, u, e);
    if (rc && rc != WALK_STOP) return rc;
    u->done = !rc || settle_cut(j, u, rows);
    if (!j->t->unit[0].done) return q_fail(e, Q_ELIMIT, "its first text was not read in %.0f s", j->patience);
    return Q_OK;
}

static int plan(struct job *j, struct q_err *e)
{
    int rc = gate_trace_make(&j->t, j->trace_path, q_engine_model(j->walk.en)->config.n_vocab, e);
    if (!rc) rc = gate_texts(j->t, q_engine_tokenizer(j->walk.en), number_of(j, "answer"), number_of(j, "n_ctx"), e);
    struct gate_speed speed = { real_of(j, "rate"), number_of(j, "least") };
    if (!rc) rc = gate_choose(j->t, q_engine_model(j->walk.en), &speed, real_of(j, "seconds"), number_of(j, "must"), e);
    if (!rc) rc = gate_trace_reserve(&j->t, j->trace_path, gate_rows(j->t), e);
    j->walk.t = j->t;
    return rc;
}

static int has(const struct trace *t, int large)
{
    for (int i = 0; i < t->n_units; i++)
        if (t->unit[i].chosen && t->unit[i].large == large) return 1;
    return 0;
}

static int reference(struct job *j, cJSON *answer, struct q_err *e)
{
    int rc = open_engine(j, 0, e);
    j->start = clock_s();
    j->walk.step = reference_step;
    j->walk.row = reference_row;
    if (!rc) rc = plan(j, e);
    if (!rc) rc = each_unit(j, 0, reference_unit, e);
    close_engine(j);
    if (!rc && has(j->t, 1) && !(rc = open_engine(j, 1, e))) rc = each_unit(j, 1, reference_unit, e);
    close_engine(j);
    cJSON_AddNumberToObject(answer, "seconds", clock_s() - j->start);
    return rc;
}

/* --- a set ------------------------------------------------------------------------------------------------------------- */

static int score_step(void *arg, int text, int pos)
{
    tell_alive(arg, text, pos);
    return Q_OK;
}

static int take_row(void *arg, int text, int pos, const float *logits, struct q_err *e)
{
    struct job *j = arg;
    j->scorer.tok = q_engine_tokenizer(j->walk.en);
    return score_row(&j->scorer, text, pos, logits, e);
}

static int score_unit(struct job *j, struct trace_unit *u, struct q_err *e) { return u->done ? walk_unit(&j->walk, u, e) : Q_OK; }

static int has_done(const struct trace *t, int large)
{
    for (int i = 0; i < t->n_units; i++)
        if (t->unit[i].done && t->unit[i].large == large) return 1;
    return 0;
}

/* The engine is closed before anything is told: what a kernel broke in memory shows there at the latest. */
static int score_all(struct job *j, struct q_err *e)
{
    int rc = Q_OK;
    for (int large = 0; large < 2 && !rc; large++) {
        if (!has_done(j->walk.t, large)) continue;
        rc = open_engine(j, large, e);
        if (!rc) rc = each_unit(j, large, score_unit, e);
        close_engine(j);
    }
    return rc;
}

static void add_score(cJSON *answer, const struct score *s)
{
    cJSON_AddNumberToObject(answer, "kld", s->kld);
    cJSON_AddNumberToObject(answer, "angle", s->angle);
    cJSON *places = cJSON_AddArrayToObject(answer, "places");
    for (const struct score_place *p = s->place; p < s->place + SCORE_PLACES; p++)
        cJSON_AddItemToArray(places, cJSON_CreateDoubleArray((const double[]){ p->rows, p->kept, p->kld, p->drift, p->margin }, 5));
    cJSON_AddNumberToObject(answer, "rows", s->rows);
    cJSON_AddNumberToObject(answer, "kept", s->kept);
    cJSON_AddNumberToObject(answer, "differ", s->differ);
    cJSON_AddNumberToObject(answer, "exceptions", s->exceptions);
    cJSON *worst = cJSON_AddArrayToObject(answer, "worst");
    for (int i = 0; i < SCORE_WORST && s->worst[i][0]; i++) cJSON_AddItemToArray(worst, cJSON_CreateString(s->worst[i]));
}

static int score(struct job *j, cJSON *answer, struct q_err *e)
{
    const char *report = text_of(j, "report");
    int rc = gate_trace_open(&j->walk.t, j->trace_path, e);
    if (rc) return rc;
    j->scorer = (struct scorer){ .t = j->walk.t, .report = report ? fopen(report, "w") : NULL };
    j->walk.step = score_step;
    j->walk.row = take_row;
    rc = score_all(j, e);
    if (!rc && j->scorer.s.rows != j->walk.t->n_rows)
        rc = q_fail(e, Q_EINTERNAL, "gate: %d rows where the reference has %d", j->scorer.s.rows, j->walk.t->n_rows);
    score_finish(&j->scorer);
    add_score(answer, &j->scorer.s);
    if (j->scorer.report) fclose(j->scorer.report);
    gate_trace_close(j->walk.t);
    return rc;
}

/* --- the whole life ---------------------------------------------------------------------------------------------------- */

static int work(struct job *j, cJSON *answer, struct q_err *e)
{
    const char *what = text_of(j, "do");
    j->walk.arg = j;
    j->trace_path = text_of(j, "trace");
    j->patience = real_of(j, "patience");
    if (!what || !j->trace_path || q_numerics_parse(text_of(j, "numerics") ? text_of(j, "numerics") : "") < 0)
        return q_fail(e, Q_EINPUT, "--gate: expected a job as one line of JSON on stdin");
    int is_reference = !strcmp(what, "reference"), rc = is_reference ? reference(j, answer, e) : score(j, answer, e);
    if (is_reference && j->t) gate_trace_close(j->t);
    return rc;
}

int gate_child(void)
{
    char *line = NULL;
    size_t cap = 0;
    struct q_err e = { 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct job *j = calloc(1, sizeof *j);
    cJSON *q = getline(&line, &cap, stdin) > 0 ? cJSON_Parse(line) : NULL, *answer = cJSON_CreateObject();
    if (j) j->q = q;
    int rc = j ? work(j, answer, &e) : q_fail(&e, Q_EMEM, "no memory for the gate");
    cJSON_AddBoolToObject(answer, "ok", !rc);
    if (rc) cJSON_AddStringToObject(answer, "why", e.text);
    if (rc == Q_ELIMIT || rc == Q_EMEM) cJSON_AddBoolToObject(answer, "slow", 1);
    tell(answer);
    cJSON_Delete(q);
    free(line);
    free(j);
    return rc != 0;
}
