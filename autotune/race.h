/* Who is fastest, and whether that is certain: interleaved samples, medians, early stops, a paired duel with the default. Pure logic over
 * a measurer; no files, no clock of its own.
 *
 * A candidate's score is the weighted sum over sizes of its median time in relation to the default's (racer 0): 1 is the default,
 * less is better. Racers more than three times slower than the best are dropped after their first sample. */
#ifndef Q_RACE_H
#define Q_RACE_H

#include "measure.h"

enum { RACE_SAMPLES = 48, RACE_MOST = 64 };
#define RACE_TIE 0.02        /* differences below this are no differences */

struct racer {
    struct measure_kernel kernel;            /* its texts borrowed */
    int canonical;                           /* wins a tie */
    int bad, out;                            /* failed; dropped as too slow */
    char why[256];
    int n[MEASURE_SIZES];
    double us[MEASURE_SIZES][RACE_SAMPLES];
    double score;
};

struct race {
    const struct measurer *m;
    int slot;                                /* of the measurer that holds the problem */
    int n_sizes;
    double weight[MEASURE_SIZES];
    double budget_us;                        /* about how long measuring may take */
};

struct duel {
    double gain;             /* the lesser of 1 - median of the paired scores and 1 - score of the least times: where others use the
                              * machine either may mislead, hardly both */
    double band;             /* race_band */
    int accepted;
};

double race_median(const double *v, int n);
/* What a gain, found as the median of n paired ratios, must reach to be one: max(2 %, 3 standard errors of that median, which their MAD
 * tells: the spread of single samples is not the uncertainty of their middle). */
double race_band(const double *ratio, int n);
/* The smallest: what a machine that others use shows of a kernel's own time. */
double race_least(const double *v, int n);
/* Median absolute deviation from the median. */
double race_mad(const double *v, int n);

/* r[0] is the default, n at most RACE_MOST. *best: index of the winner; within a tie the default, then the canonical class, then the first in the list.
 * Q_EINTERNAL when the default itself fails (r[0].why); other errors end the tune. */
int race_run(const struct race *race, struct racer *r, int n, int *best, struct q_err *e);
/* Default against winner, turn by turn. */
int race_duel(const struct race *race, struct racer *base, struct racer *best, struct duel *d, struct q_err *e);

#endif
