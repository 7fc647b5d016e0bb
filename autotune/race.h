/* Who is fastest, and whether that is certain: interleaved samples, lower quartiles, early stops, a paired duel. Pure logic over a measurer; no
 * files, no clock of its own.
 *
 * A candidate's score is its time in relation to the default's (racer 0), each with what a call costs beside: 1 is the default, less is better. Of
 * several sizes it is the weighted geometric mean: then what b gains over a is what a loses against b, and whoever two are compared by is
 * the same to both. A time is the lower quartile of samples that a pause of the machine can hardly spoil by themselves (sample.h); what still does
 * must meet three of four.
 * Racers more than three times slower than the best are dropped early, but not for one sample.
 *
 * Two races of the same racers shall end alike: who is close to the best is chosen from in a final of paired samples, where those that are a tie are
 * told apart by the racers' order, never by their times. */
#ifndef Q_RACE_H
#define Q_RACE_H

#include "measure.h"
#include "sample.h"

enum { RACE_SAMPLES = 128, RACE_MOST = 64, RACE_RIVALS = 4 };
#define RACE_TIE 0.02        /* differences below this are no differences */
/* What a choice must gain at least. Two tunes that measured without error would stand that far apart at most; the other half of a tie is there for
 * the errors of both. */
#define RACE_STEP 0.01
#define RACE_DOUBT 0.03      /* who may be that far ahead of the choice is worth another look */
#define RACE_SLOWED 1.08     /* a pace (pace.h) that much above the best is no chance: something else uses the processors */
#define RACE_REACH 0.08      /* who is that far behind it may be ahead where the machine is in another state */

struct racer {
    struct measure_kernel kernel;            /* its texts borrowed */
    int holds;                               /* is the recorded winner: wins every tie, one with the default too */
    int canonical;                           /* wins a tie */
    int order;                               /* then the least: the simpler params come first in a space */
    int bad, out;                            /* failed; dropped as too slow */
    char why[256];
    int n[MEASURE_SIZES];
    double us[MEASURE_SIZES][RACE_SAMPLES];
    double score;
};

/* What all races of a tune share. */
struct patience {
    double best_pace;        /* of any samples (measure.h); 0: none was told */
    double spare_us;         /* how long laps may be taken again yet since they were slowed */
};

struct race {
    const struct measurer *m;
    struct patience *patience;               /* NULL: none */
    int slot;                                /* of the measurer that holds the problem */
    int n_sizes;
    double weight[MEASURE_SIZES];
    double budget_us;                        /* about how long measuring may take */
    int on_card;                             /* samples cost what a card's do */
    double call_us;                          /* what a call costs beside its kernel: differences far below it are none */
};

struct duel {
    double gain;             /* 1 - the time in relation to the base's, negative where it is slower. Of a card by the middle of the paired scores; of
                              * a CPU told twice, by their median and by the lower quartiles of the times: the nearer to none, and none where
                              * they contradict. Where others use the machine either may mislead, hardly both */
    double noise;            /* the gain's standard error, or half of what the two tellings differ by */
    double band;             /* max(RACE_TIE, 3 noise): what lies nearer to none is no difference */
    int turns;
    double base_us, best_us; /* at the first size: lower quartiles */
    double need;             /* what a gain must reach to be chosen for: RACE_STEP, or the noise, and 5 % at most. A step that noise could never pass
                              * for would be missed by every second tune of a machine that others use */
    int accepted;
};

/* What a final tells. */
struct final {
    int choice;
    struct duel duel;        /* the default against the choice, from the same laps; all zero where they are one */
    int n_rivals;
    int rival[RACE_RIVALS];  /* of those that the laps cannot place more than RACE_REACH behind the choice, the farthest ahead first */
    double ahead[RACE_RIVALS];   /* by how much each may be ahead, as far as the laps' noise tells: at least -RACE_REACH */
    double pace;             /* the laps' (measure.h), by their median; 0: not told */
};

double race_median(const double *v, int n);
/* Median absolute deviation from the median. */
double race_mad(const double *v, int n);
/* The mean of the middle half: for the times of a card, where nothing lies far out. It tells more than the median of as many, and does not jump
 * between the two levels of a kernel that has two. */
double race_middle(const double *v, int n);

/* Standard error of the median of n values, which their MAD tells: the spread of single samples is not the uncertainty of their middle. */
double race_noise(const double *v, int n);
/* Whether more samples may tell otherwise on which side of `edge` a gain is. */
int race_is_undecided(double gain, double edge, double noise);
/* What a gain may be at most, as far as its noise tells. */
double race_at_most(double gain, double noise);

/* The nearer to none of what two estimates tell of a gain; 0 where one tells a gain and the other a loss. */
double race_both(double a, double b);

/* of[0..n): who is timed when in lap t, shuffled for every other lap and backwards in the next: a kernel finds the caches and clocks that the one before
 * it left, and none is always behind the same. */
void race_order(int t, int n, int *of);

/* Of of[0..k), in their order, each against the one chosen before it: `gains` tells what b gains over a, with its standard error, and whether that is
 * enough to take the place. *choice: who has it at the end. more[]: set for those of whom more samples may tell otherwise on which side of RACE_STEP
 * they are. Non-zero: there are some. */
typedef int (*race_gains)(const void *arg, int a, int b, double *gain, double *noise);
int race_choose(const int *of, int k, race_gains gains, const void *arg, int *choice, char *more);

/* r[0] is the default, n at most RACE_MOST. *best: index of the one with the least score.
 * Q_EINTERNAL when the default itself fails (r[0].why); other errors end the tune. */
int race_run(const struct race *race, struct racer *r, int n, int *best, struct q_err *e);
/* Chooses among racers that are close, r[0] the default, by laps in which each is timed once at every size: in their order (the one that holds the
 * place, the default, the canonical class, the least `order`) each must gain RACE_STEP over the one chosen before it, and more than the noise of
 * their paired times. So the choice does not hang on who is fastest by a hair, and whoever is chosen is hardly farther behind the fastest than
 * that. Laps go on for those of whom it is not certain yet on which side of that step they are, until it is, or as far as the budget goes. Laps at a
 * slower pace than the best are taken again, while there is patience, for half the budget at most.
 * Errors as race_run's. */
int race_final(const struct race *race, struct racer *r, int n, struct final *f, struct q_err *e);
/* Base against best, turn by turn; more turns where it is not certain yet whether they are a tie (RACE_TIE). */
int race_duel(const struct race *race, struct racer *base, struct racer *best, struct duel *d, struct q_err *e);

#endif
