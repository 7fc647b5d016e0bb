/* A libcuda.so.1 without a card, for tests of what stands above the driver: memory is the host's, kernels are counted and not run,
 * and what goes wrong is chosen by the variable FAKE_CUDA, read at cuInit, a list of words with ',' between them:
 *   cards=N memory=MIB cc=NN version=NNNNN    what the driver shows (1, 1024, 90, 13000)
 *   init=CODE retain=CODE                     cuInit, cuDevicePrimaryCtxRetain fail with this code
 *   fault=N:CODE                              launch N (from 1) breaks everything, told at the next wait, as a card does
 *   no_graph no_early_graph                   no graph can be instantiated, or none with early launches
 *   late                                      copies arrive when they are waited for, and not before
 * A module is text: "FAKE" and a line a function: its name, then "threads=N shared=N ptx=NN" (1024, 0, 90), any of them.
 * Every launch adds a line to the text of fake_cuda_log(). An event holds how many kernels have run; each takes 10 microseconds.
 * Built also as an old driver without the functions that cuda_api.h calls optional (FAKE_CUDA_470), and as one that lacks more. */
#include "runtime/cuda_api.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is exported has the prototypes that the runtime calls it by. */
#define DECLARE(presence, name, symbol, parameters) cu_result symbol parameters;
CUDA_FUNCTIONS(DECLARE)
const char *fake_cuda_log(void);
void fake_cuda_log_clear(void);

enum {
    INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, ILLEGAL_STATE = 401,
    NOT_FOUND = 500, CAPTURE_INVALID = 901
};
enum { MOST_NODES = 4096, ALIGN = 256, LOG_BYTES = 1 << 20 };

struct CUctx_st { int retained; };
struct CUstream_st { struct CUgraph_st *capturing; };
struct CUevent_st { long at, copies; };
struct CUmod_st { char *text; };
struct CUfunc_st { struct CUfunc_st *next; char name[200]; int threads, shared, ptx, most_dynamic; };
struct node { struct CUfunc_st *f; unsigned grid[3], block, shared; int early; struct CUevent_st *event; };
struct CUgraph_st { struct node node[MOST_NODES]; int n; };
struct CUgraphExec_st { struct CUgraph_st graph; };
/* On its way. from NULL: a fill. */
struct copy { void *to; const void *from; size_t bytes; unsigned char value; };

static struct {
    int started, cards, cc, no_graph, no_early_graph, late;
    cu_result init, retain, fault_code, broken;   /* broken: what every call answers from now on */
    size_t memory, used;
    long run, fault_at;
    struct copy *copy;                            /* of those since the start, [arrived] to [copies - 1] are on their way */
    long arrived, copies;
    struct CUctx_st context;
    struct CUctx_st *current;
    char log[LOG_BYTES];
} fake;

static long word(const char *list, const char *name, long missing)
{
    const char *p = list ? strstr(list, name) : NULL;
    return p ? strtol(p + strlen(name), NULL, 10) : missing;
}

static cu_result state(void) { return !fake.started ? NOT_INITIALIZED : fake.broken; }
static cu_result ready(void) { return state() ? state() : fake.current ? CU_OK : INVALID_CONTEXT; }

const char *fake_cuda_log(void) { return fake.log; }
void fake_cuda_log_clear(void) { fake.log[0] = 0; }

/* --- start and cards -------------------------------------------------------------------------------------------------- */

static void *sleep_on(void *arg) { return pause(), arg; }

cu_result cuInit(unsigned int flags)
{
    pthread_t thread;     /* a driver has threads of its own, which block the signals that were blocked now */
    const char *v = getenv("FAKE_CUDA"), *fault = v ? strstr(v, "fault=") : NULL;
    char *end;
    if (!pthread_create(&thread, NULL, sleep_on, NULL)) pthread_detach(thread);
    free(fake.copy);
    memset(&fake, 0, sizeof fake);
    fake.cards = (int)word(v, "cards=", 1);
    fake.memory = (size_t)word(v, "memory=", 1024) << 20;
    fake.cc = (int)word(v, "cc=", 90);
    fake.init = (cu_result)word(v, "init=", 0);
    fake.retain = (cu_result)word(v, "retain=", 0);
    fake.no_graph = v && strstr(v, "no_graph");
    fake.no_early_graph = v && strstr(v, "no_early_graph");
    fake.late = v && strstr(v, "late");
    if (fault) {
        fake.fault_at = strtol(fault + 6, &end, 10);
        fake.fault_code = (cu_result)strtol(end + 1, NULL, 10);
    }
    fake.started = !flags && !fake.init;
    return fake.init;
}

/* As with a real driver, this needs no cuInit. */
cu_result cuDriverGetVersion(int *version) { return *version = (int)word(getenv("FAKE_CUDA"), "version=", 13000), CU_OK; }
cu_result cuGetErrorName(cu_result result, const char **name)
{
    *name = result == 12345 ? "CUDA_ERROR_FAKE" : NULL;
    return *name ? CU_OK : INVALID_VALUE;
}
cu_result cuDeviceGetCount(int *count) { return *count = fake.cards, state(); }
cu_result cuDeviceGet(cu_device *device, int ordinal) { return *device = ordinal, ordinal < fake.cards ? state() : INVALID_DEVICE; }
cu_result cuDeviceGetName(char *name, int bytes, cu_device device)
{
    snprintf(name, (size_t)bytes, "Fake Card %d", device);
    return state();
}
cu_result cuDeviceTotalMem_v2(size_t *bytes, cu_device device) { return *bytes = fake.memory, state(); }
cu_result cuDeviceGetPCIBusId(char *id, int bytes, cu_device device)
{
    snprintf(id, (size_t)bytes, "0000:%02X:00.0", device + 1);
    return state();
}

cu_result cuDeviceGetAttribute(int *value, unsigned int attribute, cu_device device)
{
    static const struct { unsigned int id; int value; } known[] = {
        {CU_MAX_THREADS_PER_BLOCK, 1024}, {CU_CLOCK_RATE, 1380000},       {CU_MULTIPROCESSORS, 68},   {CU_KERNEL_EXEC_TIMEOUT, 0},
        {CU_INTEGRATED, 0},               {CU_COMPUTE_MODE, 0},           {CU_MEMORY_CLOCK_RATE, 877000},
        {CU_MEMORY_BUS_WIDTH, 4096},      {CU_L2_BYTES, 6 << 20},         {CU_SHARED_BYTES_OPTIN, 96 << 10}};
    if (attribute == CU_CC_MAJOR) return *value = fake.cc / 10, state();
    if (attribute == CU_CC_MINOR) return *value = fake.cc % 10, state();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].id == attribute) return *value = known[i].value, state();
    return INVALID_VALUE;
}

cu_result cuDevicePrimaryCtxRelease_v2(cu_device device)
{
    return fake.context.retained ? fake.context.retained--, CU_OK : INVALID_CONTEXT;
}
cu_result cuCtxSetCurrent(cu_context context) { return fake.current = context, fake.started ? CU_OK : NOT_INITIALIZED; }
cu_result cuDevicePrimaryCtxRetain(cu_context *context, cu_device device)
{
    if (fake.retain) return fake.retain;
    fake.context.retained++;
    *context = &fake.context;
    return state();
}

/* --- copies: at once, or as late as a card may choose ------------------------------------------------------------------ */

static void arrive(long until)
{
    for (; fake.arrived < until; fake.arrived++) {
        const struct copy *c = &fake.copy[fake.arrived];
        if (c->from) memmove(c->to, c->from, c->bytes);
        else memset(c->to, c->value, c->bytes);
    }
}

static cu_result send(struct copy c, cu_stream stream)
{
    if (ready()) return ready();
    if (!stream || stream->capturing) return INVALID_VALUE;
    struct copy *more = realloc(fake.copy, (size_t)(fake.copies + 1) * sizeof *more);
    if (!more) return CU_OUT_OF_MEMORY;
    fake.copy = more;
    fake.copy[fake.copies++] = c;
    if (!fake.late) arrive(fake.copies);
    return CU_OK;
}

/* --- memory: the size lies before each block -------------------------------------------------------------------------- */

static cu_result take(void **p, size_t bytes)
{
    char *block = aligned_alloc(ALIGN, (bytes + 2 * ALIGN - 1) / ALIGN * ALIGN);
    if (!block) return CU_OUT_OF_MEMORY;
    *(size_t *)block = bytes;
    memset(block + ALIGN, 0xA5, bytes);
    *p = block + ALIGN;
    return CU_OK;
}

static void give(void *p) { free((char *)p - ALIGN); }

cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total) { return *free_bytes = fake.memory - fake.used, *total = fake.memory, ready(); }
cu_result cuMemAlloc_v2(cu_address *address, size_t bytes)
{
    void *p;
    if (ready()) return ready();
    if (!bytes) return INVALID_VALUE;
    if (bytes > fake.memory - fake.used || take(&p, bytes)) return CU_OUT_OF_MEMORY;
    fake.used += bytes;
    *address = (cu_address)p;
    return CU_OK;
}

cu_result cuMemFree_v2(cu_address address)
{
    arrive(fake.copies);       /* as a driver waits for what may use the block */
    fake.used -= *(size_t *)((char *)address - ALIGN);
    give((void *)address);
    return ready();
}

cu_result cuMemHostAlloc(void **p, size_t bytes, unsigned int flags) { return ready() ? ready() : take(p, bytes); }
cu_result cuMemFreeHost(void *p) { return arrive(fake.copies), give(p), CU_OK; }

static cu_result move(void *to, const void *from, size_t bytes, cu_stream s) { return send((struct copy){to, from, bytes, 0}, s); }

cu_result cuMemcpyHtoDAsync_v2(cu_address to, const void *from, size_t bytes, cu_stream s) { return move((void *)to, from, bytes, s); }
cu_result cuMemcpyDtoHAsync_v2(void *to, cu_address from, size_t bytes, cu_stream s) { return move(to, (void *)from, bytes, s); }
cu_result cuMemcpyDtoDAsync_v2(cu_address to, cu_address from, size_t bytes, cu_stream s) { return move((void *)to, (void *)from, bytes, s); }
cu_result cuMemsetD8Async(cu_address to, unsigned char value, size_t bytes, cu_stream stream)
{
    return send((struct copy){(void *)to, NULL, bytes, value}, stream);
}

/* --- modules and functions -------------------------------------------------------------------------------------------- */

cu_result cuModuleLoadDataEx(cu_module *module, const void *image, unsigned int n, unsigned int *option, void **value)
{
    if (ready()) return ready();
    if (strncmp(image, "FAKE\n", 5)) {
        for (unsigned int i = 0; i < n; i++)
            if (option[i] == CU_JIT_ERROR_LOG) strcpy(value[i], "line 1:\nnot a module");
        return INVALID_IMAGE;
    }
    *module = calloc(1, sizeof **module);
    (*module)->text = strdup(image);
    return CU_OK;
}

cu_result cuModuleUnload(cu_module module)
{
    free(module->text);
    free(module);
    return CU_OK;
}

/* Functions outlive their module here: a log or graph may still name them. */
static struct CUfunc_st *functions;

cu_result cuModuleGetFunction(cu_function *function, cu_module module, const char *name)
{
    size_t n = strlen(name);
    if (ready()) return ready();
    for (const char *line = strchr(module->text, '\n'); line && *++line; line = strchr(line, '\n')) {
        if (strncmp(line, name, n) || !strchr(" \n", line[n])) continue;
        char rest[200];
        snprintf(rest, sizeof rest, "%.*s", (int)strcspn(line, "\n"), line);
        struct CUfunc_st *f = calloc(1, sizeof *f);
        *f = (struct CUfunc_st){.next = functions, .threads = (int)word(rest, "threads=", 1024), .shared = (int)word(rest, "shared=", 0),
                                .ptx = (int)word(rest, "ptx=", 90)};
        snprintf(f->name, sizeof f->name, "%s", name);
        *function = functions = f;
        return CU_OK;
    }
    return NOT_FOUND;
}

cu_result cuFuncGetAttribute(int *value, unsigned int attribute, cu_function f)
{
    *value = attribute == CU_FUNCTION_MAX_THREADS ? f->threads : attribute == CU_FUNCTION_SHARED_BYTES ? f->shared
             : attribute == CU_FUNCTION_PTX_VERSION ? f->ptx : attribute == CU_FUNCTION_REGISTERS ? 64 : 0;
    return ready();
}

cu_result cuFuncSetAttribute(cu_function f, unsigned int attribute, int value)
{
    if (attribute != CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES || f->shared + value > 96 << 10) return INVALID_VALUE;
    f->most_dynamic = value;
    return ready();
}

/* --- launching -------------------------------------------------------------------------------------------------------- */

static void run(const struct node *n, const char *how)
{
    size_t at = strlen(fake.log);
    if (n->event) {
        n->event->at = fake.run;
        n->event->copies = fake.copies;
        return;
    }
    snprintf(fake.log + at, sizeof fake.log - at, "%s %u,%u,%u x %u shared %u%s%s\n", n->f->name, n->grid[0], n->grid[1], n->grid[2], n->block,
             n->shared, n->early ? " early" : "", how);
    fake.run++;
    if (fake.run == fake.fault_at) fake.broken = fake.fault_code;
}

static cu_result put(cu_stream stream, struct node n)
{
    /* a fault shows at the next wait, not at the launch that made it */
    if (!fake.started || !fake.current) return ready();
    if (!stream) return INVALID_VALUE;
    if (n.f && n.shared > 48 << 10 && (int)n.shared > n.f->most_dynamic) return INVALID_VALUE;
    if (!stream->capturing) return fake.broken ? CU_OK : (run(&n, ""), CU_OK);
    if (stream->capturing->n == MOST_NODES) return CAPTURE_INVALID;
    stream->capturing->node[stream->capturing->n++] = n;
    return CU_OK;
}

cu_result cuLaunchKernel(cu_function f, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                         unsigned int block_y, unsigned int block_z, unsigned int shared, cu_stream stream, void **parameters, void **extra)
{
    return put(stream, (struct node){f, {grid_x, grid_y, grid_z}, block_x * block_y * block_z, shared, 0, NULL});
}

cu_result cuEventCreate(cu_event *event, unsigned int flags) { return (*event = calloc(1, sizeof **event)) ? ready() : CU_OUT_OF_MEMORY; }
cu_result cuEventDestroy_v2(cu_event event) { return free(event), CU_OK; }
cu_result cuEventSynchronize(cu_event event) { return arrive(event->copies), ready(); }
cu_result cuEventElapsedTime(float *ms, cu_event from, cu_event to) { return *ms = (float)(to->at - from->at) * 0.01f, ready(); }
cu_result cuEventRecord(cu_event event, cu_stream stream)
{
    return stream->capturing ? ILLEGAL_STATE : put(stream, (struct node){.event = event});
}

#ifndef FAKE_CUDA_470
cu_result cuDevicePrimaryCtxSetFlags_v2(cu_device device, unsigned int flags) { return state(); }
cu_result cuEventRecordWithFlags(cu_event event, cu_stream stream, unsigned int flags) { return put(stream, (struct node){.event = event}); }
cu_result cuLaunchKernelEx(const struct CUlaunchConfig_st *config, cu_function f, void **parameters, void **extra)
{
    const struct cu_launch_config *c = (const void *)config;
    int early = c->n_attributes == 1 && c->attributes->id == CU_PROGRAMMATIC_STREAM_SERIALIZATION &&
                c->attributes->value.programmatic_stream_serialization_allowed;
    unsigned int block = c->block_x * c->block_y * c->block_z;
    return put(c->stream, (struct node){f, {c->grid_x, c->grid_y, c->grid_z}, block, c->shared_bytes, early, NULL});
}
cu_result cuGraphUpload(cu_graph_exec exec, cu_stream stream) { return ready(); }
#endif

/* --- streams and graphs ----------------------------------------------------------------------------------------------- */

cu_result cuStreamCreate(cu_stream *stream, unsigned int flags) { return (*stream = calloc(1, sizeof **stream)) ? ready() : CU_OUT_OF_MEMORY; }
cu_result cuStreamDestroy_v2(cu_stream stream) { return free(stream), CU_OK; }
cu_result cuStreamSynchronize(cu_stream stream) { return stream->capturing ? CAPTURE_INVALID : (arrive(fake.copies), ready()); }

cu_result cuStreamBeginCapture_v2(cu_stream stream, unsigned int mode)
{
    if (ready()) return ready();
    return (stream->capturing = calloc(1, sizeof *stream->capturing)) ? CU_OK : CU_OUT_OF_MEMORY;
}

cu_result cuStreamEndCapture(cu_stream stream, cu_graph *graph)
{
    *graph = stream->capturing;
    stream->capturing = NULL;
    return ready();
}

#ifndef FAKE_CUDA_ANCIENT
cu_result cuGraphInstantiateWithFlags(cu_graph_exec *exec, cu_graph graph, unsigned long long flags)
{
    for (int i = 0; i < graph->n; i++)
        if (graph->node[i].early && fake.no_early_graph) return INVALID_VALUE;
    if (fake.no_graph) return CU_OUT_OF_MEMORY;
    *exec = malloc(sizeof **exec);
    (*exec)->graph = *graph;
    return ready();
}
#endif

cu_result cuGraphLaunch(cu_graph_exec exec, cu_stream stream)
{
    if (ready()) return ready();
    for (int i = 0; i < exec->graph.n; i++) run(&exec->graph.node[i], " graph");
    return CU_OK;
}

cu_result cuGraphDestroy(cu_graph graph) { return free(graph), CU_OK; }
cu_result cuGraphExecDestroy(cu_graph_exec exec) { return free(exec), CU_OK; }
