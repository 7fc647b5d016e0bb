/* What the verbs of `quarry` share: options that open an engine, reading a prompt, and how facts and errors are shown.
 * Results go to stdout; facts ("# ..."), progress and errors to stderr. */
#ifndef Q_CLI_H
#define Q_CLI_H

#include "engine.h"
#include <getopt.h>

enum { CLI_GIVEN = 256 };

struct q_cli {
    const char *verb;
    struct q_engine_opts engine;
    int quiet;                 /* no facts */
    const char *repeats;       /* "--NAME" of an option whose values all count, or NULL */
    struct cli_given {
        const char *first, *last;   /* values; NULL: not given */
    } given[CLI_GIVEN];        /* by place_of of cli.c */
    char program_dir[4096];
};

/* long options every engine verb has; their values are above any character */
enum { CLI_WRONG = '?', CLI_NUMERICS = 256, CLI_DEVICE, CLI_DEBUG, CLI_TUNES, CLI_PRESET, CLI_TYPE, CLI_KV_K, CLI_KV_V, CLI_ROPE, CLI_YARN_FACTOR,
       CLI_YARN_ORIGINAL, CLI_SPARSE, CLI_VERSION, CLI_HELP, CLI_OWN };
#define CLI_SHORT ":m:t:c:qh"   /* ':' first: getopt says nothing itself, cli_next does */
#define CLI_LONG                                                                                                                   \
    {"model", 1, 0, 'm'}, {"threads", 1, 0, 't'}, {"ctx", 1, 0, 'c'}, {"quiet", 0, 0, 'q'}, {"numerics", 1, 0, CLI_NUMERICS},       \
        {"device", 1, 0, CLI_DEVICE}, {"debug", 1, 0, CLI_DEBUG}, {"tunes", 1, 0, CLI_TUNES}, {"preset", 1, 0, CLI_PRESET},         \
        {"type", 1, 0, CLI_TYPE}, {"kv-k", 1, 0, CLI_KV_K}, {"kv-v", 1, 0, CLI_KV_V}, {"rope-scaling", 1, 0, CLI_ROPE},             \
        {"yarn-factor", 1, 0, CLI_YARN_FACTOR}, {"yarn-orig-ctx", 1, 0, CLI_YARN_ORIGINAL}, {"sparse-prefill", 1, 0, CLI_SPARSE},    \
        {"version", 0, 0, CLI_VERSION},                                                                                            \
        {"help", 0, 0, CLI_HELP}
extern const char cli_engine_help[];

/* Fills defaults; errors and facts name `verb`. */
void cli_start(struct q_cli *c, const char *verb);
/* Takes an option of CLI_SHORT or CLI_LONG; 0, or -1 after a line on stderr when its value makes no sense. */
int cli_option(struct q_cli *c, int opt, const char *value);
/* A whole number in [lo, hi]; 0, or -1 after a line on stderr. */
int cli_int(const struct q_cli *c, const char *name, const char *value, long lo, long hi, long *out);
/* As cli_int, of tokens: also 256K, which is 262144, and 1M. */
int cli_tokens(const struct q_cli *c, const char *name, const char *value, long lo, long hi, long *out);
/* "8GiB", "512MiB", 0, a whole number of bytes from 1 MiB; as cli_int. */
int cli_bytes(const struct q_cli *c, const char *name, const char *value, size_t *out);
int cli_float(const struct q_cli *c, const char *name, const char *value, double *out);
/* For verbs that read text: a file has a tokenizer, a preset has none. 0, or the exit status 2 after a line. */
int cli_needs_file(const struct q_cli *c);
/* Prints "quarry VERB: text" and returns the exit status 1. */
int cli_fail(const struct q_cli *c, const struct q_err *e);
/* "quarry VERB: " and the line; returns the exit status 2. */
int cli_usage(const struct q_cli *c, const char *line);
/* The line about a word that belongs to no option, which ends in `hint` ("" for none); returns the exit status 2. */
int cli_stray(const struct q_cli *c, const char *word, const char *hint);
/* As getopt_long, but what is wrong with the next word is told on stderr, and CLI_WRONG returned. Of an option given twice the last value counts,
 * as with llama.cpp, so that a script's options can be overruled; at the end a fact tells it. */
int cli_next(struct q_cli *c, int argc, char **argv, const char *shorts, const struct option *longs);
void cli_version(void);
void cli_fact(const struct q_cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A whole text file ("-": standard input) into malloc'd memory with a NUL behind it, without a byte order mark. */
int cli_read_file(const char *path, char **text, size_t *n, struct q_err *e);
/* The bytes of a byte order mark that a text begins with, as editors of Windows write it: 3, or 0. */
size_t cli_bom(const char *text, size_t n);
/* Whether the engine's plan of memory was kept to; nothing where its device does not tell. After a step, for a card's driver takes some at the
 * first. */
void cli_memory(const struct q_cli *c, const struct q_engine *en);
/* "1 thread", "2 threads". */
static inline const char *cli_s(long n) { return n == 1 ? "" : "s"; }

#endif
