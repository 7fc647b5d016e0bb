/* Inside a contest: shared by contest.c, which runs it, contest_race.c, which finds its best, contest_again.c, which looks at recorded params,
 * contest_heats.c, which tries all there is, and contest_record.c, which tells of it. */
#ifndef Q_CONTEST_IMPL_H
#define Q_CONTEST_IMPL_H

#include "contest.h"
#include "sizes.h"
#include "watch.h"

struct candidate {
    struct gen_kernel k;           /* owned texts */
    struct build_task task;
    struct watched who;
    char path[Q_PATH];
    int usable;                    /* built, unlike those before it, and found right */
    int stepped;                   /* its neighbours were tried */
};

struct contest {
    const struct contest_env *env;
    const struct q_problem *p;
    struct store_key key;
    char generator[65];
    struct space space;
    struct sizes sizes;
    struct candidate *c;           /* owned: [RACE_MOST] */
    struct racer *r;               /* owned: [RACE_MOST], as c */
    int n;
    struct race race;
    const char *held;              /* params that win every tie; NULL: none */
    struct outcome *out;
};

/* --- contest.c --- */

/* One more candidate; those of a class that the numerics do not admit are left out, and so are bad ones. params NULL: the default. */
int contest_add(struct contest *t, const char *params, struct q_err *e);
int contest_open(struct contest *t, const struct contest_env *env, const struct q_problem *p, struct outcome *out, struct q_err *e);
/* Also after contest_open failed. */
void contest_close(struct contest *t);
/* What the last race told becomes the outcome. */
void contest_conclude(struct contest *t, const struct final *f);
/* From the first candidates to those that are right: problem made, all built and checked. */
int contest_ready(struct contest *t, struct q_err *e);
/* Candidate i is out, and the outcome tells of the first that was. */
void contest_fail(struct contest *t, int i, const char *why);
/* Builds and checks candidates from `from` on, races them against the default and candidate *best, which becomes the winner. */
int contest_heat(struct contest *t, int from, int *best, struct q_err *e);

/* --- contest_race.c --- */

/* Races the default, candidate `champion` and those from `from` on; *best: the one with the least score. */
int contest_race(struct contest *t, int champion, int from, int *best, struct q_err *e);
/* Neighbours of the best, at most `climbs` times, where space is left for them. */
int contest_climb(struct contest *t, int climbs, int *best, struct q_err *e);
/* The last race, by race_final, of all that are close to the best; f's indices are candidates'. A brief contest has none, nor has one without others:
 * then best is the choice. */
int contest_finish(struct contest *t, int best, struct final *f, struct q_err *e);
/* The same of all that are usable, where no race was before: of the default alone too. */
int contest_finish_all(struct contest *t, struct final *f, struct q_err *e);

/* --- contest_heats.c --- */

/* Heat by heat every legal candidate that was not tried yet. */
int contest_try_rest(struct contest *t, int *best, struct q_err *e);

/* --- contest_record.c --- */

/* Candidate i as a record, with what the race told of it. */
void contest_record(struct record *r, const struct contest *t, int i);
/* Others that were as good as the winner, as far as the last race can tell. */
void contest_note_ties(struct contest *t, int best);
/* The space, to the journal. */
void contest_tell_space(const struct contest *t);

#endif
