/* A measurer that keeps the journal: what runs for the first time is written down before, what came of it after. It stands between a
 * contest and the measurer that does the work, and knows kernels that carry a `who`; others it passes on.
 *
 * A measuring child that somebody else killed (the system short of memory, a user) says nothing about the candidate: it is asked once more. */
#ifndef Q_WATCH_H
#define Q_WATCH_H

#include "journal.h"
#include "measure.h"

/* A candidate as the journal knows it. */
struct watched {
    struct journal_candidate c;
    unsigned timed;            /* bit i: it ran at size i */
};

struct watch {
    struct measurer inner;
    struct journal *journal;   /* NULL: none is kept */
    struct measure_size time[MEASURE_SLOTS][MEASURE_SIZES];
};

/* w is borrowed, and lives as long as the table is used. */
struct measurer watch_table(struct watch *w);

#endif
