#define _GNU_SOURCE
#include "kset_child.h"
#include "device.h"
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MAX_ARGS = 32 };

static void add_option(char **argv, int *n, const char *name, const char *value)
{
    if (!value || *n + 3 > MAX_ARGS) return;
    argv[(*n)++] = (char *)name;
    argv[(*n)++] = (char *)value;
    argv[*n] = NULL;
}

static void fill_args(char **argv, const struct kset_opts *o, const char *cache)
{
    int n = 1;
    argv[0] = "quarry-tune";
    add_option(argv, &n, "--effort", "none");
    add_option(argv, &n, "-m", o->model_arg);
    add_option(argv, &n, "--preset", o->preset_arg);
    if (o->preset_arg) add_option(argv, &n, "--type", o->preset_format);
    add_option(argv, &n, "--card", o->device->card.key);
    add_option(argv, &n, "--numerics", q_numerics_name(o->numerics));
    add_option(argv, &n, "--kv-k", o->kv_k);
    add_option(argv, &n, "--kv-v", o->kv_v);
    add_option(argv, &n, "--sparse-prefill", o->sparse ? "0.99" : NULL);   /* any share: it takes the same kernels */
    add_option(argv, &n, "--tunes", o->tunes);
    add_option(argv, &n, "--cache", cache);
}

/* stderr to the pipe, stdin and stdout to nothing, signals as a fresh program has them. */
static int start(pid_t *pid, const char *program, char **argv, int pipe_end)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none;
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&fa)) return ENOMEM;
    if (posix_spawnattr_init(&at)) {
        posix_spawn_file_actions_destroy(&fa);
        return ENOMEM;
    }
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, pipe_end, 2);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK);
    int failed = posix_spawn(pid, program, &fa, &at, argv, environ);
    posix_spawnattr_destroy(&at);
    posix_spawn_file_actions_destroy(&fa);
    return failed;
}

/* Lines of the child. The last one is held back: it is a fact when the child succeeds and the reason when it fails. */
struct lines {
    const struct kset_opts *o;
    char held[1024], line[1024];
    size_t n;
};

static void say_held(struct lines *l)
{
    if (l->held[0] && l->o->say) l->o->say(l->o->say_arg, l->held);
    l->held[0] = 0;
}

static void take_char(struct lines *l, char c)
{
    if (c != '\n') {
        if (l->n + 1 < sizeof l->line) l->line[l->n++] = c;
        return;
    }
    l->line[l->n] = 0;
    l->n = 0;
    if (!l->line[0]) return;
    say_held(l);
    strcpy(l->held, l->line);
}

static void pass_lines(struct lines *l, int fd)
{
    char buf[4096];
    for (;;) {
        ssize_t n = read(fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        for (ssize_t i = 0; i < n; i++) take_char(l, buf[i]);
    }
    take_char(l, '\n');
}

/* A child's reason without its own name in front. */
static const char *reason(const char *line)
{
    static const char prefix[] = "quarry-tune: ";
    return strncmp(line, prefix, sizeof prefix - 1) ? line : line + sizeof prefix - 1;
}

static int finish(struct lines *l, pid_t pid, struct q_err *e)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return q_fail(e, Q_EIO, "quarry-tune: cannot wait for it: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        say_held(l);
        return Q_OK;
    }
    if (WIFSIGNALED(status)) return q_fail(e, Q_EIO, "quarry-tune was ended by signal %d", WTERMSIG(status));
    return q_fail(e, Q_EIO, "%.900s", l->held[0] ? reason(l->held) : "quarry-tune failed without a word");
}

int kset_run_tuner(const struct kset_opts *o, const char *cache, struct q_err *e)
{
    char program[Q_PATH], *argv[MAX_ARGS];
    int fd[2];
    pid_t pid;
    struct lines l = { .o = o };
    if (!o->model_arg && !o->preset_arg) return q_fail(e, Q_EMISS, "quarry-tune needs a model file or a preset, and this model is neither");
    int r = path_join(program, e, o->program_dir ? o->program_dir : ".", "quarry-tune", NULL);
    if (r) return r;
    if (pipe2(fd, O_CLOEXEC)) return q_fail(e, Q_EIO, "quarry-tune: no pipe: %s", strerror(errno));
    fill_args(argv, o, cache);
    int failed = start(&pid, program, argv, fd[1]);
    close(fd[1]);
    if (!failed) pass_lines(&l, fd[0]);
    close(fd[0]);
    if (failed) return q_fail(e, Q_EIO, "%s: cannot start it: %s", program, strerror(failed));
    return finish(&l, pid, e);
}
