/* `quarry VERB ...`: finds the verb's function, or starts the sibling program `quarry-VERB`, as git does. */
#include "cli.h"
#include "cmd.h"
#include "option_words.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct verb {
    const char *name;
    int (*run)(int, char **);   /* NULL: the program quarry-NAME */
    const char *what;
} verbs[] = {
    { "run", cmd_run, "answer a prompt" },
    { "chat", cmd_chat, "talk with a model in the terminal" },
    { "show", cmd_show, "what is in a model file, and the memory it needs" },
    { "eval", cmd_eval, "perplexity, logits, divergence from a reference" },
    { "bench", cmd_bench, "prefill and decode speed at depths" },
    { "doctor", cmd_doctor, "what cards there are, and what to do about them" },
    { "serve", NULL, "answer programs over HTTP" },
    { "tune", NULL, "measure and keep the fastest kernels" },
    { "gen", NULL, "print a kernel" },
};

static void usage(FILE *f)
{
    fprintf(f, "usage: quarry VERB [options]\n\n");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) fprintf(f, "  %-8s %s\n", verbs[i].name, verbs[i].what);
    fprintf(f, "\n`quarry VERB --help` tells more. A verb that is not here starts the program quarry-VERB.\n"
               "`quarry --version` prints the version.\n");
}

/* Starts DIR_OF_THIS_PROGRAM/quarry-VERB, or else quarry-VERB on the PATH, under its own name. Returns only when there is none. */
static void start_sibling(const char *verb, char **argv)
{
    char self[PATH_MAX], path[PATH_MAX + 280];
    char name[280];
    snprintf(name, sizeof name, "quarry-%.256s", verb);
    argv[0] = name;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = 0;
        char *slash = strrchr(self, '/');
        if (slash) *slash = 0;
        snprintf(path, sizeof path, "%s/%s", self, name);
        execv(path, argv);
    }
    execvp(name, argv);
}

/* A verb is a word: nothing that could name a file elsewhere. */
static int is_word(const char *s)
{
    return *s && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(s) && *s != '-' && strlen(s) < 64;
}

/* What a verb is called by llama.cpp's programs and others, or the nearest; NULL: none is meant. */
static const char *meant_verb(const char *word)
{
    static const struct {
        const char *theirs, *ours;
    } known[] = {{"server", "serve"}, {"llama-server", "serve"}, {"cli", "run"}, {"llama-cli", "run"}, {"completion", "run"}, {"generate", "run"},
                 {"llama-bench", "bench"}, {"batched-bench", "bench"}, {"perplexity", "eval"}, {"llama-perplexity", "eval"}, {"info", "show"},
                 {"gguf-dump", "show"}};
    struct near n;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(word, known[i].theirs)) return known[i].ours;
    near_start(&n, word);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) near_try(&n, verbs[i].name);
    return n.best;
}

/* Runs a verb under the name by which its own errors begin. Results that could not be written are a failure. */
static int run_verb(const struct verb *v, int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof name, "quarry %s", v->name);
    argv[0] = name;
    int rc = v->run(argc, argv);
    if (rc || (!fflush(stdout) && !ferror(stdout))) return rc;
    fprintf(stderr, "%s: could not write the result\n", name);
    return 1;
}

const char *cmd_api_key(void) { return getenv("QUARRY_API_KEY"); }

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN);   /* a file that grows too large is an error of write, not the end */
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    const char *verb = argv[1];
    if (!strcmp(verb, "--version")) {
        cli_version();
        return 0;
    }
    if (!strcmp(verb, "help") && argc > 2) {      /* `quarry help VERB` is `quarry VERB --help` */
        static char option[] = "--help";
        argv[1] = argv[2];
        argv[2] = option;
        argc = 3;
        argv[3] = NULL;
        verb = argv[1];
    } else if (!strcmp(verb, "--help") || !strcmp(verb, "-h") || !strcmp(verb, "help")) {
        usage(stdout);
        return 0;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (verbs[i].run && !strcmp(verb, verbs[i].name)) return run_verb(&verbs[i], argc - 1, argv + 1);
    if (is_word(verb)) start_sibling(verb, argv + 1);
    const char *meant = meant_verb(verb);
    fprintf(stderr, "quarry: no verb '%.64s', and no program quarry-%.64s beside this one or on the PATH%s%s%s (`quarry --help` lists the verbs)\n",
            verb, verb, meant ? "; is '" : "", meant ? meant : "", meant ? "' meant?" : "");
    return 2;
}
