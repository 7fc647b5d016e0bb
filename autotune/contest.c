#include "contest_impl.h"
#include "race_impl.h"
#include "runtime/ceilings.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* On a CPU, beside a kernel and its barrier: its code and arguments come from outer caches, where a model has run hundreds of others since. A card's
 * times hold its launch. */
#define CALL_US 0.25

void contest_fail(struct contest *t, int i, const char *why)
{
    struct outcome *o = t->out;
    t->c[i].usable = 0;
    if (!o->failed++) snprintf(o->first_failure, sizeof o->first_failure, "%.150s: %.350s", t->c[i].k.name, why);
}

/* --- candidates -------------------------------------------------------------------------------------------------------- */

static int known(const struct contest *t, const char *params)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->c[i].k.params, params)) return 1;
    return 0;
}

/* Whether the journal knows it as bad; the default, without which there is no contest, is told by *e. */
static int is_bad(struct contest *t, const struct candidate *c, struct q_err *e)
{
    const char *why = book_bad(t->env->book, c->task.object.name, !t->n);
    if (!why) return 0;
    t->out->known_bad++;
    q_fail(e, Q_EINTERNAL, "its default params are not tried again here: %.800s", why);
    return 1;
}

int contest_add(struct contest *t, const char *params, struct q_err *e)
{
    struct candidate *c = &t->c[t->n];
    if (t->n == RACE_MOST || (params && known(t, params))) return Q_OK;
    memset(c, 0, sizeof *c);
    int rc = target_emit(t->env->t, t->env->g, t->p, params, &c->k, e);
    if (rc) return rc;
    c->task = build_task_of(&c->k, t->env->build->compiler);
    int bad = is_bad(t, c, e);
    if (bad || !target_admits(t->env->t, c->k.numerics)) {
        gen_kernel_free(&c->k);
        return bad && !t->n ? Q_EINTERNAL : Q_OK;
    }
    c->usable = 1;
    c->who.c = (struct journal_candidate){ &t->key, c->k.params, c->task.object.name };
    t->n++;
    return Q_OK;
}

/* A partial params text was completed to what is there already. */
static int is_double_params(const struct contest *t, int i)
{
    for (int j = 0; j < i; j++)
        if (!strcmp(t->c[j].k.params, t->c[i].k.params)) return 1;
    return 0;
}

static void drop_last(struct contest *t) { gen_kernel_free(&t->c[--t->n].k); }

/* The first candidate of a path. */
static const char *params_of_path(const struct contest *t, const char *path)
{
    for (int i = 0; i < t->n; i++)
        if (!strcmp(t->c[i].k.isa, path)) return t->c[i].k.params;
    return NULL;
}

static unsigned long long seed_of(const struct q_problem *p)
{
    unsigned long long h = 0xCBF29CE484222325ull;
    for (const char *s = p->op; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001B3ull;
    for (const char *s = p->shape; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001B3ull;
    return h;
}

/* On a card: the default params of every instruction path that is legal here. Of these, the one whose measured ceiling is highest is
 * *first: what silicon a card has does not tell what its fuses left. */
static int add_paths(struct contest *t, const char **first, struct q_err *e)
{
    char path[SPACE_PATHS][24], params[40];
    int n = space_paths(&t->space, path), rc = Q_OK;
    double best = 0;
    for (int i = 0; i < n && !rc; i++) {
        int at = t->n;
        double rate = ceiling_rate(&t->env->roofs, path[i]);
        snprintf(params, sizeof params, "path=%.24s", path[i]);
        rc = contest_add(t, params, e);
        if (rc == Q_EUNSUP) rc = Q_OK;
        if (t->n > at && is_double_params(t, at)) drop_last(t);
        const char *of_path = params_of_path(t, path[i]);
        if (of_path && rate > best) {
            best = rate;
            *first = of_path;
        }
    }
    return rc;
}

/* What a search finds by chance two tunes find differently: of 134 products of a card with 64 rows the one that was fastest by 29 % (another tile
 * and k in parts, neither of any use alone) was drawn or climbed to by every second tune, and so was, of 116 of a CPU, one that was by a fifth. So
 * a path with few candidates is tried whole, and of others what lies beside the default. A card's compilers are many, and wait while it measures. */
static struct space_plan plan_of(int on_card, int most)
{
    enum { FEW = 8, CPU_WHOLE = 28, CPU_NEAR = 10, CARD_WHOLE = 56, CARD_NEAR = 16 };
    if (most > RACE_MOST) most = RACE_MOST;
    if (most < FEW) return on_card ? (struct space_plan){ 0, 0, most } : (struct space_plan){ 0, most - 1, 1 };
    return on_card ? (struct space_plan){ CARD_WHOLE, CARD_NEAR, most } : (struct space_plan){ CPU_WHOLE, CPU_NEAR, most };
}

static int pick(struct contest *t, const char (*seeds)[256], int n_seeds, int most, struct q_err *e)
{
    int index[4 * RACE_MOST], rc = contest_add(t, NULL, e);
    if (!rc && t->n && t->held && space_find(&t->space, t->held) >= 0) rc = contest_add(t, t->held, e);
    if (rc) return rc;
    if (!t->n) return q_fail(e, Q_EUNSUP, "%s %s: the default params are not of an admitted class", t->p->op, t->p->shape);
    if (n_seeds > RACE_MOST) n_seeds = RACE_MOST;
    const char *first = t->c[0].k.params;
    int on_card = t->env->t->card.kind == Q_CARD_CUDA;
    if (on_card && (rc = add_paths(t, &first, e))) return rc;
    struct space_plan plan = plan_of(on_card, most);
    int n = space_pick(&t->space, first, &plan, seeds, n_seeds, seed_of(t->p), index);
    for (int i = 0; i < n && !rc; i++) rc = contest_add(t, t->space.params[index[i]], e);
    return rc;
}

/* --- building and checking, of candidates from `from` on ------------------------------------------------------------------ */

/* A compiler that found no room tells nothing about the candidate; nor does one that cannot make the default. */
static void fail_build(struct contest *t, int i)
{
    const struct candidate *c = &t->c[i];
    int room = !strstr(c->task.why, strerror(ENOSPC)) && !strstr(c->task.why, strerror(ENOMEM));
    if (room && t->c[0].usable) journal_bad(t->env->journal, &c->who.c, "build", c->task.why);
    contest_fail(t, i, c->task.why);
}

static int build(struct contest *t, int from, struct q_err *e)
{
    struct build_task task[RACE_MOST];
    int of[RACE_MOST], n = 0, rc = Q_OK;
    struct store *s = t->env->build->store;
    for (int i = from; i < t->n; i++) {
        struct build_task *own = &t->c[i].task;
        if (!store_object(s, own->object.name, t->c[i].path, NULL)) {
            if ((rc = sha_file(own->object.content, t->c[i].path, &own->object.size, e))) return rc;
            continue;
        }
        of[n] = i;
        task[n++] = *own;
    }
    if (n) rc = build_all(t->env->build, task, n, e);
    for (int j = 0; j < n; j++) {
        struct candidate *c = &t->c[of[j]];
        c->task = task[j];
        if (rc && task[j].rc == Q_EMISS) continue;      /* its turn did not come */
        if (task[j].rc) fail_build(t, of[j]);
        else if (store_object(s, task[j].object.name, c->path, rc ? NULL : e)) return rc ? rc : Q_EIO;
    }
    return rc;
}

static int default_built(struct contest *t, struct q_err *e)
{
    if (!t->c[0].usable) return q_fail(e, *t->env->can_build ? Q_EINTERNAL : Q_EIO, "the default params cannot be built: %.600s", t->c[0].task.why);
    *t->env->can_build = 1;
    return Q_OK;
}

/* Params that give the same object as others before them are the same candidate. */
static int is_double(const struct contest *t, int i)
{
    for (int j = 0; j < i; j++)
        if (t->c[j].usable && !strcmp(t->c[j].task.object.content, t->c[i].task.object.content)) return 1;
    return 0;
}

static int check(struct contest *t, int from, struct q_err *e)
{
    const struct measurer *m = t->env->m;
    for (int i = from; i < t->n; i++) {
        struct candidate *c = &t->c[i];
        struct measure_kernel k = { c->path, c->k.name, c->k.launch, c->k.numerics, &c->who };
        char hash[17];
        struct q_err why;
        if (!c->usable) continue;
        if (is_double(t, i)) {
            c->usable = 0;
            continue;
        }
        int rc = m->check(m->arg, t->env->slot, &k, hash, &why);
        if (rc && rc != Q_EINTERNAL) return q_fail(e, rc, "%s", why.text);
        if (rc) contest_fail(t, i, why.text);
        else t->out->tried++;
    }
    if (t->c[0].usable) return Q_OK;
    return q_fail(e, Q_EINTERNAL, "the default params fail: %.900s", t->out->first_failure);
}

static int prepare(struct contest *t, struct q_err *e)
{
    char ref[24];
    const struct contest_env *env = t->env;
    int rc = gen_ref(env->g, t->p->op, ref, e);
    if (!rc) rc = sizes_of(&t->sizes, env->g, &env->t->card, t->p, e);
    if (rc) return rc;
    struct measure_problem p = { .ref = ref, .shape = t->p->shape, .n_time = t->sizes.n, .cold_bytes = t->sizes.cold ? env->cold_bytes : 0 };
    memcpy(p.check, t->sizes.check, sizeof p.check);
    memcpy(p.time, t->sizes.time, sizeof p.time);
    t->race = (struct race){ .m = env->m, .slot = env->slot, .n_sizes = t->sizes.n, .budget_us = env->effort->budget_us, .patience = env->patience,
                             .on_card = env->t->card.kind == Q_CARD_CUDA };
    t->race.call_us = t->race.on_card ? 0 : CALL_US;
    memcpy(t->race.weight, t->sizes.weight, sizeof t->race.weight);
    return env->m->problem(env->m->arg, env->slot, &p, e);
}

int contest_heat(struct contest *t, int from, int *best, struct q_err *e)
{
    int rc = build(t, from, e);
    if (!rc) rc = check(t, from, e);
    return rc ? rc : contest_race(t, *best, from, best, e);
}

/* --- a contest --------------------------------------------------------------------------------------------------------- */

/* A card is hardly used by others while it is tuned. */
static void note_rivals(struct contest *t, const struct final *f)
{
    struct rivals *l = &t->out->rivals;
    l->n = t->race.on_card ? 0 : f->n_rivals;
    l->pace = f->pace;
    for (int i = 0; i < l->n; i++) {
        strcpy(l->params[i], t->c[f->rival[i]].k.params);
        l->ahead[i] = f->ahead[i];
    }
}

void contest_conclude(struct contest *t, const struct final *f)
{
    contest_note_ties(t, f->choice);
    contest_record(&t->out->record, t, f->choice);
    contest_record(&t->out->base, t, 0);
    if (f->choice) t->out->record.gain = fmax(f->duel.gain, 0);
    t->out->duel = f->duel;
    note_rivals(t, f);
}

int contest_ready(struct contest *t, struct q_err *e)
{
    int rc = prepare(t, e);
    if (!rc) rc = build(t, 0, e);          /* while the child makes its cases */
    if (!rc) rc = default_built(t, e);
    if (!rc) rc = t->env->m->ready(t->env->m->arg, e);
    return rc ? rc : check(t, 0, e);
}

static int run(struct contest *t, const char (*seeds)[256], int n_seeds, int most, int climbs, struct q_err *e)
{
    struct final f;
    int best = 0, rc = pick(t, seeds, n_seeds, most, e);
    if (!rc) rc = contest_ready(t, e);
    if (!rc) rc = contest_race(t, 0, 0, &best, e);
    if (!rc && t->env->effort->whole) rc = contest_try_rest(t, &best, e);
    else if (!rc) rc = contest_climb(t, climbs, &best, e);
    if (!rc) rc = contest_finish(t, best, &f, e);
    if (!rc) contest_conclude(t, &f);
    return rc;
}

int contest_open(struct contest *t, const struct contest_env *env, const struct q_problem *p, struct outcome *out, struct q_err *e)
{
    *t = (struct contest){ .env = env, .p = p, .out = out };
    memset(out, 0, sizeof *out);
    t->c = calloc(RACE_MOST, sizeof *t->c);
    t->r = calloc(RACE_MOST, sizeof *t->r);
    return t->c && t->r ? target_key(env->t, env->g, p, t->generator, &t->key, e) : q_fail(e, Q_EMEM, "no memory for candidates");
}

void contest_close(struct contest *t)
{
    for (int i = 0; i < t->n; i++) gen_kernel_free(&t->c[i].k);
    space_close(&t->space);
    free(t->c);
    free(t->r);
}

int contest_run(const struct contest_env *env, const struct q_problem *p, const char *held, const char (*seeds)[256], int n_seeds, int most, int climbs,
                struct outcome *out, struct q_err *e)
{
    struct contest t;
    int rc = contest_open(&t, env, p, out, e);
    t.held = held;
    if (!rc) rc = space_open(&t.space, env->g, p->op, p->shape, env->t->card.key, q_numerics_name(env->t->numerics), e);
    out->total = t.space.total;
    out->legal = t.space.n;
    if (!rc) contest_tell_space(&t);
    if (!rc) rc = run(&t, seeds, n_seeds, most, climbs, e);
    contest_close(&t);
    return rc;
}

int contest_pick(const struct contest_env *env, const struct q_problem *p, const struct space *space, const char (*seeds)[256], int n_seeds, int most,
                 char (*params)[256], int *n, int *known_bad, struct q_err *e)
{
    struct outcome none = { .tried = 0 };
    struct contest t = { .env = env, .p = p, .space = *space, .out = &none };
    *n = 0;
    t.c = calloc(RACE_MOST, sizeof *t.c);
    int rc = t.c ? pick(&t, seeds, n_seeds, most, e) : q_fail(e, Q_EMEM, "no memory for candidates");
    *known_bad = none.known_bad;
    for (int i = 0; i < t.n; i++) {
        if (!rc) strcpy(params[(*n)++], t.c[i].k.params);
        gen_kernel_free(&t.c[i].k);
    }
    free(t.c);
    return rc;
}
