/* One sample of a kernel's time that a pause of the machine cannot spoil: several short parts, of which the disturbed ones are taken again and
 * the lower quartile counts. Pure logic over a source of parts; no clock of its own.
 *
 * A pause (another program's turn, an interrupt, a hypervisor) lasts as long as thousands of calls of a small kernel. In one long sample it
 * decides; in one of five parts it is that part's matter. A source that can tell says so itself (a member was put off its CPU). What it
 * cannot see still has to meet four parts of five before it shows. Long calls are parts of their own, and fewer: a pause weighs less there.
 *
 * A card's samples are timed by its own events and made of one part, of calls for about 1 ms (bed_time.c). */
#ifndef Q_SAMPLE_H
#define Q_SAMPLE_H

#include "runtime/err.h"

enum { SAMPLE_PARTS = 5, SAMPLE_MOST = 3 * SAMPLE_PARTS };
#define SAMPLE_PART_US 100.0

/* One part: microseconds a call, and whether it is known to be disturbed. Errors end the sample. */
typedef int (*sample_part)(void *arg, double *us, int *disturbed, struct q_err *e);

/* Parts for a call that takes `us`. */
int sample_parts(double us, int on_card);
/* About how long a sample takes, its warming up and the talk about it included, in microseconds. */
double sample_cost(double us, int on_card);
/* The lower quartile of v[0..n): what a machine that others use shows of a kernel's own time, and not of its luckiest moment. n = 0: infinite. */
double sample_low(const double *v, int n);
/* `parts` undisturbed ones, or what three times as many tries give: where all are disturbed, those count. */
int sample_take(sample_part take, void *arg, int parts, double *us, struct q_err *e);

#endif
