/* quarry-tune: makes and lists kernel sets, with default params (effort `none`) or measured ones. `--measure` and
 * `--compile` make it its own measuring and compiling child. */
#define _GNU_SOURCE
#include "defaults.h"
#include "measured.h"
#include "options.h"
#include "target.h"
#include "tune.h"
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum { INTERRUPTED = -1 };   /* exit status 130 */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void say(void *arg, const char *line)
{
    (void)arg;
    fprintf(stderr, "quarry-tune: %s\n", line);
}

static int fail(const struct q_err *e)
{
    say(NULL, e->text);
    return e->code == Q_OK ? 0 : 1;
}

/* Interrupts become something to poll, so that a build can put away what it has begun. */
static int catch_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL)) return -1;
    signal(SIGPIPE, SIG_IGN);   /* whoever reads our lines may go away; the build goes on */
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A line every few seconds: a large model's set takes a minute. */
struct build_progress {
    double last;
};

static void show_progress(void *arg, int done, int n)
{
    struct build_progress *p = arg;
    if (now() - p->last < 5 || done == n) return;
    p->last = now();
    fprintf(stderr, "quarry-tune: built %d of %d kernels\n", done, n);
}

/* --- tune -------------------------------------------------------------------------------------------------------------- */

static int jobs_of(const struct options *o)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return o->jobs ? o->jobs : n > 0 ? (int)n : 1;
}

static void report(const struct defaults_result *r, const struct compiler *compiler, double seconds)
{
    if (r->built) fprintf(stderr, "quarry-tune: built %d kernels (%d cached) in %.1f s with %s\n", r->built, r->cached, seconds, compiler->brief);
    else fprintf(stderr, "quarry-tune: %d kernels, all cached, %.1f s\n", r->kernels, seconds);
}

static int interrupted(int fd)
{
    struct pollfd p = { fd, POLLIN, 0 };
    return poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}

static int measured(const struct options *o, const struct target *t, struct gen *g, const struct build_opts *b, struct compiler *compiler, struct q_err *e)
{
    char program[Q_PATH];
    struct build_opts quiet = *b;
    int r = self_path(program, e);
    if (r) return r;
    quiet.progress = NULL;
    struct tune_opts to = { .t = t, .g = g, .build = &quiet, .compiler = compiler, .given = &o->given, .device = o->device, .effort = o->effort, .model = o->model, .preset = o->preset,
                            .type = o->type, .tunes = o->tunes, .program = program, .progress = stderr, .results = stdout };
    r = o->roofs ? tune_roofs(&to, e) : tune_make(&to, e);
    if (!r || !interrupted(b->signal_fd)) return r;
    q_fail(e, Q_EIO, "interrupted: nothing is recorded; the kernels that were built are kept");
    return INTERRUPTED;
}

static int tune_with(const struct options *o, struct store *s, struct gen *g, struct q_err *e)
{
    struct target t = { .card = o->card, .numerics = o->numerics, .kv_k = o->kv_k, .kv_v = o->kv_v };
    struct compiler compiler = { 0 };
    struct defaults_result result;
    double start = now();
    struct build_progress p = { start };
    struct build_opts b = { .store = s, .compiler = &compiler, .jobs = jobs_of(o), .deadline_s = 60, .signal_fd = catch_signals(),
                            .progress = show_progress, .progress_arg = &p };
    int r = o->roofs ? Q_OK : target_open(&t, o->model, o->preset, o->type, e);
    if (!r && (o->roofs || strcmp(o->effort, "none"))) r = measured(o, &t, g, &b, &compiler, e);
    else if (!r && !(r = defaults_make(&t, g, &b, &compiler, &o->given, say, NULL, &result, e))) report(&result, &compiler, now() - start);
    target_close(&t);
    if (b.signal_fd >= 0) close(b.signal_fd);
    return r;
}

static int tune(const struct options *o, struct store *s, struct q_err *e)
{
    struct gen *g;
    int r = gen_open(&g, o->generator, e);
    if (r) return r;
    r = tune_with(o, s, g, e);
    gen_close(g);
    return r;
}

/* --- list -------------------------------------------------------------------------------------------------------------- */

/* What a winner does, in the units that its roof is in. */
static int table_record(void *arg, const struct record *r, const char *path)
{
    double bytes = 0, ops = 0, us = r->n_times ? r->time[0].median_us : 0;
    (void)arg;
    (void)path;
    if (us <= 0) return 0;
    record_cost(&r->cost, r->time[0].rows, r->time[0].past, &bytes, &ops);
    printf("| %-14s | %-70s | %5d %6d | %9.1f | %8.1f | %8.2f | %5.1f %-5s | %s\n", r->op, r->shape, r->time[0].rows, r->time[0].past, us, bytes / us * 1e-3,
           ops / us * 1e-6, r->roof_pct, r->bound, r->params);
    return 0;
}

static int list_record(void *arg, const struct record *r, const char *path)
{
    const struct options *o = arg;
    (void)path;
    char *line = o->json ? record_print(r) : NULL;
    if (line) fputs(line, stdout);
    else printf("%-8s %-9s %-9s %s %s %s\n", r->origin, r->profile, r->numerics, r->op, r->shape, r->params);
    free(line);
    return 0;
}

static int list(struct options *o, struct store *s, struct q_err *e)
{
    fprintf(stderr, "card %s\n", o->card.key);
    if (o->table) puts("| op             | shape                                                                  |  rows   past |   us/call |     GB/s |    TOP/s | % of roof   | params\n"
                       "|----------------|------------------------------------------------------------------------|-------------:|----------:|---------:|---------:|-------------|-------");
    if (o->measured) return measured_print(stdout, s, o->card.key, e);
    return store_each(s, o->card.key, o->table ? table_record : list_record, o, e);
}

/* --- NVRTC ------------------------------------------------------------------------------------------------------------- */

/* Where pip may have put NVRTC: the user's own packages, the environment in use, those that ./check and ./quickstart make beside this
 * program. */
static void find_places(struct nvrtc_places *p)
{
    static const char *const names[] = { "/venv", "/nvrtc" };
    static char beside[2][Q_PATH + 8];
    p->home = getenv("HOME");
    p->prefix[0] = getenv("VIRTUAL_ENV");
    p->prefix[1] = getenv("CONDA_PREFIX");
    for (int i = 0; i < 2 && !self_path(beside[i], NULL); i++) {
        strcpy(strrchr(beside[i], '/'), names[i]);
        p->prefix[2 + i] = beside[i];
    }
}

/* --compile-ptx UNIT.cu OUT.ptx CC: for tests on a newer card, whose driver compiles the PTX of an older one. */
static int compile_ptx(char **argv)
{
    struct compiler c;
    struct compiler_given given = { 0 };
    struct q_card card = { .kind = Q_CARD_CUDA, .cc = atoi(argv[2]) };
    struct q_err e;
    char arch[40];
    find_places(&given.nvrtc);
    if (compiler_find(&c, &card, &given, &e)) return fail(&e);
    snprintf(arch, sizeof arch, "--gpu-architecture=compute_%d", card.cc);
    char *const options[] = { c.program, argv[0], argv[1], arch, "--fmad=false", "--std=c++17", "--device-as-default-execution-space" };
    return nvrtc_child(7, (char **)options);
}

/* --nvrtc-report CC VERSION, for `quarry doctor`: a line for each library here; the last one is what serves sm_CC under a driver that
 * speaks CUDA VERSION (12090). Status 1 and the reason where none does. */
static int nvrtc_report(char **argv)
{
    struct nvrtc_places places = { 0 };
    struct nvrtc_list found;
    const struct nvrtc *chosen;
    struct q_err e;
    find_places(&places);
    if (nvrtc_search(&found, &places, &e)) return fail(&e);
    int r = nvrtc_choose(&found, atoi(argv[1]), atoi(argv[0]), &chosen, &e);
    for (int i = 0; i < found.n; i++) printf("found %d.%d %s\n", found.v[i].major, found.v[i].minor, found.v[i].path);
    if (!r) printf("%d.%d %s\n", chosen->major, chosen->minor, chosen->path);
    nvrtc_list_free(&found);
    return r ? fail(&e) : 0;
}

int main(int argc, char **argv)
{
    struct options o;
    struct q_err e = { 0 };
    struct store *s;
    signal(SIGXFSZ, SIG_IGN);   /* a file size limit is then an error of write, with its line; the children inherit it */
    if (argc == 3 && !strcmp(argv[1], "--measure")) return measure_child(argv[2]);
    if (argc > 1 && !strcmp(argv[1], "--compile")) return nvrtc_child(argc - 2, argv + 2);
    if (argc == 4 && !strcmp(argv[1], "--nvrtc-report")) return nvrtc_report(argv + 2);
    if (argc == 5 && !strcmp(argv[1], "--compile-ptx")) return compile_ptx(argv + 2);
    if (options_read(&o, argc, argv, &e)) {
        fail(&e);
        return e.code == Q_EINPUT ? 2 : 1;     /* a card that cannot be used is not wrong usage */
    }
    if (o.done) return 0;
    find_places(&o.given.nvrtc);
    struct store_opts so = { .tunes = o.tunes, .cache = o.cache, .say = say };
    int r = store_open(&s, &so, &e);
    if (!r) r = strcmp(o.verb, "list") ? tune(&o, s, &e) : list(&o, s, &e);
    store_close(s);
    if (r == INTERRUPTED) return fail(&e), 130;
    return r ? fail(&e) : 0;
}
