/* The best of several passes of a team, on a machine that others may use too, and whether it is the machine's own.
 *
 * Whatever disturbs a pass makes it slower, so the best one counts. It is sure when a second one was as good and nobody took a member's CPU in
 * either: what others left of the machine is not its ceiling. Passes go on until it is, within bounds. */
#ifndef Q_ROOF_PASSES_H
#define Q_ROOF_PASSES_H

#include "team.h"

enum { ROOF_PASSES_LEAST = 6, ROOF_PASSES_MOST = 24 };

/* Rates of passes so far; zero-initialised. */
struct roof_passes {
    double best;             /* of any */
    double quiet[2];         /* the two best of those in which no member was put off its CPU */
    int n;
};
void roof_pass(struct roof_passes *p, double rate, int put_off);
int roof_is_sure(const struct roof_passes *p);
int roof_is_over(const struct roof_passes *p);

/* Runs `job` on all members until the above says that it is over. work: of one pass of all of them. *rate: work a second. Returns whether it is
 * sure. */
int roof_best(struct q_team *team, void (*job)(void *arg, struct team *member), void *arg, double work, double *rate);

#endif
