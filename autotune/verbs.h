/* The verbs of quarry-tune: a table, and a file verb_NAME.c for each.
 *
 * A verb gets options that were read and checked as its row says, and answers 0, an error code with its line in *e, or
 * VERB_INTERRUPTED. It prints results on stdout, facts and progress on stderr. */
#ifndef Q_VERBS_H
#define Q_VERBS_H

#include "build.h"
#include "options.h"
#include "runtime/store.h"
#include "target.h"
#include <cjson/cJSON.h>

enum { VERB_INTERRUPTED = -1 };   /* exit status 130 */

/* What a verb needs of the command line. */
enum verb_needs {
    VERB_MODEL = 1,      /* one of -m FILE and --preset NAME */
    VERB_CARD = 2,       /* options.card: --card, or the device that is here */
    VERB_MEASURES = 4,   /* with an effort but none: the card must be here, and the user's own cache is used */
    VERB_OUTPUT = 8,     /* takes -o FILE, --sign and --binaries */
    VERB_MODEL_TOO = 16, /* one of -m and --preset may be there */
    VERB_HERE = 32,      /* the card is here: no --card */
    VERB_KEYS = 64,      /* takes --new FILE or --remove KEY instead of its words */
    VERB_STOPS = 128,    /* puts away what it has begun when it is interrupted (verb_catch_signals) */
};

struct verb {
    const char *name;
    int needs;                       /* of enum verb_needs */
    int least_args, most_args;       /* words after the verb */
    const char *args;                /* how --help and errors call them, "" */
    int (*run)(const struct options *o, struct q_err *e);
};

/* NULL if unknown. */
const struct verb *verb_find(const char *name);
/* "tune, list, ..." for errors. */
void verb_names(char *dst, size_t cap);
/* "; is 'list' meant?" where a verb's name is near, else ""; text. */
const char *verb_near(const char *word, char text[60]);

int verb_tune(const struct options *o, struct q_err *e);
int verb_plan(const struct options *o, struct q_err *e);
int verb_explain(const struct options *o, struct q_err *e);
int verb_verify(const struct options *o, struct q_err *e);
int verb_compare(const struct options *o, struct q_err *e);
int verb_list(const struct options *o, struct q_err *e);
int verb_export(const struct options *o, struct q_err *e);
int verb_build(const struct options *o, struct q_err *e);
int verb_import(const struct options *o, struct q_err *e);
int verb_trust(const struct options *o, struct q_err *e);
int verb_contribute(const struct options *o, struct q_err *e);
int verb_admit(const struct options *o, struct q_err *e);

/* --- verb_common.c: what verbs share --- */

/* A line on stderr under the program's name; `say` of store_opts and defaults_make. */
void verb_say(void *arg, const char *line);
/* The store of --tunes and --cache. */
int verb_store(const struct options *o, struct store **s, struct q_err *e);
/* What the options are about, its model not opened yet. */
struct target verb_target(const struct options *o);
/* One line on stdout. */
int verb_print_json(const cJSON *o, struct q_err *e);
/* `progress` of build_opts: a line every few seconds, since a large model's set takes a minute. arg: a double, when the last one was. */
void verb_built(void *arg, int done, int n);
/* -j, or one compiler a CPU. */
int verb_jobs(const struct options *o);
/* Blocks the signals of an interrupt, or lets them end the program as usual. To be held before a driver is asked: its threads inherit
 * what is blocked then, and one that blocks nothing would take a signal that the others wait for. */
void verb_hold_signals(int hold);
/* Whether a visited record is a file of its own, not a line of those that ship, and a winner that travels: ceilings are of the one card. */
int verb_is_own(const struct record *r, const char *path);
/* From here on interrupts are something to poll, so that a build can put away what it has begun. Returns a descriptor that is readable
 * when the user wants to stop; the caller closes it. */
int verb_catch_signals(void);
int verb_interrupted(int signal_fd);

#endif
