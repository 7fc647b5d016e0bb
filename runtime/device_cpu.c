/* The CPU as a device: memory is the heap, a launch list is walked by all members of a team, with a barrier after each kernel that
 * the next one waits for. */
#define _GNU_SOURCE
#include "clock.h"
#include "device.h"
#include "host_memory.h"
#include "team.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_PENDING = 16 };

struct pending {
    const struct q_list *list;
    struct q_extent extent;    /* tells which kernel of a chain; kernels read their counts from the step */
    double *trace;
};

struct cpu {
    struct q_device device;    /* first */
    struct q_team *team;
    struct pending pending[MAX_PENDING];   /* submitted, not yet waited for */
    int n_pending;
};

static double now_us(void) { return 1e6 * clock_s(); }

/* What lies in the cache line before a block. */
struct block {
    void *map;
    size_t bytes;
};

/* Blocks are mapped: zero pages cost nothing until touched. Large ones start at a huge page's border and ask for huge pages, since a
 * matrix streamed through 4 KiB pages waits for the page tables at each of them. */
static void *cpu_alloc(struct q_device *d, size_t bytes, struct q_err *e)
{
    size_t huge = (size_t)2 << 20, lead = bytes >= 2 * huge ? huge : 64, whole = bytes + lead + (lead == huge ? huge : 0);
    char *map = whole < bytes ? MAP_FAILED : mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        q_fail(e, Q_EMEM, "the system refused %.1f MiB of memory", (double)bytes / 1048576);
        return NULL;
    }
    char *p = (char *)(((uintptr_t)map + 64 + lead - 1) / lead * lead);
    if (lead == huge) madvise(p, bytes, MADV_HUGEPAGE);   /* a wish: without it all works, only slower */
    ((struct block *)(p - 64))[0] = (struct block){map, whole};
    return p;
}

static void cpu_release(struct q_device *d, void *p)
{
    if (!p) return;
    struct block b = *(struct block *)((char *)p - 64);
    munmap(b.map, b.bytes);
}

/* Linux' own estimate, which counts the page cache (a mapped model file) as free. */
static size_t cpu_available(struct q_device *d) { return host_memory_available(); }

static int cpu_move(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e)
{
    int rc = d->ops->wait(d, e);
    if (!rc && bytes) memmove(dst, src, bytes);
    return rc;
}

static void run_pending(void *arg, struct team *t)
{
    struct cpu *c = arg;
    for (int j = 0; j < c->n_pending; j++) {
        const struct q_list *l = c->pending[j].list;
        double *trace = t->part == 0 ? c->pending[j].trace : NULL;
        for (int i = 0; i < l->n; i++) {
            double t0 = trace ? now_us() : 0;
            q_kernel_for(l->launch[i].kernel, &c->pending[j].extent)->fn(l->launch[i].args, t);
            if (!l->launch[i].with_next || i + 1 == l->n) team_wait(t);
            if (trace) trace[i] += now_us() - t0;
        }
    }
}

/* Lists wait for `wait`, which lends the caller's thread as member 0. */
static int cpu_submit(struct q_device *d, const struct q_list *list, const struct q_extent *extent, double *trace, struct q_err *e)
{
    struct cpu *c = (struct cpu *)d;
    if (c->n_pending == MAX_PENDING && d->ops->wait(d, e)) return e ? e->code : Q_EINTERNAL;
    c->pending[c->n_pending++] = (struct pending){list, extent ? *extent : (struct q_extent){0}, trace};
    return Q_OK;
}

static int cpu_wait(struct q_device *d, struct q_err *e)
{
    struct cpu *c = (struct cpu *)d;
    if (!c->n_pending) return Q_OK;
    team_start(c->team, run_pending, c);
    team_finish(c->team);
    c->n_pending = 0;
    return Q_OK;
}

static int cpu_load(struct q_device *d, const char *path, const char *symbol, const struct q_phases *phases, struct q_kernel *k, struct q_err *e)
{
    memset(k, 0, sizeof *k);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return q_fail(e, Q_EMISS, "%s", dlerror());
    *(void **)&k->fn = dlsym(library, symbol);
    if (!k->fn) {
        dlclose(library);
        return q_fail(e, Q_EMISS, "%s: the object has no such function", symbol);
    }
    k->library = library;
    return Q_OK;
}

static void cpu_unload(struct q_device *d, struct q_kernel *k)
{
    if (k->library) dlclose(k->library);
    memset(k, 0, sizeof *k);
}

static int cpu_time(struct q_device *d, const struct q_list *list, const struct q_extent *extent, int times, double *us, struct q_err *e)
{
    double start = 0;
    int rc = Q_OK;
    for (int i = -1; i < times && !rc; i++) {
        if (i == 0) start = now_us();
        rc = cpu_submit(d, list, extent, NULL, e);
        if (!rc) rc = cpu_wait(d, e);
    }
    *us = (now_us() - start) / times;
    return rc;
}

static void cpu_forget(struct q_device *d, const struct q_list *list)
{
    (void)d;
    (void)list;    /* nothing is kept of a list */
}

static void cpu_close(struct q_device *d)
{
    struct cpu *c = (struct cpu *)d;
    team_close(c->team);
    free(c);
}

static const struct q_device_ops cpu_ops = {"cpu",    "so",       cpu_alloc,  cpu_release, cpu_available, cpu_move,   cpu_move, cpu_move,
                                            cpu_load, cpu_unload, cpu_submit, cpu_wait,    cpu_time,      cpu_forget, cpu_close, NULL};

int device_cpu_open(struct q_device **out, int threads, struct q_err *e)
{
    struct cpu *c = calloc(1, sizeof *c);
    if (!c) return q_fail(e, Q_EMEM, "no memory for a device");
    c->device.ops = &cpu_ops;
    c->device.host_memory = 1;
    int rc = card_detect_cpu(&c->device.card, threads, e);
    if (!rc) rc = team_open(&c->team, c->device.card.threads, e);
    if (rc) {
        free(c);
        return rc;
    }
    c->device.parts = c->device.card.threads;
    snprintf(c->device.about, sizeof c->device.about, "CPU, %d thread%s", c->device.parts, c->device.parts == 1 ? "" : "s");
    *out = &c->device;
    return Q_OK;
}
