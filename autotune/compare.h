/* Two sets of winners of one card against each other: where they answer a problem with different params, both are built, checked and timed in one
 * interleaved duel. How alike two tunes are is then a fact of the machine, not of two texts.
 *
 * The other set is data from a stranger: every record goes through the judge before any is used, and one that this version's generator does not make
 * ends the comparison; those of other templates are counted and left out. Nothing of it is written anywhere. A layout is held against
 * another by what both products of such a weight take (layouts.h). */
#ifndef Q_COMPARE_H
#define Q_COMPARE_H

#include "card_lines.h"
#include "proving.h"

enum compared { COMPARE_SAME, COMPARE_WITHIN, COMPARE_BETTER, COMPARE_WORSE, COMPARE_FAILED };
const char *compare_word(enum compared verdict);

/* A problem that both answer, with different params. */
struct compare_row {
    struct q_problem problem;
    const struct record *own, *other;
    enum compared verdict;     /* of the other. Same: they give the same object; failed: why */
    double own_us, other_us;   /* at the first size; of a layout, of a request (layouts.h) */
    double gain;               /* what the other one saves of the own one's time, over all sizes as race.h weighs them; the times are the first's */
    double band;               /* farther apart than that they are apart: RACE_TIE and what the duel's own noise may add (two standard errors) */
    int turns;
    char why[512];
};

struct compare_result {
    int same;                  /* the same params, or the same object */
    int within, better, worse, failed;
    int missing;               /* the other set alone has a winner */
    int unasked;               /* the store alone has one */
    int stale;                 /* of other templates than this version's */
    int apart;                 /* of other numerics, or a card's ceilings */
};

/* row: called for each row when it is known. Q_EMISS: the sets have no problem in common. */
int compare_sets(struct proving *p, const struct card_lines *other, const char *where, void (*row)(void *arg, const struct compare_row *r), void *arg,
                 struct compare_result *result, struct q_err *e);

#endif
