/* One problem from its space to its winner: candidates picked, built, told apart by their objects, checked against ref.c, raced, neighbours of the
 * best tried, a final of all that are close, the default params among them. The measurer and the store do the work; nothing is written here but
 * objects. */
#ifndef Q_CONTEST_H
#define Q_CONTEST_H

#include "build.h"
#include "journal.h"
#include "measure.h"
#include "race.h"
#include "runtime/roof.h"
#include "space.h"
#include "target.h"

/* How much is tried. */
struct effort {
    char name[12];            /* "quick", "normal", "exhaustive" */
    int first, later;         /* candidates of an op's first shape, and of shapes for which winners of others are known: beside these */
    int seeds;                /* how many of these winners at most */
    int layout;               /* candidates of a product under each layout, when layouts are compared */
    int climbs;               /* how often neighbours of the best are tried; on a card at most twice */
    int buckets;              /* whether steps of each bucket get winners of their own; else one winner serves all */
    double budget_us;         /* of measuring, a race */
    int whole;                /* whether all legal candidates are tried, race after race */
    int brief;                /* whether a good one will do: the best of a race, without a final */
};

struct contest_env {
    const struct target *t;
    struct gen *g;
    const struct build_opts *build;
    const struct measurer *m;
    const struct effort *effort;
    struct q_roofs roofs;     /* measured */
    const char *driver;       /* that records name; NULL: none */
    long cold_bytes;
    int slot;                 /* of the measurer; holds the problem when a contest is over */
    struct journal *journal;          /* of what was searched; runs are written down by a watch (watch.h). May be NULL */
    const struct journal_book *book;  /* whose bad candidates are left out. May be NULL */
    struct patience *patience;        /* of all races. May be NULL */
    int *can_build;           /* set when a default was built: from then on one that is not is that problem's own matter */
};

enum { CONTEST_TIES = 8 };

/* Who may be better than the winner where a final told too little of them: on a CPU, which others use too. A card's has none. */
struct rivals {
    int n;
    char params[RACE_RIVALS][256];
    double ahead[RACE_RIVALS];       /* by how much each may be (struct final), the farthest first */
    double pace;                     /* of the final */
};

struct outcome {
    struct record record;     /* the winner, with its evidence */
    struct record base;       /* the default params */
    struct duel duel;         /* of the two */
    char ties[CONTEST_TIES][256];    /* params of others inside the winner's tie band */
    int n_ties;
    struct rivals rivals;
    int total, legal, tried, failed, known_bad;
    char first_failure[512];  /* one line, "" if none failed */
};

/* held: params of the winner that is recorded, which stays unless another gains RACE_STEP over it; NULL: there is none. seeds: params that won for other
 * shapes of the op. most: candidates beside neighbours. Q_EINTERNAL and Q_EUNSUP: this problem cannot
 * be tuned (its default fails, say), the line says why; other errors end the tune: Q_EIO also where the compiler fails for the first default. */
int contest_run(const struct contest_env *env, const struct q_problem *p, const char *held, const char (*seeds)[256], int n_seeds, int most, int climbs,
                struct outcome *out, struct q_err *e);

/* Recorded params once more, with this compiler and driver: built, checked, and raced against the default params for as long as the effort's
 * budget says. out->record is theirs whoever wins; *worse: they lose by more than a tie. Q_EINTERNAL: they are wrong;
 * Q_EUNSUP: they cannot be looked at, since the default params fail, say; other errors as contest_run's. */
int contest_again(const struct contest_env *env, const struct q_problem *p, const char *params, struct outcome *out, int *worse, struct q_err *e);

/* The final once more, of the default params and params[0..n) that were built and checked before; held and errors as contest_run's. Those that are wrong
 * this time, or known to be, are counted in *out and out of it. */
int contest_final(const struct contest_env *env, const struct q_problem *p, const char *held, const char (*params)[256], int n, struct outcome *out,
                  struct q_err *e);

/* Two recorded ones against each other in one interleaved duel, both built and checked before. out->duel: what `other` gains over `own`, all zero
 * where both give the same object; out->record is other's, out->base own's, with the duel's times. Errors as contest_again's; Q_EINTERNAL: one of
 * them is wrong. */
int contest_pair(const struct contest_env *env, const struct q_problem *p, const char *own, const char *other, struct outcome *out, struct q_err *e);

/* The params that contest_run would begin with, neighbours excepted, in its order; nothing is built. space: the problem's, opened. params:
 * [RACE_MOST]. *known_bad: how many env->book leaves out. */
int contest_pick(const struct contest_env *env, const struct q_problem *p, const struct space *space, const char (*seeds)[256], int n_seeds, int most,
                 char (*params)[256], int *n, int *known_bad, struct q_err *e);

#endif
