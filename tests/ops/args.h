/* The command lines of the checking programs (op_check, gpu_check, compile_cuda): options in a table, each with what it takes. A word that
 * is no option, a missing value, a number that is none or out of bounds, an op that is not there: one line that says what was expected and
 * what was found, and Q_EINPUT, which the programs answer with status 2. Texts are checked by whoever knows what they mean. */
#ifndef ARGS_H
#define ARGS_H

#include "gen/gen.h"

enum { ARGS_LIST = 16 };

/* An option that may be given several times. */
struct arg_list {
    const char *v[ARGS_LIST];
    int n;
};

/* I/N: the I-th (from 1) of N parts. */
struct arg_part {
    int i, n;
};

/* What `to` points at: const char *, struct arg_list, int set to 1, int within [min, max], struct arg_part, unsigned long long. */
enum arg_kind { ARG_TEXT, ARG_LIST, ARG_FLAG, ARG_INT, ARG_PART, ARG_SEED };

struct arg {
    const char *name;
    enum arg_kind kind;
    void *to;
    int min, max;
};

/* Fills what the words name and leaves the rest as it is. */
int args_read(const struct arg *all, int n, int argc, char **argv, struct q_err *e);

/* `list` is ops with commas between, NULL for all. Whether each of its words is an op; whether `op` is one of them. */
int args_ops(const char *list, struct gen *g, struct q_err *e);
int args_want(const char *list, const char *op);

#endif
