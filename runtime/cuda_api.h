/* The CUDA driver, opened with dlopen: one build of quarry starts on machines with and without a card, and nothing is linked.
 *
 * Types and prototypes are our own; where the toolkit's cuda.h is installed, tests/fake_cuda/match_cuda_h.c compiles both together,
 * so that a difference is an error of the compiler. A function missing in the driver is NULL when it is marked `optional`: who calls
 * it has another way for the drivers of the 470 series (CUDA 11.4), the oldest that quarry runs with. cuda_errors.c turns results
 * into lines.
 */
#ifndef Q_CUDA_API_H
#define Q_CUDA_API_H

#include "err.h"
#include <stddef.h>

typedef unsigned int cu_result;           /* 0: good; an enum of cuda.h, as are `attribute`, `option` and `mode` below */
typedef int cu_device;
typedef unsigned long long cu_address;    /* in device memory */
typedef struct CUctx_st *cu_context;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphExec_st *cu_graph_exec;

/* What cuLaunchKernelEx reads behind a `struct CUlaunchConfig_st *`, and its attributes, of which one is used. */
struct CUlaunchConfig_st;
struct cu_launch_attribute {
    unsigned int id;
    char pad[4];
    union {
        char bytes[64];
        int programmatic_stream_serialization_allowed;
    } value;
};

struct cu_launch_config {
    unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z;
    unsigned int shared_bytes;
    cu_stream stream;
    struct cu_launch_attribute *attributes;
    unsigned int n_attributes;
};

enum cu_code {
    CU_OK = 0,
    CU_OUT_OF_MEMORY = 2,
    CU_NO_DEVICE = 100,
    CU_NOT_READY = 600,
};

enum cu_device_attribute {
    CU_MAX_THREADS_PER_BLOCK = 1,
    CU_CLOCK_RATE = 13,                   /* kHz */
    CU_MULTIPROCESSORS = 16,
    CU_KERNEL_EXEC_TIMEOUT = 17,
    CU_INTEGRATED = 18,
    CU_COMPUTE_MODE = 20,
    CU_MEMORY_CLOCK_RATE = 36,            /* kHz */
    CU_MEMORY_BUS_WIDTH = 37,             /* bits */
    CU_L2_BYTES = 38,
    CU_CC_MAJOR = 75,
    CU_CC_MINOR = 76,
    CU_SHARED_BYTES_OPTIN = 97,           /* the most that a block may ask for */
};

enum cu_function_attribute {
    CU_FUNCTION_MAX_THREADS = 0,          /* of a block, as its registers allow */
    CU_FUNCTION_SHARED_BYTES = 1,         /* static */
    CU_FUNCTION_LOCAL_BYTES = 3,
    CU_FUNCTION_REGISTERS = 4,
    CU_FUNCTION_PTX_VERSION = 5,          /* compute capability it was compiled for: 70, 90 */
    CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES = 8,
};

enum {
    CU_CONTEXT_SCHED_SPIN = 1,
    CU_STREAM_NON_BLOCKING_FLAG = 1,
    CU_EVENT_NO_TIMING = 2,
    CU_EVENT_RECORD_IN_GRAPH = 1,               /* in a capture: record at every launch of the graph */
    CU_CAPTURE_THREAD_LOCAL = 1,
    CU_PROGRAMMATIC_STREAM_SERIALIZATION = 6,   /* id of a launch attribute */
    CU_JIT_ERROR_LOG = 5,                       /* option: char * */
    CU_JIT_ERROR_LOG_BYTES = 6,                 /* option: the number itself as a pointer */
};

/* F(presence, name, exported symbol, parameters). */
#define CUDA_FUNCTIONS(F)                                                                                                        \
    F(required, cuInit, cuInit, (unsigned int flags))                                                                            \
    F(required, cuDriverGetVersion, cuDriverGetVersion, (int *version))                                                          \
    F(required, cuGetErrorName, cuGetErrorName, (cu_result result, const char **name))                                           \
    F(required, cuDeviceGetCount, cuDeviceGetCount, (int *count))                                                                \
    F(required, cuDeviceGet, cuDeviceGet, (cu_device *device, int ordinal))                                                      \
    F(required, cuDeviceGetName, cuDeviceGetName, (char *name, int bytes, cu_device device))                                     \
    F(required, cuDeviceGetAttribute, cuDeviceGetAttribute, (int *value, unsigned int attribute, cu_device device))              \
    F(required, cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *id, int bytes, cu_device device))                               \
    F(required, cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t *bytes, cu_device device))                                        \
    F(optional, cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, (cu_device device, unsigned int flags))               \
    F(required, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (cu_context *context, cu_device device))                     \
    F(required, cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (cu_device device))                                     \
    F(required, cuCtxSetCurrent, cuCtxSetCurrent, (cu_context context))                                                          \
    F(required, cuMemGetInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                                                    \
    F(required, cuMemAlloc, cuMemAlloc_v2, (cu_address *address, size_t bytes))                                                  \
    F(required, cuMemFree, cuMemFree_v2, (cu_address address))                                                                   \
    F(required, cuMemHostAlloc, cuMemHostAlloc, (void **p, size_t bytes, unsigned int flags))                                    \
    F(required, cuMemFreeHost, cuMemFreeHost, (void *p))                                                                         \
    F(required, cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (cu_address to, const void *from, size_t bytes, cu_stream stream))      \
    F(required, cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *to, cu_address from, size_t bytes, cu_stream stream))            \
    F(required, cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (cu_address to, cu_address from, size_t bytes, cu_stream stream))       \
    F(required, cuMemsetD8Async, cuMemsetD8Async, (cu_address to, unsigned char value, size_t bytes, cu_stream stream))          \
    F(required, cuStreamCreate, cuStreamCreate, (cu_stream *stream, unsigned int flags))                                         \
    F(required, cuStreamDestroy, cuStreamDestroy_v2, (cu_stream stream))                                                         \
    F(required, cuStreamSynchronize, cuStreamSynchronize, (cu_stream stream))                                                    \
    F(required, cuStreamBeginCapture, cuStreamBeginCapture_v2, (cu_stream stream, unsigned int mode))                            \
    F(required, cuStreamEndCapture, cuStreamEndCapture, (cu_stream stream, cu_graph *graph))                                     \
    F(required, cuEventCreate, cuEventCreate, (cu_event *event, unsigned int flags))                                             \
    F(required, cuEventDestroy, cuEventDestroy_v2, (cu_event event))                                                             \
    F(required, cuEventRecord, cuEventRecord, (cu_event event, cu_stream stream))                                                \
    F(optional, cuEventRecordWithFlags, cuEventRecordWithFlags, (cu_event event, cu_stream stream, unsigned int flags))          \
    F(required, cuEventSynchronize, cuEventSynchronize, (cu_event event))                                                        \
    F(required, cuEventElapsedTime, cuEventElapsedTime, (float *milliseconds, cu_event from, cu_event to))                       \
    F(required, cuModuleLoadDataEx, cuModuleLoadDataEx,                                                                          \
      (cu_module *module, const void *image, unsigned int n, unsigned int *option, void **value))                                \
    F(required, cuModuleUnload, cuModuleUnload, (cu_module module))                                                              \
    F(required, cuModuleGetFunction, cuModuleGetFunction, (cu_function *function, cu_module module, const char *name))           \
    F(required, cuFuncGetAttribute, cuFuncGetAttribute, (int *value, unsigned int attribute, cu_function function))              \
    F(required, cuFuncSetAttribute, cuFuncSetAttribute, (cu_function function, unsigned int attribute, int value))               \
    F(required, cuLaunchKernel, cuLaunchKernel,                                                                                  \
      (cu_function function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,                \
       unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, cu_stream stream, void **parameters, void **extra))\
    F(required, cuGraphInstantiate, cuGraphInstantiateWithFlags, (cu_graph_exec *exec, cu_graph graph, unsigned long long flags))\
    F(optional, cuGraphUpload, cuGraphUpload, (cu_graph_exec exec, cu_stream stream))                                            \
    F(required, cuGraphLaunch, cuGraphLaunch, (cu_graph_exec exec, cu_stream stream))                                            \
    F(required, cuGraphDestroy, cuGraphDestroy, (cu_graph graph))                                                                \
    F(required, cuGraphExecDestroy, cuGraphExecDestroy, (cu_graph_exec exec))                                                    \
    F(optional, cuLaunchKernelEx, cuLaunchKernelEx,                                                                              \
      (const struct CUlaunchConfig_st *config, cu_function function, void **parameters, void **extra))

#define CUDA_MEMBER(presence, name, symbol, parameters) cu_result (*name) parameters;
struct cuda_api {
    void *library;
    int version;               /* of CUDA, that the driver stands for: 11040, 12090, 13000; 0 before cuda_start */
    CUDA_FUNCTIONS(CUDA_MEMBER)
};
#undef CUDA_MEMBER

/* Opens the driver's library; NULL: libcuda.so.1 as the system finds it. Q_EMISS when there is none. Nothing is initialised. */
int cuda_open(struct cuda_api *cu, const char *library, struct q_err *e);
/* Initialises the driver and asks its version. */
int cuda_start(struct cuda_api *cu, struct q_err *e);
/* How many cards it shows, 0 or more. */
int cuda_count(const struct cuda_api *cu, int *n, struct q_err *e);
void cuda_close(struct cuda_api *cu);

/* 0 for a good result; else the error's line "call: CODE (number): what to do" and its code. `call` may carry what it was about:
 * "cuMemAlloc of 12.0 MiB". */
int cuda_check(const struct cuda_api *cu, cu_result result, const char *call, struct q_err *e);
/* 1 for results after which nothing works in this process any more: a kernel faulted. */
int cuda_is_sticky(cu_result result);

/* The driver's own version, "580.159.03", by /proc/driver/nvidia/version (or `file`); "" where there is no such file (WSL). */
void cuda_driver_version(char *dst, size_t n, const char *file);

#endif
