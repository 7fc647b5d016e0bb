/* Inside a race: shared by race.c, which finds who is near the best, and race_final.c, which chooses. */
#ifndef Q_RACE_IMPL_H
#define Q_RACE_IMPL_H

#include "race.h"

/* k more samples at one size; a failure of the candidate is its own. */
int race_sample(const struct race *race, struct racer *r, int size, int k, struct q_err *e);
/* Of the last sample; 0: not told. */
double race_pace(const struct race *race);
/* Sets r->score. */
void race_score(const struct race *race, const struct racer *base, struct racer *r);
/* One sample of every running racer at every size, in microseconds. */
double race_lap(const struct race *race, const struct racer *r, int n);
/* How often `one` fits into the budget, within range[0] and range[1]. */
int race_times_in(double budget, double one, const int range[2]);
/* Whether a wins a tie with b. */
int race_before(const struct racer *r, int a, int b);
/* What n turns tell of b, beside a. */
void race_judge(const struct race *race, const struct racer *a, const struct racer *b, int n, struct duel *d);

#endif
