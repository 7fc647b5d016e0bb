/* The gate: a kernel set as a whole against numerics `reference`, before any of its records is written.
 *
 * Texts (gate_texts.h: half of them Korean, three of more than 4,096 tokens) are read and continued greedily by the reference, past any
 * end of turn, as far as the effort's seconds go; then the set reads the same tokens in the same steps. It passes when the mean KLD is at most
 * 1.5 times that of the default params plus 1e-6, and when its first choice is the reference's wherever the reference's margin is
 * above 0.5 (no more exceptions than the default params have). Presets have flat logits: there KLD and cosine decide. Where the
 * reference is too slow or too large for this machine, the default params' set stands in for it, and the summary says so.
 *
 * Engines run in children (gate_worker.c), so that the worst that a set can do is end its child: one that crashes, hangs or breaks the
 * card has failed. A set that fails is searched, by halves, for the winner that is to blame, and then for the next; those problems get their
 * default params back. This process opens no engine and no card.
 *
 * A report of all sets, each position with another first choice included, lies in $XDG_STATE_HOME/quarry/gate/v1/CARD.txt. */
#ifndef Q_GATE_H
#define Q_GATE_H

#include "build.h"
#include "found.h"
#include "progress.h"
#include "runtime/engine.h"
#include "runtime/store.h"
#include "target.h"

struct gate_opts {
    const struct target *t;
    const char *model, *preset, *type;
    const char *tunes;              /* the user's own --tunes, or NULL */
    const char *program;            /* quarry-tune's own path */
    const char *device;             /* as device_open takes it */
    const char *effort;             /* how long the reference may read */
    struct gen *g;                  /* and build, compiler, given: for default kernels, see defaults.h */
    const struct build_opts *build;
    struct compiler *compiler;
    const struct compiler_given *given;
    const struct progress *progress;
};

enum { GATE_SUMMARY = 1024 };
/* Entries of culprits lose `fresh` and get their base record. *summary: one line on what was compared. Q_EINTERNAL: not even the
 * default params pass, nothing may be written. Q_EIO: among others, the user wants to stop ("interrupted"); the list is as it was but for
 * culprits found till then. */
int gate_run(const struct gate_opts *o, struct found_list *l, char *summary, size_t cap, struct q_err *e);

/* The child's whole life (gate_worker.c). Returns its exit status. */
int gate_child(void);

#endif
