/* A team of threads that runs one job after another: every member calls the job with its own `struct team`, members meet at barriers.
 *
 * The caller of team_run is member 0; the others spin briefly for work and then sleep, so that a step's kernels follow each other
 * without a system call while an idle engine costs nothing. Where members share a processor (more threads than free ones) they learn to
 * sleep at once: a barrier then costs a change of threads, not a spin. Barriers order memory between members.
 */
#ifndef Q_TEAM_H
#define Q_TEAM_H

#include "err.h"
#include "kernel.h"

struct q_team;
int team_open(struct q_team **t, int parts, struct q_err *e);
void team_close(struct q_team *t);
/* Starts members 1.. on job(arg, member); returns at once. */
void team_start(struct q_team *t, void (*job)(void *arg, struct team *member), void *arg);
/* Runs member 0's part of the started job and returns when all members have finished theirs. */
void team_finish(struct q_team *t);

#endif
