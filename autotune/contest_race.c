/* Who is the best of a contest: races over some of its candidates, a climb from the winner to its neighbours, a last race of all that are close. What
 * another tune of the same machine would find differently by chance is kept small here: neighbours of the second are tried too, and what was
 * found in different races meets in one. */
#include "contest_impl.h"
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12, FINAL = 7, FEW = 4 };
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

/* Races candidates of[0] (the default) to of[n - 1]; their samples and scores are then those of this race. d NULL: *won is the one with the least
 * score; else it is the choice of a final, with its duel. */
static int race_these(struct contest *t, const int *of, int n, int *won, struct duel *d, struct q_err *e)
{
    struct racer *r = calloc(RACE_MOST, sizeof *r);
    if (!r) return q_fail(e, Q_EMEM, "no memory for a race");
    enter(t, of, n, r);
    int rc = d ? race_final(&t->race, r, n, won, d, e) : race_run(&t->race, r, n, won, e);
    take_results(t, of, n, r);
    if (!rc) *won = of[*won];
    free(r);
    return rc;
}

int contest_race(struct contest *t, int champion, int from, int *best, struct q_err *e)
{
    int of[RACE_MOST], n = 0, won = 0;
    for (int i = 0; i < t->n; i++)
        if (t->c[i].usable && (!i || i == champion || i >= from)) of[n++] = i;
    int rc = race_these(t, of, n, &won, NULL, e);
    *best = rc ? 0 : won;
    return rc;
}

/* Whether candidate i ran in a race and is no farther than `behind` times the best's score. */
static int is_close(const struct contest *t, int i, int best, double behind)
{
    const struct racer *r = &t->r[i];
    return t->c[i].usable && r->kernel.symbol && !r->bad && r->score <= t->r[best].score * behind;
}

/* The best one beside `best`; best where none is close. */
static int runner_up(const struct contest *t, int best)
{
    int at = best;
    for (int i = 0; i < t->n; i++)
        if (i != best && is_close(t, i, best, CLOSE) && (at == best || t->r[i].score < t->r[at].score)) at = i;
    return at;
}

static int add_steps(struct contest *t, int at, int most, struct q_err *e)
{
    int index[STEPS], rc = Q_OK, n = space_steps(&t->space, space_find(&t->space, t->c[at].k.params), index, most);
    for (int i = 0; i < n && !rc; i++) rc = contest_add(t, t->space.params[index[i]], e);
    return rc;
}

/* As long as one of them wins, and at first those of the one behind it: where two are close, which of them is ahead says nothing about who stands
 * next to the best of all. A card's times are its own and hardly vary: there one look around is enough. */
int contest_climb(struct contest *t, int climbs, int *best, struct q_err *e)
{
    int rc = Q_OK;
    if (t->race.on_card && climbs > 1) climbs = 1;
    for (int i = 0; i < climbs && !rc; i++) {
        int from = t->n, second = i || t->race.on_card ? *best : runner_up(t, *best);
        rc = add_steps(t, *best, STEPS, e);
        if (!rc && second != *best) rc = add_steps(t, second, STEPS / 2, e);
        if (rc || t->n == from) return rc;
        rc = contest_heat(t, from, best, e);
        if (*best < from) return rc;
    }
    return rc;
}

/* The default and up to FINAL - 1 others that are close to the best, the closest first; FEW where a noisy race may have told too little of them. */
static int finalists(const struct contest *t, int best, int of[FINAL])
{
    int n = 1;
    of[0] = 0;
    for (int i = 1; i < t->n; i++) {
        if (!is_close(t, i, best, FAR)) continue;
        int at = n < FINAL ? n++ : FINAL;
        while (at > 1 && t->r[of[at - 1]].score > t->r[i].score) {
            if (at < FINAL) of[at] = of[at - 1];
            at--;
        }
        if (at < FINAL) of[at] = i;
    }
    while (n > FEW && !is_close(t, of[n - 1], best, CLOSE)) n--;
    return n;
}

/* Everyone who is close to the best once more, beside one another and the default: so that the winner does not depend on who met whom in which
 * race. */
int contest_finish(struct contest *t, int *best, struct duel *d, struct q_err *e)
{
    int of[FINAL], n = finalists(t, *best, of);
    memset(d, 0, sizeof *d);
    return n < 2 ? Q_OK : race_these(t, of, n, best, d, e);
}
