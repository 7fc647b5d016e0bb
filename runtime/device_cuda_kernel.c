/* Kernels of a card: an object file becomes a module and its functions; a launch puts them on the stream. */
#include "device_cuda.h"
#include "files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECT_BYTES = 64 << 20, PLAIN_SHARED = 48 << 10, MAX_GRID_YZ = 65535, JIT_LOG = 600 };

/* Kernels compiled for less than sm_90 have an empty pdl_wait(): they must not begin early, whatever card they run on. */
enum { FIRST_WITH_PDL = 90 };

/* A kernel's `library`. */
struct module {
    cu_module module;
    int waits;                 /* 1: it can begin before the kernel ahead of it has ended */
    char name[160];
};

const char *cuda_kernel_name(const struct q_kernel *k) { return k->library ? ((const struct module *)k->library)->name : "?"; }

/* --- loading ---------------------------------------------------------------------------------------------------------- */

/* What the driver's compiler said, on one line behind the reason. */
static int refused(const struct cuda *c, cu_result result, const char *path, const char *log, struct q_err *e)
{
    char line[JIT_LOG];
    size_t n = 0;
    for (const char *s = log; *s && n + 1 < sizeof line; s++) line[n++] = *s == '\n' || *s == '\r' ? ' ' : *s;
    line[n] = 0;
    cuda_check(&c->api, result, "cuModuleLoadDataEx", e);
    struct q_err why = e ? *e : (struct q_err){.code = Q_EIO};
    return q_fail(e, why.code, "%.300s%s%.300s (%.300s)", why.text, n ? "; " : "", line, path);
}

/* A cubin, or PTX as text (tests run one compute capability's text on another's card): the driver looks which. */
static int load_module(struct cuda *c, const char *path, struct module *m, struct q_err *e)
{
    char *image, log[JIT_LOG] = "";
    size_t n;
    unsigned int option[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
    void *value[] = {log, (void *)sizeof log};
    int rc = file_read(path, OBJECT_BYTES, &image, &n, e);   /* ends with a NUL, as PTX must */
    if (rc) return rc;
    cu_result result = c->api.cuModuleLoadDataEx(&m->module, image, 2, option, value);
    free(image);
    log[sizeof log - 1] = 0;
    if (cuda_is_sticky(result)) return cuda_result(c, result, "cuModuleLoadDataEx", NULL, e);
    return result ? refused(c, result, path, log, e) : Q_OK;
}

static int attribute(struct cuda *c, cu_function f, unsigned int which, int *value, struct q_err *e)
{
    return cuda_result(c, c->api.cuFuncGetAttribute(value, which, f), "cuFuncGetAttribute", NULL, e);
}

/* 1 for functions that begin with a true pdl_wait(). */
static int has_pdl(struct cuda *c, cu_function f)
{
    int compiled_for = 0;
    return !c->api.cuFuncGetAttribute(&compiled_for, CU_FUNCTION_PTX_VERSION, f) && compiled_for >= FIRST_WITH_PDL;
}

/* A function whose registers or shared memory do not fit the card would fail at its launch; it is refused before. */
static int prepare(struct cuda *c, cu_function f, const char *name, const struct q_phase *p, struct q_err *e)
{
    int threads = 0, fixed = 0, registers = 0, most = c->device.card.smem << 10;
    int rc = attribute(c, f, CU_FUNCTION_MAX_THREADS, &threads, e);
    if (!rc) rc = attribute(c, f, CU_FUNCTION_SHARED_BYTES, &fixed, e);
    if (!rc) rc = attribute(c, f, CU_FUNCTION_REGISTERS, &registers, e);
    if (rc) return rc;
    if (p->threads > threads)
        return q_fail(e, Q_ELIMIT, "%s: %d threads a block, and its %d registers allow %d on this card", name, p->threads, registers,
                      threads);
    if (fixed + p->smem > most)
        return q_fail(e, Q_ELIMIT, "%s: %d bytes of shared memory a block, and this card has %d", name, fixed + p->smem, most);
    if (fixed + p->smem <= PLAIN_SHARED) return Q_OK;
    return cuda_result(c, c->api.cuFuncSetAttribute(f, CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES, p->smem), "cuFuncSetAttribute", NULL, e);
}

/* Phase i's symbol: NAME, NAME_2, NAME_3 .. */
static int find_function(struct cuda *c, const struct module *m, int i, struct q_kernel *k, struct q_err *e)
{
    char name[176], call[220];
    cu_function f;
    snprintf(name, sizeof name, i ? "%s_%d" : "%s", m->name, i + 1);
    snprintf(call, sizeof call, "cuModuleGetFunction of %s", name);
    int rc = cuda_result(c, c->api.cuModuleGetFunction(&f, m->module, name), call, NULL, e);
    if (!rc) rc = prepare(c, f, name, &k->phases.phase[i], e);
    k->function[i] = f;
    return rc;
}

int cuda_load(struct q_device *d, const char *path, const char *symbol, const struct q_phases *phases, struct q_kernel *k, struct q_err *e)
{
    struct cuda *c = (struct cuda *)d;
    memset(k, 0, sizeof *k);
    if (phases->n < 1 || phases->n > Q_PHASES) return q_fail(e, Q_EINPUT, "%s: its record does not tell how to launch it", symbol);
    int rc = cuda_enter(c, e);
    if (rc) return rc;
    struct module *m = calloc(1, sizeof *m);
    if (!m) return q_fail(e, Q_EMEM, "no memory for a kernel's module");
    snprintf(m->name, sizeof m->name, "%s", symbol);
    k->library = m;
    k->phases = *phases;
    rc = load_module(c, path, m, e);
    for (int i = 0; i < phases->n && !rc; i++) rc = find_function(c, m, i, k, e);
    m->waits = !rc && has_pdl(c, k->function[0]);
    if (rc) cuda_unload(d, k);
    return rc;
}

void cuda_unload(struct q_device *d, struct q_kernel *k)
{
    struct cuda *c = (struct cuda *)d;
    struct module *m = k->library;
    c->api.cuCtxSetCurrent(c->context);
    if (m && m->module) c->api.cuModuleUnload(m->module);
    free(m);
    memset(k, 0, sizeof *k);
}

/* --- launching -------------------------------------------------------------------------------------------------------- */

static int grid_of(const struct q_launch *l, const struct q_kernel *k, const struct q_phase *p, const struct q_extent *x, unsigned int grid[3],
                   struct q_err *e)
{
    for (int i = 0; i < 3; i++) {
        long n = q_axis_blocks(&p->grid[i], x), most = i ? MAX_GRID_YZ : 0x7FFFFFFF;
        if (n > most)
            return q_fail(e, Q_ELIMIT,
                          "%s (kernel %s): %ld blocks along axis %d for %d rows, %d sequences and a context of %d; a card takes %ld", l->op,
                          cuda_kernel_name(k), n, i, x->rows, x->seqs, x->ctx, most);
        grid[i] = (unsigned int)n;
    }
    return Q_OK;
}

static cu_result launch_plain(struct cuda *c, cu_function f, const struct q_phase *p, const unsigned int g[3], void **args)
{
    return c->api.cuLaunchKernel(f, g[0], g[1], g[2], (unsigned int)p->threads, 1, 1, (unsigned int)p->smem, c->stream, args, NULL);
}

/* The kernel's blocks may start, and fetch weights, while the kernel before it ends: each waits in pdl_wait() for its results. */
static cu_result launch_early(struct cuda *c, cu_function f, const struct q_phase *p, const unsigned int g[3], void **args)
{
    struct cu_launch_attribute early = {.id = CU_PROGRAMMATIC_STREAM_SERIALIZATION, .value.programmatic_stream_serialization_allowed = 1};
    struct cu_launch_config config = {g[0], g[1], g[2], (unsigned int)p->threads, 1, 1, (unsigned int)p->smem, c->stream, &early, 1};
    return c->api.cuLaunchKernelEx((const struct CUlaunchConfig_st *)&config, f, args, NULL);
}

int cuda_launch(struct cuda *c, const struct q_launch *l, const struct q_extent *x, int pdl, struct q_err *e)
{
    const struct q_kernel *k = q_kernel_for(l->kernel, x);
    void *args[] = {(void *)l->args};
    unsigned int grid[3];
    int early = pdl && k->library && ((const struct module *)k->library)->waits;
    int rc = k->phases.n ? Q_OK : q_fail(e, Q_EINTERNAL, "%s: not a kernel of a card", l->op);
    for (int i = 0; i < k->phases.n && !rc; i++) {
        const struct q_phase *p = &k->phases.phase[i];
        if ((rc = grid_of(l, k, p, x, grid, e))) return rc;
        cu_result result = early ? launch_early(c, k->function[i], p, grid, args) : launch_plain(c, k->function[i], p, grid, args);
        /* a fault is one of a kernel before this one */
        rc = cuda_result(c, result, early ? "cuLaunchKernelEx" : "cuLaunchKernel", cuda_is_sticky(result) ? NULL : l, e);
    }
    return rc;
}
