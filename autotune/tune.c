#define _GNU_SOURCE
#include "tune_impl.h"
#include "defaults.h"
#include "gate.h"
#include "runtime/ceilings.h"
#include "runtime/clock.h"
#include "runtime/kset_shapes.h"
#include "runtime/roof.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct effort efforts[] = {
    { "quick", 6, 1, 2, 1, 0, 0, 0.25e6, 0, 0 },
    { "normal", 24, 8, 4, 4, 3, 1, 1.2e6, 0, 0 },
    { "exhaustive", RACE_MOST, RACE_MOST, 4, 16, 0, 1, 3e6, 1, 0 },
};

#define PATIENCE 16.0      /* of what a race may take, in a whole tune, for laps that something else slowed: 20 s with effort normal */

const struct effort *effort_find(const char *name)
{
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++)
        if (!strcmp(efforts[i].name, name)) return &efforts[i];
    return NULL;
}

/* --- what is there already --------------------------------------------------------------------------------------------- */

int tune_find_recorded(const struct tuner *t, const struct q_problem *p, struct record *r, struct q_err *e)
{
    enum recorded state;
    char why[200];
    int rc = recorded_find(&t->known, p, r, &state, why, e);
    return rc || state == RECORDED_GOOD ? rc : q_fail(e, Q_EMISS, "no record that stays for %s %s", p->op, p->shape);
}

static int enter_recorded(struct tuner *t, const struct q_problem *p, const struct record *r, struct q_err *e)
{
    struct found *f = found_add(&t->found, p);
    if (!f) return q_fail(e, Q_EMEM, "no memory for results");
    f->record = *r;
    t->recorded++;
    return Q_OK;
}

/* Q_EMISS: no earlier tune has it. */
static int enter_resumed(struct tuner *t, const struct q_problem *p, struct q_err *e)
{
    struct found *had = calloc(1, sizeof *had);
    int there = had && tune_resume(t, p, had);
    struct found *f = there ? found_add(&t->found, p) : NULL;
    if (f) *f = *had;
    free(had);
    return f ? Q_OK : q_fail(e, there ? Q_EMEM : Q_EMISS, "no memory for results");
}

/* --- measuring --------------------------------------------------------------------------------------------------------- */

/* Default kernels come before all measuring: with a compiler that fails for them nothing else can be had from it. */
static int build_defaults(const struct tuner *t, struct q_err *e)
{
    const struct tune_opts *o = t->o;
    struct defaults_result done;
    return defaults_make(o->t, o->g, o->build, o->compiler, o->given, NULL, NULL, &done, e);
}

static int is_card(const struct tuner *t) { return t->o->t->card.kind == Q_CARD_CUDA; }

static int open_measurer(struct tuner *t, struct q_err *e)
{
    const struct tune_opts *o = t->o;
    char where[32];
    if (is_card(t)) snprintf(where, sizeof where, "%.31s", o->device);
    else snprintf(where, sizeof where, "%d", o->t->card.threads);
    int rc = measure_open(&t->measure, o->program, where, o->build->signal_fd, e);
    if (rc) return rc;
    t->watch.inner = measure_table(t->measure);
    t->table = watch_table(&t->watch);
    return rc;
}

static int measure_host(struct tuner *t, struct q_err *e)
{
    const struct q_card *c = &t->o->t->card;
    struct q_roofs *r = &t->env.roofs;
    int rc = roof_measure_host(c->threads, c->isa, r, e);
    if (!rc && r->doubtful)
        progress_line(&t->progress, "something else used the processors while the roofs were measured: they may be too low, and shares of them too "
                      "high; the next one that measures a kernel measures them again (--again)");
    return rc;
}

/* Whether the card's space has the ceiling at all: one without dp4a has no such kernel. */
static int has_ceiling(const struct tuner *t, const struct q_problem *p)
{
    struct gen_kernel k;
    if (target_emit(t->o->t, t->o->g, p, NULL, &k, NULL)) return 0;
    gen_kernel_free(&k);
    return 1;
}

static void tell_doubt(struct tuner *t, const struct q_problem *p, const struct record *r)
{
    const struct record_time *z = &r->time[0];
    const char *slowed = r->clocks.slowed;
    progress_line(&t->progress, "%s %s: its samples differ by %.1f %%%s%s: something else used the card or held it back, so it may be too low; it "
                  "is measured again the next time", p->op, p->shape, z->median_us > 0 ? 100 * z->mad_us / z->median_us : 0,
                  *slowed ? ", slowed by " : "", slowed);
}

/* doubted: what is recorded, or NULL. Of two that are doubted the higher one holds. */
static int measure_ceiling(struct tuner *t, const struct q_problem *p, const struct record *doubted, struct q_err *e)
{
    int n = t->found.n, rc = tune_problem(t, p, e);
    if (rc) return rc;
    struct found *f = &t->found.f[n];
    if (!ceiling_is_doubtful(&f->record)) return Q_OK;
    tell_doubt(t, p, &f->record);
    if (!doubted || doubted->time[0].median_us >= f->record.time[0].median_us) return Q_OK;
    f->record = *doubted;
    f->fresh = 0;
    return Q_OK;
}

static int settle_ceiling(struct tuner *t, const struct q_problem *p, struct q_err *e)
{
    struct record r;
    if (found_find(&t->found, p)) return Q_OK;
    int rc = tune_find_recorded(t, p, &r, e);
    if (!rc) return ceiling_is_doubtful(&r) ? measure_ceiling(t, p, &r, e) : enter_recorded(t, p, &r, e);
    if (rc == Q_EMISS) rc = enter_resumed(t, p, e);
    return rc == Q_EMISS ? measure_ceiling(t, p, NULL, e) : rc;
}

/* A card's ceilings are problems like others, but first: winners are judged by them. */
static int measure_ceilings(struct tuner *t, struct q_err *e)
{
    static const char *const what[] = { "read", "ffma", "dp4a", "hfma2", "mma_f16", "mma_i8" };
    int rc = Q_OK;
    t->progress.n = sizeof what / sizeof *what;
    for (size_t i = 0; i < sizeof what / sizeof *what && !rc; i++) {
        struct q_problem p = { .op = "ceiling" };
        snprintf(p.shape, sizeof p.shape, "what=%s", what[i]);
        if (!has_ceiling(t, &p) || (rc = settle_ceiling(t, &p, e))) continue;
        ceilings_enter(&t->env.roofs, &found_find(&t->found, &p)->record);
    }
    return rc;
}

/* Times beside other programs are of the machine as it is then; whoever reads them should know. The tune itself has just begun. */
static void tell_load(struct tuner *t)
{
    double load;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (is_card(t) || getloadavg(&load, 1) != 1 || load < 0.75 * (double)cpus) return;
    progress_line(&t->progress, "the processors were busy in the last minute (load %.1f on %ld CPUs): if that goes on, the times are those of a "
                  "busy machine", load, cpus);
}

int tune_need_measurer(struct tuner *t, struct q_err *e)
{
    const struct tune_opts *o = t->o;
    if (t->measure) return Q_OK;
    int rc = store_can_put(o->build->store, e);
    if (!rc) rc = store_can_write(o->build->store, o->t->card.kind, e);
    if (!rc && !o->compiler->program[0]) rc = compiler_find(o->compiler, &o->t->card, o->given, e);
    if (!rc && !o->op) rc = build_defaults(t, e);
    if (!rc) rc = open_measurer(t, e);
    if (!rc) rc = is_card(t) ? measure_ceilings(t, e) : measure_host(t, e);
    if (rc) return rc;
    const struct q_roofs *r = &t->env.roofs;
    tell_load(t);
    progress_line(&t->progress, "effort %s, %s; roofs: %.1f GB/s read, %.0f GOP/s int8, %.0f GFLOP/s fp32", t->env.effort->name, o->t->card.key,
                  r->read * 1e-9, r->int8 * 1e-9, r->fp32 * 1e-9);
    if (is_card(t))
        progress_line(&t->progress, "of which dp4a %.1f, hfma2 %.1f, ffma %.1f, mma_f16 %.1f, mma_i8 %.1f TOP/s", r->dp4a * 1e-12, r->hfma2 * 1e-12,
                      r->ffma * 1e-12, r->mma_f16 * 1e-12, r->mma_i8 * 1e-12);
    return Q_OK;
}

int tune_is_local(int rc) { return rc == Q_EINTERNAL || rc == Q_EUNSUP; }

void tune_note_skipped(struct tuner *t, const struct q_err *why)
{
    if (!t->skipped++) memcpy(t->first_skipped, why->text, sizeof t->first_skipped);
}

enum { MOST_SEEDS = 4 };      /* of any effort */

/* The latest winners of the same op: first those for steps of the same size, then others. */
static int seeds_for(const struct tuner *t, const struct q_problem *p, char (*seeds)[256])
{
    int n = 0;
    for (int k = 2 * t->found.n - 1; k >= 0 && n < t->env.effort->seeds; k--) {
        const struct record *r = &t->found.f[k % t->found.n].record;
        int seen = strcmp(r->op, p->op) || (k >= t->found.n && (r->rows != p->rows || r->ctx != p->ctx));
        for (int j = 0; j < n; j++) seen |= !strcmp(seeds[j], r->params);
        if (!seen) strcpy(seeds[n++], r->params);
    }
    return n;
}

int tune_problem(struct tuner *t, const struct q_problem *p, struct q_err *e)
{
    char seeds[MOST_SEEDS][256];
    struct outcome out;
    struct record held;
    struct q_err why;
    const struct effort *ef = t->env.effort;
    int n = seeds_for(t, p, seeds), holds = recorded_holds(&t->known, p, &held);
    int rc = contest_run(&t->env, p, holds ? held.params : NULL, (const char (*)[256])seeds, n, n ? ef->later : ef->first, ef->climbs, &out, &why);
    if (rc && !tune_is_local(rc)) return q_fail(e, rc, "%s", why.text);
    struct found *f = found_add(&t->found, p);
    if (!f) return q_fail(e, Q_EMEM, "no memory for results");
    if (rc) {
        tune_note_skipped(t, &why);
        t->progress.done++;
        progress_line(&t->progress, "[%3d/%d] %s %s: keeps its default params: %s", t->progress.done, t->progress.n, p->op, p->shape, why.text);
        return Q_OK;
    }
    f->record = out.record;
    f->base = out.base;
    f->fresh = 1;
    f->rivals = out.rivals;
    tune_note_won(t, &out.record, &out.base, &out);
    progress_outcome(&t->progress, p, &out);
    return Q_OK;
}

/* --- problems ---------------------------------------------------------------------------------------------------------- */

/* Layouts are chosen before; what brings weights to a card runs once, when a model is loaded. */
static int is_other(const struct tuner *t, const struct q_problem *p)
{
    if (t->o->op && strcmp(t->o->op, p->op)) return 1;
    static const char *const other[] = { "layout", "repack", "synth" };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (!strcmp(p->op, other[i])) return 1;
    return 0;
}

void tune_join_buckets(struct q_problem_list *l)
{
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        struct q_problem p = l->p[i];
        p.rows = p.ctx = 0;
        if (!n || !q_problem_is(&l->p[n - 1], &p)) l->p[n++] = p;
    }
    l->n = n;
}

/* Enters what is recorded, and moves what must be measured to the front of the list: *n of them. */
static int sort_out(struct tuner *t, struct q_problem_list *l, int *n, struct q_err *e)
{
    *n = 0;
    for (int i = 0; i < l->n; i++) {
        struct record r;
        if (is_other(t, &l->p[i]) || found_find(&t->found, &l->p[i])) continue;
        enum recorded state;
        char why[200];
        int rc = recorded_find(&t->known, &l->p[i], &r, &state, why, e);
        if (rc) return rc;
        rc = state == RECORDED_GOOD ? enter_recorded(t, &l->p[i], &r, e) : enter_resumed(t, &l->p[i], e);
        if (rc && rc != Q_EMISS) return rc;
        if (rc) l->p[(*n)++] = l->p[i];
    }
    return Q_OK;
}

static int settle_problem(struct tuner *t, const struct q_problem *p, struct q_err *e)
{
    struct record r;
    enum recorded state;
    char why[200];
    if (found_find(&t->found, p)) return Q_OK;        /* ceilings are there by now */
    int rc = recorded_find(&t->known, p, &r, &state, why, e);
    if (!rc && why[0]) tune_tell_why(t, p, state, why);
    if (rc) return rc;
    if (state == RECORDED_GOOD) return t->progress.done++, enter_recorded(t, p, &r, e);      /* its object came with the default ones */
    return state == RECORDED_AGAIN ? tune_again(t, p, &r, e) : tune_problem(t, p, e);
}

static int tune_problems(struct tuner *t, struct q_problem_list *l, struct q_err *e)
{
    if (!t->env.effort->buckets) tune_join_buckets(l);
    t->counted = 1;
    int n, rc = sort_out(t, l, &n, e);
    if (rc || !n || (rc = tune_need_journal(t, e))) return rc;
    l->n = n;      /* a tune that was waited for may have recorded them, one that did not end has measured some */
    if ((rc = sort_out(t, l, &n, e))) return rc;
    if (t->resumed) progress_line(&t->progress, "%d problems were measured by a tune that did not end; %d are left", t->resumed, n);
    if (!n || (rc = tune_need_measurer(t, e)) || (rc = tune_prepare_again(t, l, n, e))) return rc;
    t->n_problems = n;
    t->progress.n = n;
    t->progress.done = 0;
    t->progress.start = clock_s();
    for (int i = 0; i < n && !rc; i++) rc = settle_problem(t, &l->p[i], e);
    return rc ? rc : tune_look_twice(t, e);
}

/* --- the end ----------------------------------------------------------------------------------------------------------- */

static int fresh(const struct tuner *t)
{
    int n = 0;
    for (int i = 0; i < t->found.n; i++) n += t->found.f[i].fresh;
    return n;
}

static int again(const struct tuner *t)
{
    int n = 0;
    for (int i = 0; i < t->found.n; i++) n += t->found.f[i].again;
    return n;
}

static int pass_gate(struct tuner *t, char *summary, size_t cap, struct q_err *e)
{
    const struct tune_opts *o = t->o;
    struct gate_opts g = { .t = o->t, .model = o->model, .preset = o->preset, .type = o->type, .tunes = o->tunes, .program = o->program,
                           .device = o->device, .effort = o->effort, .g = o->g, .build = o->build, .compiler = o->compiler, .given = o->given,
                           .progress = &t->progress };
    if (o->op) return Q_OK;
    progress_line(&t->progress, "gate: the set against numerics reference");
    int rc = gate_run(&g, &t->found, summary, cap, e);
    tune_note_gate(t, rc, rc ? e->text : summary);
    return rc;
}

static int write_records(struct tuner *t, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < t->found.n && !rc; i++)
        if (t->found.f[i].fresh || t->found.f[i].again) rc = store_put(t->o->build->store, &t->found.f[i].record, e);
    return rc;
}

static void summarise(const struct tuner *t, const char *gate, double seconds)
{
    int changed = 0, kept = 0;
    double most = 0;
    for (int i = 0; i < t->found.n; i++) {
        const struct found *f = &t->found.f[i];
        if (!f->fresh) continue;
        int differs = strcmp(f->record.params, f->record.base_params) != 0;
        changed += differs;
        kept += !differs;
        most = f->record.gain > most ? f->record.gain : most;
    }
    fprintf(t->o->results, "%d problems: %d better than their default params (by up to %.0f %%), %d best with them, %d recorded before, "
            "%d not tuned; %.1f s\n",
            changed + kept + t->recorded + again(t) + t->skipped, changed, 100 * most, kept, t->recorded + again(t), t->skipped, seconds);
    if (t->resumed) fprintf(t->o->results, "%d of these were measured by a tune that did not end\n", t->resumed);
    if (again(t)) fprintf(t->o->results, "%d recorded winners were built and checked again, and stay\n", again(t));
    if (gate[0]) fprintf(t->o->results, "%s\n", gate);
}

/* Nothing new: all is recorded, or what is not could not be measured. */
static int finish_idle(const struct tuner *t, double start, struct q_err *e)
{
    if (t->skipped && !t->recorded)
        return q_fail(e, Q_EINTERNAL, "nothing is recorded: none of %d problems could be measured; the first: %.800s", t->skipped, t->first_skipped);
    if (t->skipped) summarise(t, "", clock_s() - start);
    else fprintf(t->o->results, "nothing to do: all %d problems are recorded with effort %s or more; %.1f s\n", t->recorded, t->env.effort->name,
                 clock_s() - start);
    return Q_OK;
}

static int finish(struct tuner *t, double start, struct q_err *e)
{
    char gate[GATE_SUMMARY] = "";
    if (!fresh(t) && !again(t)) return finish_idle(t, start, e);
    measure_close(t->measure);     /* its memory is the gate's now */
    t->measure = NULL;
    progress_ops(&t->progress, &t->found);
    int rc = fresh(t) ? pass_gate(t, gate, sizeof gate, e) : Q_OK;     /* what stays has passed it before */
    if (!rc) rc = write_records(t, e);
    if (!rc) summarise(t, gate, clock_s() - start);
    return rc;
}

static void know(struct tuner *t, const struct effort *effort)
{
    const struct tune_opts *o = t->o;
    t->known = (struct recorded_query){ .t = o->t, .g = o->g, .store = o->build->store, .effort = effort, .compiler = o->compiler,
                                          .again = o->again };
    recorded_driver(&o->t->card, t->known.driver);
}

int tune_roofs(const struct tune_opts *o, struct q_err *e)
{
    struct tuner t = { .o = o, .progress = { .f = o->progress, .start = clock_s() } };
    know(&t, effort_find("quick"));
    if (!is_card(&t)) return q_fail(e, Q_EINPUT, "--roofs is of a card: expected --device cuda:N, found a CPU");
    t.env = (struct contest_env){ .t = o->t, .g = o->g, .build = o->build, .m = &t.table, .effort = effort_find("quick"), .can_build = &t.can_build,
                                  .driver = t.known.driver };
    int rc = store_can_put(o->build->store, e);
    if (!rc) rc = store_can_write(o->build->store, o->t->card.kind, e);
    if (!rc) rc = compiler_find(o->compiler, &o->t->card, o->given, e);
    if (!rc) rc = open_measurer(&t, e);
    if (!rc) rc = measure_ceilings(&t, e);
    if (!rc) rc = write_records(&t, e);
    measure_close(t.measure);
    free(t.found.f);
    return rc;
}

int tune_make(const struct tune_opts *o, struct q_err *e)
{
    struct tuner t = { .o = o, .progress = { .f = o->progress, .start = clock_s() } };
    struct q_problem_list list = { 0 };
    double start = t.progress.start;
    t.env = (struct contest_env){ .t = o->t, .g = o->g, .build = o->build, .m = &t.table, .effort = effort_find(o->effort),
                                  .cold_bytes = target_cold_bytes(o->t), .can_build = &t.can_build, .driver = t.known.driver,
                                  .patience = &t.patience };
    t.patience.spare_us = PATIENCE * t.env.effort->budget_us;
    know(&t, t.env.effort);
    if (!o->compiler->program[0]) compiler_find(o->compiler, &o->t->card, o->given, NULL);      /* needed only when something is built */
    int rc = kset_problems(o->t->model, &o->t->card, o->t->numerics, o->t->kv_k, o->t->kv_v, o->t->sparse, tune_layout_of, &t, &list, e);
    if (rc == Q_EMISS && t.err.code) rc = q_fail(e, t.err.code, "%s", t.err.text);
    if (!rc) rc = tune_problems(&t, &list, e);
    if (!rc) rc = finish(&t, start, e);
    tune_close_journal(&t, rc);
    measure_close(t.measure);
    free(list.p);
    free(t.found.f);
    return rc;
}
