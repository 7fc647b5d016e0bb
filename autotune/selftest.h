/* A self-test: is what a kernel computes right on this machine? Two cases of its op, held against ref.c, in the measuring child, which a
 * kernel may crash or keep busy without harm. No timing. */
#ifndef Q_SELFTEST_H
#define Q_SELFTEST_H

#include "gen/gen.h"
#include "measure.h"
#include "runtime/card.h"
#include "runtime/record.h"

struct selftest {
    const struct measurer *m;
    struct gen *g;
    const struct q_card *card;             /* this machine's */
    char ref[24], shape[224];              /* of the cases that the child holds: records of one ref and shape stand together */
    struct measure_size check[2];
};

/* Q_EINTERNAL: the kernel is wrong here, the line says how. Other codes end the testing. */
int selftest_run(struct selftest *t, const struct record *r, const char *object, struct q_err *e);

#endif
