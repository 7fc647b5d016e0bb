/* Measuring: what the tuner asks of the machine, as a table of functions, so that its logic is tested with a table that replays.
 *
 * measure_open fills the table with one killable child (`quarry-tune --measure`) that holds the cases of problems, loads
 * candidates into itself, checks them and times them with a team as large as the model will run with, or on a card. A candidate that crashes the
 * child, or takes longer than its deadline (50 times what the slot's first candidate took to be checked, at least 5 s, at most 20), fails
 * alone: the child is started again and given the problems anew.
 */
#ifndef Q_MEASURE_H
#define Q_MEASURE_H

#include "runtime/err.h"
#include "runtime/launch.h"
#include "runtime/record.h"

enum { MEASURE_SIZES = 4, MEASURE_SLOTS = 8 };

/* Rows of a step over `seqs` sequences with `past` KV tokens before it. */
struct measure_size {
    int rows, seqs, past;
};

struct measure_problem {
    const char *ref, *shape;                     /* whose ref.c, which shape */
    struct measure_size check[2];                /* one case each, with a seed of its own */
    struct measure_size time[MEASURE_SIZES];
    int n_time;
    long cold_bytes;                             /* calls walk a ring of cases of at least this much memory */
};

/* A built candidate. */
struct watched;
struct measure_kernel {
    const char *object, *symbol;
    struct q_phases launch;                      /* n = 0 on a CPU */
    const char *numerics;                        /* its class: what a check accepts; not needed to time it */
    struct watched *who;                         /* as the journal knows it (watch.h); NULL: nothing is written down about it */
};

/* Problems are held in slots, so that kernels of different problems (weight layouts) can be timed turn by turn. */
struct measurer {
    void *arg;
    /* Has cases and truths of a slot made, whatever it held; they may be still in the making when this returns. */
    int (*problem)(void *arg, int slot, const struct measure_problem *p, struct q_err *e);
    /* Waits until they are made. */
    int (*ready)(void *arg, struct q_err *e);
    /* Ten times on both cases, whose outputs begin as NaN: within tolerance of ref.c, canaries and inputs intact, the same bytes each time.
     * hash: of the outputs. Q_EINTERNAL: this candidate is bad, the line says why; any other code ends the tune. */
    int (*check)(void *arg, int slot, const struct measure_kernel *k, char hash[17], struct q_err *e);
    /* n samples in microseconds a call at time[size]. Errors as check's. */
    int (*time)(void *arg, int slot, const struct measure_kernel *k, int size, int n, double *us, struct q_err *e);
    /* Gives memory back: a slot's truths (it can be timed still, not checked), or all of it. */
    int (*drop)(void *arg, int slot, int all, struct q_err *e);
    /* What the last Q_EINTERNAL of check or time was, in the journal's words, or "killed": by nobody of ours. NULL: not told. */
    const char *(*kind)(void *arg);
    /* The card's state at the last samples, which were taken anew where heat or a brake slowed them. NULL: not told. */
    const struct record_clocks *(*clocks)(void *arg);
    /* What pace.h's loop took before and after the last samples, on the mean; 0: not told. */
    double (*pace)(void *arg);
};

struct measure;
/* program: quarry-tune's own path. where: a number of threads, or a card ("cuda:0"). signal_fd: readable when the user wants to stop (then Q_EIO,
 * "interrupted"); -1: none. */
int measure_open(struct measure **m, const char *program, const char *where, int signal_fd, struct q_err *e);
void measure_close(struct measure *m);
struct measurer measure_table(struct measure *m);

/* The child's whole life: requests on stdin, answers on stdout, one line of JSON each (worker.c). Returns its exit status. */
int measure_child(const char *where);
/* The launch of a request; non-zero when it is none. */
struct cJSON;
int measure_launch(const struct cJSON *list, struct q_phases *launch);

#endif
