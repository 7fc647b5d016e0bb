#define _GNU_SOURCE
#include "units.h"
#include "autotune/nvrtc_api.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MEMBER(name, result, arguments) result (*name) arguments;
struct api {
    NVRTC_FUNCTIONS(MEMBER)
};

static int api_open(struct api *a, const char *library, struct q_err *e)
{
    void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL), *f;
    if (!lib) return q_fail(e, Q_EMISS, "%.300s", dlerror());
#define LOOK_UP(name, result, arguments)                                                         \
    if (!(f = dlsym(lib, #name))) return q_fail(e, Q_EMISS, "%.300s lacks " #name, library);     \
    memcpy(&a->name, &f, sizeof f);
    NVRTC_FUNCTIONS(LOOK_UP)
    return Q_OK;
}

/* The number before `unit` in the line at p; 0 without one. */
static int number_before(const char *p, const char *unit)
{
    const char *end = strchr(p, '\n'), *at = strstr(p, unit);
    if (!at || (end && at > end)) return 0;
    while (at > p && at[-1] >= '0' && at[-1] <= '9') at--;
    return atoi(at);
}

static int most(int a, int b) { return a > b ? a : b; }

/* A phase's own block of the log begins with its name in quotes. */
static void read_phase(struct verdict *v, const char *log, const struct gen_kernel *k, int i)
{
    char name[200];
    snprintf(name, sizeof name, i ? "'%s_%d'" : "'%s'", k->name, i + 1);
    const char *at = strstr(log, name), *used = at ? strstr(at, "Used ") : NULL, *spill = at ? strstr(at, " bytes stack frame") : NULL;
    if (!used || !spill) {
        v->failed = 1;
        snprintf(v->why, sizeof v->why, "the log does not tell of %.190s", name);
        return;
    }
    int fixed = number_before(used, " bytes smem"), regs = number_before(used, " registers");
    v->regs = most(v->regs, regs);
    v->block_regs = most(v->block_regs, (regs + 7) / 8 * 8 * k->launch.phase[i].threads);
    v->spill = most(v->spill, most(number_before(spill, " bytes spill stores"), number_before(spill, " bytes spill loads")));
    v->fixed = most(v->fixed, fixed);
    v->smem = most(v->smem, fixed + k->launch.phase[i].smem);
}

/* The line of the log that says why, else its first. */
static void read_failure(struct verdict *v, const char *log, const char *result)
{
    const char *at = strstr(log, "error");
    while (at && at > log && at[-1] != '\n') at--;
    if (!at) at = log;
    snprintf(v->why, sizeof v->why, "%s: %.*s", result, (int)strcspn(at, "\n"), at);
    v->failed = 1;
}

static void compile(const struct api *a, const struct unit *u, struct verdict *v)
{
    struct _nvrtcProgram *p = NULL;
    char text[256], *words[16];
    const char *options[17];
    int n = 0;
    snprintf(text, sizeof text, "%s", u->kernel.cflags);
    for (char *w = strtok_r(text, " ", words); w && n < 15; w = strtok_r(NULL, " ", words)) options[n++] = w;
    options[n++] = "--ptxas-options=-v";
    unsigned rc = a->nvrtcCreateProgram(&p, u->kernel.unit, u->kernel.name, 0, NULL, NULL);
    if (!rc) rc = a->nvrtcCompileProgram(p, n, options);
    size_t bytes = 0;
    char *log = p && !a->nvrtcGetProgramLogSize(p, &bytes) ? calloc(1, bytes + 1) : NULL;
    if (log) a->nvrtcGetProgramLog(p, log);
    if (rc) read_failure(v, log ? log : "", a->nvrtcGetErrorString(rc));
    for (int i = 0; !rc && log && i < u->kernel.launch.n; i++) read_phase(v, log, &u->kernel, i);
    free(log);
    if (p) a->nvrtcDestroyProgram(&p);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Takes units that nobody has, in order, until none is left. */
static void work(const struct unit *u, struct verdict *v, int n)
{
    struct api a = {0};
    struct q_err e = {0};
    const struct nvrtc *open = NULL;
    for (int i = 0; i < n; i++) {
        int nobody = 0;
        if (!__atomic_compare_exchange_n(&v[i].state, &nobody, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
        double begin = now();
        if (u[i].nvrtc != open && api_open(&a, u[i].nvrtc->path, &e)) {
            snprintf(v[i].why, sizeof v[i].why, "%.399s", e.text);
            v[i].failed = 1;
        } else {
            open = u[i].nvrtc;
            compile(&a, &u[i], &v[i]);
        }
        v[i].seconds = now() - begin;
        __atomic_store_n(&v[i].state, 2, __ATOMIC_SEQ_CST);
    }
}

struct verdict *verdicts_open(int n, struct q_err *e)
{
    void *p = mmap(NULL, (size_t)n * sizeof(struct verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) q_fail(e, Q_EMEM, "no memory for %d verdicts", n);
    return p == MAP_FAILED ? NULL : p;
}

int units_compile(const struct unit *u, struct verdict *v, int n, int jobs, struct q_err *e)
{
    fflush(stdout);
    for (int j = 0; j < jobs; j++) {
        pid_t pid = fork();
        if (pid < 0) return q_fail(e, Q_EIO, "cannot start a process");
        if (pid) continue;
        work(u, v, n);
        _exit(0);
    }
    while (wait(NULL) > 0) continue;
    for (int i = 0; i < n; i++) {
        if (v[i].state == 2) continue;
        v[i].failed = 1;
        snprintf(v[i].why, sizeof v[i].why, v[i].state ? "the compiler's process died" : "every process died before it");
    }
    return Q_OK;
}
