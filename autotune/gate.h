/* The gate: a kernel set as a whole against numerics `reference`, before any of its records is written.
 *
 * With a model file: texts (Korean first) are read and continued greedily by the reference, then the set reads the same tokens, prompts
 * in one piece and continuations one by one, so that both forms of every op are met. It passes when the mean KLD is at most
 * 1.5 times that of the default params plus 1e-6, and when its first choice is the reference's wherever the reference's margin is
 * above 0.5 (no more exceptions than the default params have). Presets have flat logits: there KLD alone decides.
 * A set that fails is searched for the op that is to blame; that op gets its default params back. */
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
    const char *program_dir;
    const char *device;             /* as device_open takes it */
    struct gen *g;                  /* and build, compiler, given: for default kernels, see defaults.h */
    const struct build_opts *build;
    struct compiler *compiler;
    const struct compiler_given *given;
    const struct progress *progress;
};

/* Entries of culprits lose `fresh` and get their base record. *summary: one line on what was compared. Q_EINTERNAL: not even the
 * default params pass, nothing may be written. */
int gate_run(const struct gate_opts *o, struct found_list *l, char *summary, size_t cap, struct q_err *e);

/* gate_corpus.c: texts in a fixed order, NULL-terminated. */
extern const char *const gate_corpus[];

#endif
