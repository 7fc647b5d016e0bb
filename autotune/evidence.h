/* What the journal holds of the latest search for some problems: its space, its candidates with their samples or what was wrong with them, the
 * duel. Nothing is judged here, and what is not there is left empty: a journal is bounded, and may be gone. */
#ifndef Q_EVIDENCE_H
#define Q_EVIDENCE_H

#include "journal.h"
#include "runtime/record.h"
#include "space.h"

enum { EVIDENCE_SIZES = 4, EVIDENCE_SAMPLES = 48, EVIDENCE_MOST = 256, EVIDENCE_TIES = 8 };

struct evidence_size {
    int rows, past, n;         /* n samples of the latest race */
    double us[EVIDENCE_SAMPLES];
};

struct evidence_candidate {
    char params[256];
    char bad[320];             /* "hang: did not end within 20 s"; "" */
    int checked;
    int n_sizes;
    struct evidence_size size[EVIDENCE_SIZES];   /* as they were first timed */
};

struct evidence {
    int total, legal;          /* of the space; 0: no search is written down */
    struct { char text[96]; int n; } reason[SPACE_REASONS];
    int n_reasons;
    struct evidence_candidate **c;   /* owned: [n] */
    int n;
    int won, accepted;         /* won: the search came to its end, and: */
    double gain, band;
    struct record_time base[RECORD_TIMES];   /* the default params in the search that was won, at each of its sizes */
    int n_base;
    char ties[EVIDENCE_TIES][256];
    int n_ties;
};

/* v: [n], of these keys, which are of one card. *foreign: what was left out of the journal. */
int evidence_read(struct evidence *v, const struct store_key *k, int n, struct journal_foreign *foreign, struct q_err *e);
void evidence_free(struct evidence *v, int n);
/* The middle of its samples at these steps; infinite where it was not timed. */
double evidence_median(const struct evidence_candidate *c, int rows, int past);

#endif
