/* The journal of a card's tunes: what was begun, what went wrong, what won; so that no tune, however it ends, is lost.
 *
 *   $XDG_STATE_HOME/quarry/journal/v1/CARD/00000001.jsonl    one file a tune, in the order of their numbers
 *                                          lock              held by the tune that runs, with its process number in it
 *
 * A line is one JSON object, keys sorted, written by one write(). The first is "open" with format, card, boot (which start of the machine)
 * and pid. All others but close and gate name their problem: op, shape, rows, ctx, profile, generator. Of a candidate they
 * name params and object (its name in the store, which hashes text, compiler and flags).
 *
 *   problem  total, legal, reasons [[text,n]..]          the space that was searched
 *   start    what: check or time                          on disk before the card or CPU runs code that has not run there
 *   bad      kind, why                                    never tried again: crash hang wrong unstable canary build died
 *   checked  hash                                         of its outputs
 *   time     size [rows,seqs,past], us [..]               samples
 *   clocks   params, sm_mhz, mem_mhz, watts, celsius, slowed    the card's state behind a candidate's first samples
 *   won      record, base, duel {gain,band,accepted}, ties [params..]     the problem is finished
 *   gate     passed, summary
 *   close    left                                         problems without a record; 0: all that is here was recorded
 *   suspect  why                                          a start that nothing followed, of a session that compaction removed
 *
 * Promises: a line that was told to be kept (start, bad, won, close) has reached the disk when its function returns. A torn or foreign
 * line, a damaged or foreign file is left out and counted, never an error. A journal that cannot be written says so once and is then
 * silent: the tune goes on. One tune a card; the next waits for it.
 *
 * A start that nothing followed, in a session whose writer is gone, took process or machine down. If the machine started anew since, the
 * candidate is bad, kind "died". If not, whoever ended the tune may have meant no candidate: it is bad after JOURNAL_DEATHS such ends with
 * no good run between them, and default params, which run without a tune as well, are not.
 *
 * It does not: hold what is needed to run a model. Without it a tune is only longer. */
#ifndef Q_JOURNAL_H
#define Q_JOURNAL_H

#include "runtime/files.h"
#include "runtime/record.h"
#include "runtime/store.h"

enum { JOURNAL_FORMAT = 1, JOURNAL_DEATHS = 3 };

struct cJSON;
struct journal;     /* NULL is a journal that keeps nothing: all functions take it */

struct journal_opts {
    const char *state;       /* instead of $XDG_STATE_HOME/quarry, or NULL */
    const char *card;
    int signal_fd;           /* readable when the user wants to stop; -1: none */
    void (*say)(void *arg, const char *line);
    void *say_arg;
};

/* Where a card's sessions lie. state as in journal_opts. */
int journal_dir(char dst[Q_PATH], const char *state, const char *card, struct q_err *e);

/* --- journal.c: writing --- */

/* Waits for the tune that holds the card (*waited is set, and it is said once), then begins a session. Errors: no place to write, or
 * Q_EIO, "interrupted". */
int journal_open(struct journal **j, const struct journal_opts *o, int *waited, struct q_err *e);
/* left: problems of this tune that have no record; negative: not known, the session stays open for the next tune. */
void journal_close(struct journal *j, int left);

/* A candidate of a problem; texts borrowed. */
struct journal_candidate {
    const struct store_key *key;
    const char *params, *object;
};
void journal_start(struct journal *j, const struct journal_candidate *c, const char *what);
void journal_bad(struct journal *j, const struct journal_candidate *c, const char *kind, const char *why);
void journal_checked(struct journal *j, const struct journal_candidate *c, const char *hash);
/* size: rows, seqs, past. */
void journal_time(struct journal *j, const struct journal_candidate *c, const int size[3], const double *us, int n);

/* reasons: a JSON list, taken; may be NULL. */
void journal_problem(struct journal *j, const struct store_key *key, int total, int legal, struct cJSON *reasons);
struct journal_won {
    struct record record, base;
    double gain, band;       /* of the duel */
    int accepted;
};
/* ties: params of candidates inside the winner's tie band. */
void journal_won(struct journal *j, const struct journal_won *w, const char *const *ties, int n_ties);
void journal_gate(struct journal *j, int passed, const char *summary);
/* Any other event: `o` is taken, key (may be NULL) and "ev" are added. */
void journal_note(struct journal *j, const char *ev, const struct store_key *key, struct cJSON *o);

/* --- journal_read.c: all that is there --- */

struct journal_event {
    const char *session;     /* its number, as text */
    int alive;               /* its writer runs */
    const char *ev;
    const struct cJSON *o;   /* the whole line */
};
/* What was left out. */
struct journal_foreign {
    int files, lines;
    char first[1200];        /* one line: where and why; "" if nothing */
};
/* Every event of every session in `dir` (journal_dir) that is the card's, oldest first. Non-zero from `visit` stops. No folder, no events. */
int journal_each(const char *dir, const char *card, int (*visit)(void *arg, const struct journal_event *ev), void *arg,
                 struct journal_foreign *foreign, struct q_err *e);
/* The problem of an event, borrowing its texts; non-zero when it names none. card: the caller's. */
int journal_key(const struct cJSON *o, const char *card, struct store_key *k);

/* --- journal_book.c: what a new tune must know of it --- */

struct journal_book;
int book_open(struct journal_book **b, const char *dir, const char *card, struct q_err *e);
void book_close(struct journal_book *b);
/* Why an object must not run again, with its kind in front ("hang: did not end within 20 s"); NULL if it may. proven: that tunes ended while
 * it ran does not count: of default params, with which a model runs even so. b may be NULL. */
const char *book_bad(const struct journal_book *b, const char *object, int proven);
/* The newest finished problem of that key that no record was written of; NULL if there is none. */
const struct journal_won *book_won(const struct journal_book *b, const struct store_key *k);
const struct journal_foreign *book_foreign(const struct journal_book *b);

/* --- journal_compact.c --- */

/* Where more than a few sessions lie, those of ended tunes become one: of each problem the newest that was finished, and all that is bad.
 * Only under the card's lock. A failure changes nothing. */
int journal_compact(const char *dir, const char *card, struct q_err *e);

#endif
