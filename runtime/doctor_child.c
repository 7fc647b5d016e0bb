/* What quarry-tune knows: which compiler serves a card, and how fast its units are. */
#define _GNU_SOURCE
#include "ceilings.h"
#include "clock.h"
#include "doctor.h"
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Of the child's two pipes: all of the first, the last line of the second. */
struct capture {
    char *at;
    size_t n, room;
    int lines;               /* 1: only the last line is kept */
};

static void take(struct capture *c, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (c->lines && c->n && c->at[c->n - 1] == '\n') c->n = 0;
        if (c->n + 1 < c->room) c->at[c->n++] = p[i];
    }
    c->at[c->n] = 0;
}

static long now_ms(void) { return (long)(1e3 * clock_s()); }

/* 0 when both pipes have ended, -1 when the time is over. */
static int read_both(const int fd[2], struct capture *c, int seconds)
{
    struct pollfd p[2] = {{fd[0], POLLIN, 0}, {fd[1], POLLIN, 0}};
    long end = now_ms() + 1000L * seconds;
    char buf[4096];
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        long left = end - now_ms();
        if (left <= 0) return -1;
        if (poll(p, 2, (int)left) < 0 && errno != EINTR) return -1;
        for (int i = 0; i < 2; i++) {
            if (p[i].fd < 0 || !p[i].revents) continue;
            ssize_t got = read(p[i].fd, buf, sizeof buf);
            if (got > 0) take(&c[i], buf, (size_t)got);
            else if (!got || errno != EINTR) p[i].fd = -1;
        }
    }
    return 0;
}

static int start(pid_t *pid, const char *program, char **argv, int out, int err)
{
    posix_spawn_file_actions_t fa;
    if (posix_spawn_file_actions_init(&fa)) return ENOMEM;
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, out, 1);
    posix_spawn_file_actions_adddup2(&fa, err, 2);
    int failed = posix_spawn(pid, program, &fa, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    return failed;
}

static int finish(pid_t pid, int late)
{
    int status;
    if (late) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return !late && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A line without its end and without the child's name in front. */
static void tidy(char *line)
{
    static const char name[] = "quarry-tune: ";
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, name, sizeof name - 1)) memmove(line, line + sizeof name - 1, strlen(line + sizeof name - 1) + 1);
}

int doctor_child(const char *program_dir, char **argv, int seconds, char *out, size_t n, char *why, size_t why_n)
{
    char program[Q_PATH];
    int a[2], b[2], failed;
    pid_t pid;
    out[0] = why[0] = 0;
    argv[0] = "quarry-tune";
    if (path_join(program, NULL, program_dir ? program_dir : ".", "quarry-tune", NULL) || pipe2(a, O_CLOEXEC)) return -1;
    if (pipe2(b, O_CLOEXEC)) failed = errno;
    else if ((failed = start(&pid, program, argv, a[1], b[1])) != 0) close(b[0]), close(b[1]);
    close(a[1]);
    if (failed) {
        close(a[0]);
        snprintf(why, why_n, "%.200s: cannot start it: %s", program, strerror(failed));
        return -1;
    }
    close(b[1]);
    struct capture c[2] = {{out, 0, n, 0}, {why, 0, why_n, 1}};
    int late = read_both((const int[]){a[0], b[0]}, c, seconds);
    close(a[0]);
    close(b[0]);
    int status = finish(pid, late);
    if (late) snprintf(why, why_n, "quarry-tune did not answer in %d seconds", seconds);
    tidy(why);
    return status;
}

/* --- what it is asked ----------------------------------------------------------------------------------------------------- */

enum { SOON = 30, MEASURING = 300 };

/* `--nvrtc-report CC VERSION`: a line for each library found, the last one for that which serves; status 1 and a reason where none does. */
static void ask_nvrtc(struct doctor_card *c, int cuda, const struct doctor_places *at)
{
    char cc[16], version[16], out[8192], *argv[] = {NULL, "--nvrtc-report", cc, version, NULL};
    snprintf(cc, sizeof cc, "%d", c->card.cc);
    snprintf(version, sizeof version, "%d", cuda);
    if (doctor_child(at->program_dir, argv, SOON, out, sizeof out, c->nvrtc_problem, sizeof c->nvrtc_problem)) return;
    size_t n = strlen(out);
    while (n && out[n - 1] == '\n') out[--n] = 0;
    const char *last = strrchr(out, '\n');
    snprintf(c->nvrtc, sizeof c->nvrtc, "%.399s", last ? last + 1 : out);
    c->nvrtc_problem[0] = 0;
}

static int read_roofs(struct doctor_card *c, const struct doctor_places *at)
{
    struct store *s;
    struct store_opts o = {.tunes = at->tunes};
    if (store_open(&s, &o, NULL)) return 0;
    int n = ceilings_read(s, c->card.key, &c->roofs);
    store_close(s);
    return n;
}

/* What the store holds of this kind of card; else, or where that is doubtful, measured now and kept there: `--roofs`. */
static void ask_roofs(struct doctor_card *c, const struct doctor_places *at)
{
    char device[16], out[4096], *argv[] = {NULL, "--roofs", "--device", device, at->tunes ? "--tunes" : NULL, (char *)at->tunes, NULL};
    snprintf(device, sizeof device, "cuda:%d", c->index);
    int known = read_roofs(c, at);
    if (known && !c->roofs.doubtful) return;
    if (!known) snprintf(c->roofs_problem, sizeof c->roofs_problem, "not measured yet");
    if (!at->measure) return;
    if (!doctor_child(at->program_dir, argv, MEASURING, out, sizeof out, c->roofs_problem, sizeof c->roofs_problem)) read_roofs(c, at);
    if (c->roofs.read > 0) c->roofs_problem[0] = 0;
}

void doctor_ask_tuner(struct doctor_card *c, int cuda, const struct doctor_places *at)
{
    ask_nvrtc(c, cuda, at);
    if (!c->problem[0]) ask_roofs(c, at);
}
