/* A bundle into the store: every record judged before anything is done, every kernel made here (or taken as it is from a trusted key) and
 * tested here before its record is written.
 *
 * Of this machine's card, a winner is then as if it had been measured here. Of another card, winners are kept as data under that card's
 * key: where this card is near it they are borrowed later, and built then. Where no compiler is here and the key is trusted, those whose text
 * is the same for this card are taken for it. What this machine measured itself with as much effort stays.
 *
 * A record that this build would not make the same ends the import before anything is written: such a set is damaged or forged. One of other
 * templates is left out, as is a kernel that fails here. */
#ifndef Q_IMPORT_H
#define Q_IMPORT_H

#include "build.h"
#include "bundle.h"
#include "measure.h"

struct import_opts {
    struct gen *g;
    const struct build_opts *build;      /* with the store, and a compiler whose program is "" where there is none */
    const struct q_card *here;
    const struct measurer *m;            /* of this machine; NULL: nothing can be tested, so nothing is for this card */
    int trusted;                         /* the set is signed by a trusted key: its objects may be used */
    const char *no_compiler;             /* the error's line where kernels must be compiled and nothing compiles */
    int driver;                          /* CUDA version that the driver here speaks, 0: none */
    void (*say)(void *arg, const char *line);
    void *say_arg;
};

struct import_result {
    int records;
    int stale;                   /* of other templates */
    int kept;                    /* this machine has its own */
    int compiled, taken;         /* kernels made here, and taken as they came */
    int tested;                  /* kernels that were right */
    int failed;                  /* left out: not built, or wrong */
    int idle;                    /* another card's, not measured there and not taken for this one */
    int data;                    /* written for another card */
    int written;                 /* for this card */
};

int import_bundle(const struct bundle *b, const struct import_opts *o, struct import_result *result, struct q_err *e);

#endif
