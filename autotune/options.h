/* The command line of quarry-tune. */
#ifndef Q_OPTIONS_H
#define Q_OPTIONS_H

#include "compiler.h"
#include "runtime/card.h"
#include "runtime/kset.h"
#include <stdio.h>

struct verb;
struct options {
    const struct verb *verb;
    char **args;                     /* words after the verb */
    int n_args;
    const char *effort;              /* none, quick or normal */
    const char *model, *preset, *type;
    const char *device;              /* --device: "auto", "cpu", "cuda", "cuda:N" */
    struct q_card card;              /* --card, or the device's, a CPU's with -t threads */
    enum q_numerics numerics;
    const char *kv_k, *kv_v;
    int sparse;                     /* --sparse-prefill */
    const char *tunes, *cache, *generator;
    const char *output;              /* -o FILE, of verbs that write one */
    struct compiler_given given;     /* --cc, --nvrtc */
    int jobs;                        /* 0: one a CPU */
    int json, measured, table, again;
    int threads;                     /* -t, 0: not given */
    const char *sign;                /* --sign KEYFILE */
    const char *new_key, *remove;    /* trust --new FILE, --remove KEY */
    int binaries;                    /* --binaries */
    int roofs;                       /* --roofs, for `quarry doctor`: only the ceilings of the card are measured and recorded */
    int done;                        /* --help or --version was answered */
};

/* Q_EINPUT with one line on wrong usage. */
int options_read(struct options *o, int argc, char **argv, struct q_err *e);

#endif
