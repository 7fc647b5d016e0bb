/* What tune.c and tune_layouts.c share: a tune on its way. */
#ifndef Q_TUNE_IMPL_H
#define Q_TUNE_IMPL_H

#include "contest.h"
#include "found.h"
#include "progress.h"
#include "recorded.h"
#include "tune.h"
#include "watch.h"

struct tuner {
    const struct tune_opts *o;
    struct contest_env env;
    struct recorded_query known;
    struct progress progress;
    struct measure *measure;      /* owned, NULL until something must be measured */
    struct watch watch;           /* around the measurer */
    struct measurer table;        /* the watch's */
    struct patience patience;     /* of its races */
    struct journal *journal;      /* owned, NULL until something must be measured, or where none can be written */
    struct journal_book *book;    /* owned, as read when the journal was opened */
    int has_journal;              /* it was asked for */
    int resumed;                  /* problems taken over from it */
    int counted;                  /* the list of problems is known: layouts were chosen */
    int n_problems;               /* of them, to be measured */
    struct found_list found;      /* owned */
    int skipped, recorded, can_build;
    char first_skipped[1024];   /* why */
    char told_why[200];         /* recorded winners are looked at again */
    struct q_err err;             /* of layouts, which are asked for by a callback */
    char layout[24];
};

/* A measured record that this tune could not better: Q_EMISS if there is none. */
int tune_find_recorded(const struct tuner *t, const struct q_problem *p, struct record *r, struct q_err *e);
/* Default kernels, roofs and the child, when the first problem needs them. */
int tune_need_measurer(struct tuner *t, struct q_err *e);
/* Whether an error is about one problem alone. */
int tune_is_local(int rc);
void tune_note_skipped(struct tuner *t, const struct q_err *why);
/* For kset_problems: the layout of a weight, measured if need be; NULL after a failure, which is in t->err. arg: the tuner. */
const char *tune_layout_of(void *arg, const char *type, long n, long k);

/* Measures p and enters what is found; one that cannot be tuned is skipped with a line. */
int tune_problem(struct tuner *t, const struct q_problem *p, struct q_err *e);

/* --- tune_again.c --- */

/* Builds ahead what will be looked at again of the first n problems. */
int tune_prepare_again(struct tuner *t, const struct q_problem_list *l, int n, struct q_err *e);
/* Why a recorded winner is looked at again, or is none: once for all that have the same reason. */
void tune_tell_why(struct tuner *t, const struct q_problem *p, enum recorded state, const char *why);
/* Looks at a recorded winner again: it stays when it is right and no worse than the default params; else p is tuned anew. */
int tune_again(struct tuner *t, const struct q_problem *p, const struct record *old, struct q_err *e);

/* --- tune_twice.c --- */

/* Where a final told too little, winner and rivals meet in another one, minutes later, as many as some seconds allow; errors of one problem leave it as
 * it is. */
int tune_look_twice(struct tuner *t, struct q_err *e);
/* Whose turn it is, where the best pace is `best`: those that were slowed most first. NULL: nobody needs another look, or has had his. */
struct found *tune_next_look(const struct found_list *l, double best);
/* Whether f's final ran while the processors were slower than that. */
int tune_was_slowed(const struct found *f, double best);
/* Another final's outcome becomes f's unless it was slowed more than the one before; in any case where one of them failed, which may be f's winner.
 * Non-zero: it did. */
int tune_take_final(struct found *f, const struct outcome *out);

/* --- tune_resume.c --- */

/* Takes the card for this tune, once; where another holds it, waits. A journal that cannot be had is told, and no error. */
int tune_need_journal(struct tuner *t, struct q_err *e);
/* Non-zero: an earlier tune that did not end has measured p, and *f is what it found. */
int tune_resume(struct tuner *t, const struct q_problem *p, struct found *f);
/* out may be NULL. */
void tune_note_won(struct tuner *t, const struct record *record, const struct record *base, const struct outcome *out);
/* What the gate answered and said, and which winners it took away. */
void tune_note_gate(struct tuner *t, int rc, const char *summary);
/* rc: how the tune ended. Fills o->left. */
void tune_close_journal(struct tuner *t, int rc);

#endif
