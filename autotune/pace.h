/* How fast the processors are just now: a loop of fixed work, beside nothing else, on every member of a team at once.
 *
 * A virtual machine shares its cores with others: while one of them uses a core's other thread, all work on it takes a quarter to two thirds longer,
 * for seconds or minutes, and no clock of this machine tells. The loop keeps the vector units as busy as kernels do, so it takes longer too. What it
 * takes says nothing by itself: the least of many on the same machine is its own pace. Of memory that others use it knows nothing. */
#ifndef Q_PACE_H
#define Q_PACE_H

struct q_team;

/* Microseconds (about twenty) of the slowest of the first `parts` members. */
double pace_us(struct q_team *team, int parts);

#endif
