/* Compiling a kernel to a shared object, once: the object's name is the hash of its text and of the command. */
#include "op_check.h"
#include "tests/simt/simt.h"
#include <sodium.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST_ARGS = 60 };

static const char *const warnings = "-std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-psabi";

static int split(char *text, char **argv, int n)
{
    for (char *p = strtok(text, " "); p && n < MOST_ARGS - 16; p = strtok(NULL, " ")) argv[n++] = p;
    return n;
}

/* Runs argv with its messages into `log`; the exit status, -1 if it could not run. */
static int run(char **argv, const char *log)
{
    posix_spawn_file_actions_t fa;
    pid_t pid;
    int status = -1;
    if (posix_spawn_file_actions_init(&fa)) return -1;
    posix_spawn_file_actions_addopen(&fa, 2, log, 0x241 /* write, create, truncate */, 0644);
    int rc = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    if (rc || waitpid(pid, &status, 0) != pid) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The first line of the compiler's messages that names an error. */
static void first_error(char *line, int cap, const char *log)
{
    FILE *f = fopen(log, "r");
    snprintf(line, (size_t)cap, "no message");
    if (!f) return;
    while (fgets(line, cap, f))
        if (strstr(line, "error")) break;
    line[strcspn(line, "\n")] = 0;
    fclose(f);
}

static int write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f) return -1;
    int bad = fputs(text, f) < 0;
    return fclose(f) || bad;
}

static void object_hash(char hex[65], const char *flags, const char *unit, const char *more)
{
    unsigned char sum[32];
    crypto_hash_sha256_state h;
    crypto_hash_sha256_init(&h);
    crypto_hash_sha256_update(&h, (const unsigned char *)flags, strlen(flags) + 1);
    crypto_hash_sha256_update(&h, (const unsigned char *)unit, strlen(unit) + 1);
    crypto_hash_sha256_update(&h, (const unsigned char *)more, strlen(more));
    crypto_hash_sha256_final(&h, sum);
    sodium_bin2hex(hex, 65, sum, sizeof sum);
}

/* The unit in `source`, a name that messages keep; moved to `path` once it is whole. */
static int compile(const char *path, const char *stem, const char *suffix, const char *unit, char *flags, const char *const *dirs,
                   const char *compiler, struct q_err *e)
{
    char source[4200], part[4200], log[4200], line[400], *argv[MOST_ARGS] = {(char *)compiler};
    snprintf(source, sizeof source, "%s.%d%s", stem, (int)getpid(), suffix);
    snprintf(part, sizeof part, "%s.%d.tmp", stem, (int)getpid());
    snprintf(log, sizeof log, "%s.%d.log", stem, (int)getpid());
    if (write_text(source, unit)) return q_fail(e, Q_EIO, "%s: cannot be written", source);
    int n = split(flags, argv, 1);
    for (; *dirs; dirs++) argv[n++] = "-I", argv[n++] = (char *)*dirs;
    char *rest[] = {"-o", part, source, "-lm", NULL};
    memcpy(argv + n, rest, sizeof rest);
    int rc = run(argv, log);
    if (rc) first_error(line, sizeof line, log);
    unlink(log);
    if (rc) return q_fail(e, Q_EINTERNAL, "does not compile (%s kept): %s", source, line);
    unlink(source);
    return rename(part, path) ? q_fail(e, Q_EIO, "%s: cannot be named", path) : Q_OK;
}

int kernel_build(char path[4096], const struct gen_kernel *k, const struct build_opts *o, struct q_err *e)
{
    static const char *const none[] = {NULL};
    char flags[640], hex[65], stem[4096];
    snprintf(flags, sizeof flags, "%s %s%s", warnings, k->cflags,
             o->sanitize ? " -fsanitize=address -O1 -g -fno-omit-frame-pointer" : "");
    object_hash(hex, flags, k->unit, "");
    snprintf(stem, sizeof stem, "%.3900s/%s", o->cache, hex);
    snprintf(path, 4096, "%.4000s.so", stem);
    return access(path, R_OK) ? compile(path, stem, ".c", k->unit, flags, none, "cc", e) : Q_OK;
}

int kernel_build_simt(char path[4096], const struct gen_kernel *k, const struct build_opts *o, struct q_err *e)
{
    char flags[640], hex[65], stem[4096];
    simt_flags(flags, sizeof flags, atoi(k->arch + 3));
    object_hash(hex, flags, k->unit, o->simt_prelude);
    snprintf(stem, sizeof stem, "%.3900s/%s", o->cache, hex);
    snprintf(path, 4096, "%.4000s.so", stem);
    if (!access(path, R_OK)) return Q_OK;
    char *unit = simt_unit(k->name, k->source, &k->launch);
    int rc = compile(path, stem, ".cc", unit, flags, o->simt_dirs, "g++", e);
    free(unit);
    return rc;
}
