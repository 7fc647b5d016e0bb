/* Kernel units to objects, shared ones or cubins: a few compilers at a time, each killable, each result checked before it enters the store.
 *
 * A unit is written, compiled and, by a child, opened in a private directory on the store's disk; only a whole object is moved to its place. An
 * interrupt or a failure leaves what is finished, and nothing half-written. Compilers' temporary files lie there too, and go with it.
 *
 * A compiler that hangs is waited for no longer than it takes to tell that from work: a unit has 20 times as long as the slowest before it, from
 * 10 s up to the deadline; once one was late it is five times. Where nothing was ever built, it is the deadline and then a third of it, and
 * three late ones end the build with a line. */
#ifndef Q_BUILD_H
#define Q_BUILD_H

#include "compiler.h"
#include "gen/gen.h"
#include "runtime/record.h"
#include "runtime/store.h"

struct build_task {
    const struct gen_kernel *kernel;   /* in, borrowed */
    /* out */
    struct record_object object;
    int rc;                      /* Q_OK: it is in the store */
    char why[512];               /* else one line */
};

/* How a compiler does, over all builds of a program. */
struct build_pace {
    double slowest;              /* seconds that a unit took, 0: none is built */
    int late;                    /* units that did not end in time */
};

struct build_opts {
    struct store *store;
    const struct compiler *compiler;
    int jobs;                    /* compilers at a time */
    int deadline_s;              /* for one unit, at most; build.c says when less is enough */
    struct build_pace *pace;     /* zeroed before the first build; NULL: of this one alone */
    int signal_fd;               /* readable when the user wants to stop; -1: none */
    void (*progress)(void *arg, int done, int n);   /* after each unit; may be NULL */
    void *progress_arg;
};

/* "x86_64": what shared objects are built for. */
const char *build_arch(void);
/* A task with its `object` filled but for what building tells (content, size, registers): what the object will be called. */
struct build_task build_task_of(const struct gen_kernel *k, const struct compiler *compiler);
/* Builds all tasks (named already); an object that several ask for, as winners of two buckets do, is built once. An error of one unit is its own; an error here (interrupt, full disk) ends the rest. */
int build_all(const struct build_opts *o, struct build_task *tasks, int n, struct q_err *e);

/* The child that opens a built object, `quarry-tune --open OBJECT KERNEL`: its exit status, the reason on stdout. */
int build_open_child(const char *object, const char *kernel);

#endif
