/* quarry tune plan: op by op what a tune would try, what was pruned and why, what is recorded already, and about how long it would take. Nothing is
 * built, measured or written.
 *
 * Seconds come from counts and from three figures that hold within a factor of two on the machines that were met. */
#include "look.h"
#include "progress.h"
#include "recorded.h"
#include "runtime/ceilings.h"
#include "tune.h"
#include "verbs.h"
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define BUILD_S 0.4        /* a kernel, one compiler */
#define CASES_S 0.3        /* a problem's cases and their truth */
#define CHECK_S 0.02       /* a candidate */

enum { SEEDS = 4, STEPS = 6 };   /* STEPS: neighbours of a winner that are not known yet */

struct planning {
    const struct options *o;
    struct target t;
    struct gen *g;
    struct store *s;
    struct look look;
    struct compiler compiler;
    struct build_opts build;
    struct contest_env env;
    struct recorded_query recorded;
    struct journal_book *book; /* what earlier tunes found and did not record; NULL where there is no journal */
    struct space space;        /* owned: of the op and shape at hand, for all its buckets */
    cJSON *json;               /* a list, NULL: text is printed */
    int to_measure, again, candidates;
    double build_s, measure_s;
};

/* One problem of the plan. */
struct planned {
    struct record record;
    enum recorded state;
    char why[200];             /* it is looked at again; or it cannot be tuned */
    int first;                 /* of its op: no winner of another shape is known */
    int n, steps;              /* n 0: it cannot be tuned */
    int seeds;                 /* winners of other shapes that will be known by then */
    int known_bad;             /* candidates that failed here before: left out */
    int resumes;               /* a tune that did not end has measured it */
    char (*params)[256];       /* owned: [n] */
};

/* --- one problem ------------------------------------------------------------------------------------------------------- */

/* Winners of the op's other shapes, as far as they are known now. */
static int seeds_of(const struct planning *w, const struct looked *v, char (*seeds)[256])
{
    int n = 0;
    for (const struct looked *o = w->look.v; o < v && n < w->env.effort->seeds; o++)
        if (!strcmp(o->problem.op, v->problem.op) && !strcmp(o->record.origin, "tuned")) strcpy(seeds[n++], o->record.params);
    return n;
}

static int is_first(const struct planning *w, const struct looked *v) { return v == w->look.v || strcmp(v[-1].problem.op, v->problem.op); }

static int is_new_shape(const struct planning *w, const struct looked *v) { return is_first(w, v) || strcmp(v[-1].problem.shape, v->problem.shape); }

static int pick(const struct planning *w, const struct looked *v, struct planned *p, struct q_err *e)
{
    const struct effort *ef = w->env.effort;
    char seeds[SEEDS][256];
    int n = seeds_of(w, v, seeds);
    if (!strcmp(v->problem.op, "layout")) {
        for (p->n = 0; p->n < w->space.n && p->n < RACE_MOST; p->n++) strcpy(p->params[p->n], w->space.params[p->n]);
        return Q_OK;
    }
    p->steps = ef->climbs ? STEPS : 0;
    p->seeds = p->first || ef->whole ? 0 : ef->seeds - n;
    return contest_pick(&w->env, &v->problem, &w->space, (const char (*)[256])seeds, n, p->first ? ef->first : ef->later, p->params, &p->n,
                        &p->known_bad, e);
}

static int open_space(struct planning *w, const struct looked *v, struct q_err *e)
{
    if (!is_new_shape(w, v) && w->space.n) return Q_OK;
    space_close(&w->space);
    return space_open(&w->space, w->g, v->problem.op, v->problem.shape, w->t.card.key, q_numerics_name(w->t.numerics), e);
}

/* A problem of which nothing is admitted keeps its default params, and the plan goes on as a tune does. */
static int plan_problem(struct planning *w, const struct looked *v, struct planned *p, struct q_err *e)
{
    struct q_err why;
    memset(p, 0, sizeof *p);
    p->first = is_first(w, v);
    if (!(p->params = calloc(RACE_MOST, sizeof *p->params))) return q_fail(e, Q_EMEM, "no memory for candidates");
    int rc = open_space(w, v, &why);
    if (!rc) rc = pick(w, v, p, &why);
    if (rc == Q_EUNSUP || rc == Q_EINTERNAL) {
        p->n = 0;
        snprintf(p->why, sizeof p->why, "%.199s", why.text);
        return Q_OK;
    }
    if (rc) return q_fail(e, rc, "%s", why.text);
    struct store_key k = look_key(&w->t, v);
    p->resumes = w->book && book_won(w->book, &k);
    return recorded_find(&w->recorded, &v->problem, &p->record, &p->state, p->why, e);
}

/* A layout of n candidates is a race of two products of its own. */
static void count(struct planning *w, const struct looked *v, const struct planned *p)
{
    int layout = !strcmp(v->problem.op, "layout"), one = w->env.effort->whole ? w->space.n : p->n + p->steps + p->seeds;
    int n = layout ? 2 * p->n * w->env.effort->layout : one;
    if (!p->n || p->state == RECORDED_GOOD || (layout && p->n < 2)) return;
    if (p->state == RECORDED_AGAIN) {
        w->again++;
        w->build_s += 2 * BUILD_S;
        w->measure_s += CASES_S + 0.2;
        return;
    }
    w->to_measure++;
    w->candidates += n;
    w->build_s += n * BUILD_S;
    w->measure_s += CASES_S + n * CHECK_S + w->env.effort->budget_us * 1e-6;
}

/* --- text -------------------------------------------------------------------------------------------------------------- */

static const char *state_text(const struct planned *p)
{
    static const char *const text[] = { "to be measured", "recorded", "looked at again" };
    return p->n ? text[p->state] : "cannot be tuned";
}

static const char *plural(int n) { return n == 1 ? "" : "s"; }

static void print_op(const struct planning *w, const char *op)
{
    int shapes = 0, n = look_count(&w->look, op);
    for (int i = 0; i < w->look.n; i++) shapes += !strcmp(w->look.v[i].problem.op, op) && is_new_shape(w, &w->look.v[i]);
    printf("%s: %d shape%s", op, shapes, plural(shapes));
    if (n > shapes) printf(", with buckets %d problems", n);
    puts("");
}

static void print_state(const struct planning *w, const struct planned *p)
{
    char difference[200] = "";
    if (p->state != RECORDED_NONE) progress_difference(difference, sizeof difference, p->record.params, p->record.base_params);
    if (!p->n) printf("keeps its default params: %s\n", p->why);
    else if (p->state == RECORDED_GOOD) printf("recorded with effort %s: %s\n", p->record.effort, difference);
    else if (p->state == RECORDED_AGAIN) printf("recorded (%s), but %s: it is built and checked again\n", difference, p->why);
    else if (p->why[0]) printf("%s: tries %d\n", p->why, p->n);
    else if (w->env.effort->whole) puts("tries all that are legal");
    else if (p->resumes) printf("measured by a tune that did not end: the next one takes it over if nothing changed, else it tries %d\n", p->n);
    else {
        printf("tries %d%s%s", p->n, p->steps ? " and the winner's neighbours" : "", p->seeds ? ", and winners of other shapes" : "");
        if (p->known_bad) printf("; %d that failed here before %s left out", p->known_bad, p->known_bad == 1 ? "is" : "are");
        puts("");
    }
}

static void print_problem(const struct planning *w, const struct looked *v, const struct planned *p)
{
    char bucket[32];
    if (is_new_shape(w, v)) printf("  %s\n    %d in the space, %d legal\n", v->problem.shape, w->space.total, w->space.n);
    progress_bucket(bucket, v->problem.rows, v->problem.ctx);
    printf("    %s%s", bucket, bucket[0] ? ": " : "");
    print_state(w, p);
    for (int i = 0; i < p->n && w->o->n_args && p->state == RECORDED_NONE; i++) printf("      %s\n", p->params[i]);
}

/* Reasons of an op's shapes together. */
struct reasons {
    struct { char text[96]; int n; } v[SPACE_REASONS];
    int n, pruned;
};

static void add_reasons(struct reasons *r, const struct space *s)
{
    r->pruned += s->total - s->n;
    for (int i = 0; i < s->n_reasons; i++) {
        int j = 0;
        while (j < r->n && strcmp(r->v[j].text, s->reason[i].text)) j++;
        if (j == SPACE_REASONS) j--;
        if (j == r->n) strcpy(r->v[r->n++].text, s->reason[i].text);
        r->v[j].n += s->reason[i].n;
    }
}

static void print_reasons(struct reasons *r)
{
    if (r->pruned) printf("  pruned %d, each for the first of these that it does not meet:\n", r->pruned);
    for (int i = 0; i < r->n; i++) printf("    %6d  %s\n", r->v[i].n, r->v[i].text);
    memset(r, 0, sizeof *r);
}

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

static void add_json(struct planning *w, const struct looked *v, const struct planned *p)
{
    cJSON *o = cJSON_CreateObject(), *reasons, *params;
    cJSON_AddStringToObject(o, "op", v->problem.op);
    cJSON_AddStringToObject(o, "shape", v->problem.shape);
    cJSON_AddNumberToObject(o, "rows", v->problem.rows);
    cJSON_AddNumberToObject(o, "ctx", v->problem.ctx);
    cJSON_AddStringToObject(o, "state", state_text(p));
    if (p->state != RECORDED_NONE) cJSON_AddStringToObject(o, "recorded", p->record.params);
    if (p->why[0]) cJSON_AddStringToObject(o, "why", p->why);
    if (p->resumes) cJSON_AddTrueToObject(o, "measured");
    cJSON_AddNumberToObject(o, "known_bad", p->known_bad);
    cJSON_AddNumberToObject(o, "space", w->space.total);
    cJSON_AddNumberToObject(o, "legal", w->space.n);
    reasons = cJSON_AddObjectToObject(o, "pruned");
    for (int i = 0; i < w->space.n_reasons; i++) cJSON_AddNumberToObject(reasons, w->space.reason[i].text, w->space.reason[i].n);
    params = cJSON_AddArrayToObject(o, "candidates");
    for (int i = 0; i < p->n; i++) cJSON_AddItemToArray(params, cJSON_CreateString(p->params[i]));
    cJSON_AddItemToArray(w->json, o);
}

static int print_json(const struct planning *w, double seconds, struct q_err *e)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "card", w->t.card.key);
    cJSON_AddStringToObject(o, "effort", w->env.effort->name);
    cJSON_AddNumberToObject(o, "to_measure", w->to_measure);
    cJSON_AddNumberToObject(o, "again", w->again);
    cJSON_AddNumberToObject(o, "candidates", w->candidates);
    cJSON_AddNumberToObject(o, "seconds", (int)(seconds + 0.5));
    cJSON_AddItemReferenceToObject(o, "problems", w->json);
    int rc = verb_print_json(o, e);
    cJSON_Delete(o);
    return rc;
}

/* --- the plan ---------------------------------------------------------------------------------------------------------- */

static int is_last(const struct planning *w, int i) { return i + 1 == w->look.n || is_first(w, &w->look.v[i + 1]); }

static int plan_one(struct planning *w, const struct looked *v, struct reasons *reasons, struct q_err *e)
{
    struct planned p;
    int rc = plan_problem(w, v, &p, e);
    if (!rc) {
        count(w, v, &p);
        if (is_new_shape(w, v)) add_reasons(reasons, &w->space);
        if (!w->json && p.first) print_op(w, v->problem.op);
        if (w->json) add_json(w, v, &p);
        else print_problem(w, v, &p);
    }
    free(p.params);
    return rc;
}

static int plan_all(struct planning *w, struct q_err *e)
{
    const char *op = w->o->n_args ? w->o->args[0] : NULL;
    struct reasons reasons = { .n = 0 };
    int rc = Q_OK, other = 0;
    for (int i = 0; i < w->look.n && !rc; i++) {
        const struct looked *v = &w->look.v[i];
        if (op && strcmp(op, v->problem.op)) continue;
        if (!look_is_tuned(v->problem.op)) {
            other++;
            continue;
        }
        rc = plan_one(w, v, &reasons, e);
        if (!rc && !w->json && is_last(w, i)) print_reasons(&reasons);
    }
    if (!rc && other && !w->json) printf("repack, synth: %d shape%s, not tuned: they run once, when a model is loaded\n", other, plural(other));
    return rc;
}

static int conclude(const struct planning *w, struct q_err *e)
{
    int jobs = verb_jobs(w->o);
    double build_s = w->build_s / jobs;
    if (w->json) return print_json(w, build_s + w->measure_s, e);
    if (!w->to_measure && !w->again) return puts("nothing to do: all is recorded"), Q_OK;
    printf("effort %s: ", w->env.effort->name);
    if (w->to_measure) printf("%d problem%s to measure with about %d candidates", w->to_measure, plural(w->to_measure), w->candidates);
    if (w->again) printf("%s%d recorded winner%s to build and check again", w->to_measure ? ", " : "", w->again, plural(w->again));
    printf("; about %.0f s of measuring, %.0f s of compiling with -j %d beside it%s\n", w->measure_s, build_s, jobs,
           w->to_measure ? ", then the gate" : "");
    return Q_OK;
}

/* A journal that cannot be read is none: the plan is then of a tune that knows nothing. */
static void open_book(struct planning *w)
{
    char dir[Q_PATH];
    if (!journal_dir(dir, NULL, w->o->card.key, NULL) && book_open(&w->book, dir, w->o->card.key, NULL)) w->book = NULL;
    w->env.book = w->book;
}

static int open_planning(struct planning *w, struct q_err *e)
{
    const struct options *o = w->o;
    w->t = verb_target(o);
    w->build = (struct build_opts){ .store = w->s, .compiler = &w->compiler, .jobs = verb_jobs(o), .signal_fd = -1 };
    w->env = (struct contest_env){ .t = &w->t, .g = w->g, .build = &w->build, .effort = effort_find(o->effort) };
    w->recorded = (struct recorded_query){ .t = &w->t, .g = w->g, .store = w->s, .effort = w->env.effort, .compiler = &w->compiler };
    compiler_find(&w->compiler, &o->card, &o->given, NULL);     /* without one nothing is known to have changed */
    recorded_driver(&o->card, w->recorded.driver);
    open_book(w);
    ceilings_read(w->s, o->card.key, &w->env.roofs);
    int rc = target_open(&w->t, o->model, o->preset, o->type, e);
    if (!rc) rc = look_open(&w->look, &w->t, w->g, w->s, !w->env.effort->buckets, e);
    if (!rc) rc = look_has_op(&w->look, o->n_args ? o->args[0] : NULL, e);
    return rc;
}

int verb_plan(const struct options *o, struct q_err *e)
{
    struct planning w = { .o = o };
    if (!strcmp(o->effort, "none")) return puts("effort none: default params, nothing is measured"), Q_OK;
    int rc = verb_store(o, &w.s, e);
    if (!rc) rc = gen_open(&w.g, o->generator, e);
    if (!rc) rc = open_planning(&w, e);
    if (!rc && o->json) w.json = cJSON_CreateArray();
    if (!rc && !o->json) printf("plan for %s on %s; nothing is built or measured\n", o->model ? o->model : o->preset, o->card.key);
    if (!rc) rc = plan_all(&w, e);
    if (!rc) rc = conclude(&w, e);
    cJSON_Delete(w.json);
    space_close(&w.space);
    book_close(w.book);
    look_close(&w.look);
    target_close(&w.t);
    if (w.g) gen_close(w.g);
    store_close(w.s);
    return rc;
}
