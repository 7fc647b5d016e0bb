/* Who is the best of a contest: races over some of its candidates, a climb from the best to their neighbours, a last race of all that are close. What
 * another tune of the same machine would find differently by chance is kept small here: which of two that are close is ahead says nothing, so
 * neighbours of all of them are tried, and what was found in different races meets in one. */
#include "contest_impl.h"
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12, LEADERS = 4, FINAL = 10, FEW = 4, CARD_CLIMBS = 2 };
#define NEAR 1.02       /* a tie with the best */
#define CLOSE 1.04      /* hardly behind the best: may be the best in another race */
#define FAR 1.15        /* may be so on a machine that others use */

/* All samples of a race, where the journal has the first alone. */
static void note_samples(const struct contest *t, const struct candidate *c, const struct racer *r)
{
    for (int i = 0; i < t->sizes.n; i++) {
        const struct measure_size *z = &t->sizes.time[i];
        if (r->n[i] > 1) journal_time(t->env->journal, &c->who.c, (const int[]){ z->rows, z->seqs, z->past }, r->us[i], r->n[i]);
    }
}

static void enter(const struct contest *t, const int *of, int n, struct racer *r)
{
    for (int j = 0; j < n; j++) {
        struct candidate *c = &t->c[of[j]];
        r[j] = (struct racer){ .kernel = { c->path, c->k.name, c->k.launch, c->k.numerics, &c->who },
                               .holds = t->held && !strcmp(c->k.params, t->held),
                               .canonical = !strcmp(c->k.numerics, "canonical"),
                               .order = space_find(&t->space, c->k.params) };
    }
}

static void take_results(struct contest *t, const int *of, int n, const struct racer *r)
{
    for (int j = 0; j < n; j++) {
        t->r[of[j]] = r[j];
        note_samples(t, &t->c[of[j]], &r[j]);
        if (r[j].bad) contest_fail(t, of[j], r[j].why);
    }
}

/* Races candidates of[0] (the default) to of[n - 1], in a final where f is given; their samples and scores are then those of this race. *won: index in
 * of[]. */
static int race_these(struct contest *t, const int *of, int n, int *won, struct final *f, struct q_err *e)
{
    struct racer *r = calloc(RACE_MOST, sizeof *r);
    if (!r) return q_fail(e, Q_EMEM, "no memory for a race");
    enter(t, of, n, r);
    int rc = f ? race_final(&t->race, r, n, f, e) : race_run(&t->race, r, n, won, e);
    take_results(t, of, n, r);
    free(r);
    return rc;
}

static int final_of(struct contest *t, const int *of, int n, struct final *f, struct q_err *e)
{
    int rc = race_these(t, of, n, NULL, f, e);
    if (rc) return rc;
    f->choice = of[f->choice];
    for (int i = 0; i < f->n_rivals; i++) f->rival[i] = of[f->rival[i]];
    return Q_OK;
}

int contest_race(struct contest *t, int champion, int from, int *best, struct q_err *e)
{
    int of[RACE_MOST], n = 0, won = 0;
    for (int i = 0; i < t->n; i++)
        if (t->c[i].usable && (!i || i == champion || i >= from)) of[n++] = i;
    int rc = race_these(t, of, n, &won, NULL, e);
    *best = rc ? 0 : of[won];
    return rc;
}

/* Whether candidate i ran in a race and is no farther than `behind` times the best's score. */
static int is_close(const struct contest *t, int i, int best, double behind)
{
    const struct racer *r = &t->r[i];
    return t->c[i].usable && r->kernel.symbol && !r->bad && r->score <= t->r[best].score * behind;
}

/* Enters those from `from` on that are close into of[n..most), the closest first. Returns how many there are then. */
static int add_close(const struct contest *t, int from, int best, double behind, int *of, int n, int most)
{
    int first = n;
    for (int i = from; i < t->n; i++) {
        if (!is_close(t, i, best, behind)) continue;
        int at = n < most ? n++ : most;
        while (at > first && t->r[of[at - 1]].score > t->r[i].score) {
            if (at < most) of[at] = of[at - 1];
            at--;
        }
        if (at < most) of[at] = i;
    }
    return n;
}

static int add_steps(struct contest *t, int at, int most, struct q_err *e)
{
    int index[STEPS], rc = Q_OK, n = space_near(&t->space, space_find(&t->space, t->c[at].k.params), 1, index, most);
    for (int i = 0; i < n && !rc; i++) rc = contest_add(t, t->space.params[index[i]], e);
    t->c[at].stepped = 1;
    return rc;
}

/* Neighbours of the best, then of those that are a tie with it. */
static int add_neighbours(struct contest *t, int best, struct q_err *e)
{
    int of[LEADERS], n = add_close(t, 0, best, NEAR, of, 0, LEADERS), rc = Q_OK;
    for (int i = 0; i < n && !rc; i++)
        if (!t->c[of[i]].stepped) rc = add_steps(t, of[i], of[i] == best ? STEPS : STEPS / 2, e);
    return rc;
}

/* As long as there is somebody new among the best; on a card, whose times hardly vary, a second time where one of them is the best. */
int contest_climb(struct contest *t, int climbs, int *best, struct q_err *e)
{
    if (t->race.on_card && climbs > CARD_CLIMBS) climbs = CARD_CLIMBS;
    for (int i = 0; i < climbs; i++) {
        int from = t->n, rc = add_neighbours(t, *best, e);
        if (rc || t->n == from) return rc;
        if ((rc = contest_heat(t, from, best, e)) || (t->race.on_card && *best < from)) return rc;
    }
    return Q_OK;
}

/* The default and up to FINAL - 1 others that are close to the best, the closest first; FEW where a noisy race may have told too little of them. Who
 * holds the place is among them wherever it was found to be. */
static int finalists(const struct contest *t, int best, int of[FINAL])
{
    of[0] = 0;
    int n = add_close(t, 1, best, FAR, of, 1, FINAL), held = -1;
    while (n > FEW && !is_close(t, of[n - 1], best, CLOSE)) n--;
    for (int i = 1; i < t->n; i++)
        if (t->held && t->c[i].usable && t->r[i].kernel.symbol && !t->r[i].bad && !strcmp(t->c[i].k.params, t->held)) held = i;
    for (int j = 0; j < n; j++)
        if (of[j] == held) held = -1;
    if (held >= 0) of[n < FINAL ? n++ : FINAL - 1] = held;
    return n;
}

/* Everyone who is close to the best once more, beside one another and the default: so that the winner does not depend on who met whom in which
 * race. */
int contest_finish(struct contest *t, int best, struct final *f, struct q_err *e)
{
    int of[FINAL], n = finalists(t, best, of);
    *f = (struct final){ .choice = best };
    return n < 2 || t->env->effort->brief ? Q_OK : final_of(t, of, n, f, e);
}

int contest_finish_all(struct contest *t, struct final *f, struct q_err *e)
{
    int of[RACE_MOST], n = 0;
    for (int i = 0; i < t->n; i++)
        if (t->c[i].usable) of[n++] = i;
    return final_of(t, of, n, f, e);
}
