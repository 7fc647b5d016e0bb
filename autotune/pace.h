/* How fast the processors are just now: a loop of fixed work, beside nothing else, on every member of a team at once.
 *
 * On a virtual machine all work may take a quarter to two thirds longer for fractions of a second or for minutes, and no clock of that machine tells:
 * its cores' other threads are likely somebody else's. The loop keeps the vector units as busy as kernels do, so it takes longer too. What it takes
 * says nothing by itself: the least of many on the same machine is its own pace. Of memory that others use it knows nothing, nor
 * of programs that take turns with it on its processors: a turn is longer than the loop, and bed_time.c sees that a member was put off. */
#ifndef Q_PACE_H
#define Q_PACE_H

struct q_team;

/* Microseconds (about twenty) of the slowest of the first `parts` members. */
double pace_us(struct q_team *team, int parts);

#endif
