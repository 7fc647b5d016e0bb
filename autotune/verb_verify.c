/* quarry tune verify: is what was recorded still right on this machine, and still as fast? Every winner is generated and built again, held against
 * ref.c, and raced against the default params for a moment; a line an op. Nothing is recorded, but a winner that is wrong is taken out of use: its
 * record stays beside the others under a name that nothing reads, and the next tune measures its problem again. It waits for a tune of the card,
 * and a tune for it: they would disturb each other's times. What crashes or hangs is in the journal for good. */
#include "judge.h"
#include "progress.h"
#include "proving.h"
#include "rebuild.h"
#include "runtime/clock.h"
#include "verbs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BRIEF_US 0.1e6     /* of measuring a winner */

struct verifying {
    struct proving p;
    int ops, right, wrong, untested;
};

/* What a line tells of an op. */
struct tally {
    int right, wrong, untested, better, same, worse;
    double least, most;        /* of today's time in relation to the recorded one */
};

/* --- one winner -------------------------------------------------------------------------------------------------------- */

static int is_winner(const struct record *r) { return r->kernel[0] && strcmp(r->op, "ceiling") && r->origin[0] && strcmp(r->origin, "default"); }

/* Buckets may share the winner for steps of any size. */
static int is_met_before(const struct verifying *w, const struct looked *v)
{
    const struct record *r = &v->record;
    for (const struct looked *o = w->p.look.v; o < v; o++)
        if (!strcmp(o->record.op, r->op) && !strcmp(o->record.shape, r->shape) && o->record.rows == r->rows && o->record.ctx == r->ctx) return 1;
    return 0;
}

static void count_right(struct tally *t, const struct record *old, const struct record *now, int worse)
{
    int measured_here = !strcmp(old->origin, "tuned") && old->n_times && now->n_times && old->time[0].rows == now->time[0].rows;
    t->right++;
    if (worse) t->worse++;
    else if (now->gain > RACE_TIE) t->better++;
    else t->same++;
    if (!measured_here || !(old->time[0].median_us > 0)) return;
    double ratio = now->time[0].median_us / old->time[0].median_us;
    t->least = t->least > 0 ? fmin(t->least, ratio) : ratio;
    t->most = fmax(t->most, ratio);
}

static void tell(const struct record *r, const char *what, const char *why)
{
    char bucket[32];
    progress_bucket(bucket, r->rows, r->ctx);
    printf("  %s: %s %s%s%s %s: %s\n", what, r->op, r->shape, bucket[0] ? " " : "", bucket, r->params, why);
}

static void put_away(struct verifying *w, const struct record *r)
{
    struct store_key k = { r->op, r->shape, r->rows, r->ctx, r->profile, r->card, r->generator };
    char path[Q_PATH];
    struct q_err e;
    if (strcmp(r->origin, "tuned")) puts("    it was not measured here: quarry tune finds this card's own winner");
    else if (!store_set_aside(w->p.s, &k, path, &e)) printf("    it is out of use, kept as %s; quarry tune measures again\n", path);
    else printf("    it stays in use: %s\n", e.text);
}

static int verify_one(struct verifying *w, const struct record *r, struct tally *t, struct q_err *e)
{
    struct q_problem p = { .rows = r->rows, .ctx = r->ctx };
    struct gen_kernel gk = { 0 };
    struct record own;
    struct outcome out;
    struct q_err why = { 0 };
    int worse = 0;
    strcpy(p.op, r->op);
    strcpy(p.shape, r->shape);
    int rc = judge_own(w->p.g, &w->p.t.card, r, &own, &gk, &why);
    gen_kernel_free(&gk);
    if (!rc) rc = contest_again(&w->p.env, &p, r->params, &out, &worse, &why);
    if (rc && rc != Q_EINTERNAL && rc != Q_EUNSUP && rc != Q_EINPUT) return q_fail(e, rc, "%s", why.text);
    if (!rc) count_right(t, r, &out.record, worse);
    if (!rc) return Q_OK;
    if (rc == Q_EUNSUP) t->untested++, tell(r, "not tested", why.text);
    else t->wrong++, tell(r, "WRONG", why.text), put_away(w, r);
    return Q_OK;
}

/* --- all --------------------------------------------------------------------------------------------------------------- */

static const char *plural(int n) { return n == 1 ? "" : "s"; }

static void print_op(const char *op, const struct tally *t)
{
    printf("%s: %d winner%s right", op, t->right, plural(t->right));
    if (t->wrong) printf(", %d WRONG", t->wrong);
    if (t->untested) printf(", %d not tested", t->untested);
    if (t->most > t->least) printf("; %.2f to %.2f of the recorded time", t->least, t->most);
    else if (t->most > 0) printf("; %.2f of the recorded time", t->most);
    if (t->right) printf("; against default params %d better, %d the same, %d worse", t->better, t->same, t->worse);
    puts("");
    fflush(stdout);
}

/* Of an op that is asked for, once where buckets share it. */
static int is_to_do(const struct verifying *w, const struct looked *v)
{
    return (!w->p.o->n_args || !strcmp(w->p.o->args[0], v->problem.op)) && is_winner(&v->record) && !is_met_before(w, v);
}

static int build_winners(struct verifying *w, struct q_err *e)
{
    const struct record **r = calloc((size_t)w->p.look.n + 1, sizeof *r);
    int n = 0;
    for (int i = 0; r && i < w->p.look.n; i++)
        if (is_to_do(w, &w->p.look.v[i])) r[n++] = &w->p.look.v[i].record;
    int rc = r ? rebuild_all(&w->p.build, &w->p.t, w->p.g, r, n, e) : q_fail(e, Q_EMEM, "no memory for %d records", w->p.look.n);
    free(r);
    return rc;
}

static int verify_op(struct verifying *w, const char *op, struct q_err *e)
{
    struct tally t = { 0 };
    int rc = Q_OK;
    for (int i = 0; i < w->p.look.n && !rc; i++) {
        const struct looked *v = &w->p.look.v[i];
        if (!strcmp(v->problem.op, op) && is_to_do(w, v)) rc = verify_one(w, &v->record, &t, e);
    }
    if (!t.right && !t.wrong && !t.untested) return rc;
    print_op(op, &t);
    w->ops++;
    w->right += t.right;
    w->wrong += t.wrong;
    w->untested += t.untested;
    return rc;
}

static int verify_all(struct verifying *w, struct q_err *e)
{
    const char *last = "";
    double start = clock_s();
    int rc = build_winners(w, e);
    for (int i = 0; i < w->p.look.n && !rc; i++) {
        const char *its = w->p.look.v[i].problem.op;
        if (strcmp(its, last)) rc = verify_op(w, its, e);
        last = its;
    }
    if (rc) return rc;
    if (!w->ops) return q_fail(e, Q_EMISS, "no winner is recorded: default params would be used");
    printf("%d winner%s of %d op%s right; %.1f s\n", w->right, plural(w->right), w->ops, plural(w->ops), clock_s() - start);
    if (w->wrong) return q_fail(e, Q_EINTERNAL, "%d winner%s wrong on this machine", w->wrong, w->wrong == 1 ? " is" : "s are");
    return w->untested ? q_fail(e, Q_EINTERNAL, "%d winner%s could not be tested", w->untested, plural(w->untested)) : Q_OK;
}

int verb_verify(const struct options *o, struct q_err *e)
{
    struct verifying w = { .ops = 0 };
    int rc = proving_open(&w.p, o, o->n_args ? o->args[0] : NULL, BRIEF_US, e);
    if (!rc) fprintf(stderr, "card %s\n", o->card.key);
    if (!rc) rc = verify_all(&w, e);
    int stopped = proving_close(&w.p, rc);
    return stopped ? q_fail(e, Q_EIO, "interrupted: the ops above are verified"), VERB_INTERRUPTED : rc;
}
