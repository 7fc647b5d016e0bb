/* A CUDA card as a device: what the device_cuda*.c files share. device_cuda.c opens the card, device_cuda_memory.c moves bytes,
 * device_cuda_kernel.c loads and launches, device_cuda_graph.c submits lists and keeps their graphs.
 *
 * All work of a device goes through one stream, in order; so does every copy, and no call but wait, read and time waits for the card.
 * After a kernel's fault the driver does nothing more for this process: the first line that tells of it is kept, and every later
 * call fails with it.
 */
#ifndef Q_DEVICE_CUDA_H
#define Q_DEVICE_CUDA_H

#include "cuda_api.h"
#include "device.h"

/* Half of the pinned memory that host data passes through: while one half is copied, the other is filled. */
struct cuda_stage {
    char *at;                  /* owned: pinned */
    size_t used;
    cu_event copied;           /* owned: the copies out of it are done */
};

struct cuda_graph;
struct cuda {
    struct q_device device;    /* first */
    struct cuda_api api;
    cu_device number;
    cu_context context;        /* the primary context, retained */
    cu_stream stream;

    struct cuda_stage stage[2];
    int filling;               /* stage in use */
    char *landing;             /* owned: pinned, where reads arrive */

    int pdl;                   /* 1: kernels are launched with programmatic serialization */
    int capture;               /* 1: lists may become graphs */
    struct cuda_graph *graphs; /* owned; most recently used first */
    int n_graphs;
    cu_event begin, end;       /* owned: of time() */

    /* launched since the last wait, to tell where a fault may lie; borrowed */
    const struct q_launch *first, *last;
    struct q_extent extent;    /* of the last list */
    int n_launched;
    struct q_err fault;        /* code 0: none */
};

/* Before a call's work: makes the context this thread's, or fails with the fault that there was. */
int cuda_enter(struct cuda *c, struct q_err *e);
/* As cuda_check; a fault is kept, with the kernels that were on their way named. `launch` NULL: which kernel is not known. */
int cuda_result(struct cuda *c, cu_result result, const char *call, const struct q_launch *launch, struct q_err *e);
/* Waits for the stream. */
int cuda_finish(struct cuda *c, const struct q_launch *launch, struct q_err *e);

int cuda_stages_open(struct cuda *c, struct q_err *e);
void cuda_stages_close(struct cuda *c);
void *cuda_alloc(struct q_device *d, size_t bytes, struct q_err *e);
void cuda_release(struct q_device *d, void *p);
size_t cuda_available(struct q_device *d);
int cuda_write(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e);
int cuda_read(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e);
int cuda_gather(struct q_device *d, void *dst, const struct q_run *runs, int n, struct q_err *e);
int cuda_copy(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e);

int cuda_load(struct q_device *d, const char *path, const char *symbol, const struct q_phases *phases, struct q_kernel *k, struct q_err *e);
void cuda_unload(struct q_device *d, struct q_kernel *k);
/* The symbol that a kernel was loaded by. */
const char *cuda_kernel_name(const struct q_kernel *k);
/* Puts a launch's phases on the stream. pdl 1: they may begin while the kernel before them ends. */
int cuda_launch(struct cuda *c, const struct q_launch *l, const struct q_extent *extent, int pdl, struct q_err *e);

int cuda_submit(struct q_device *d, const struct q_list *list, const struct q_extent *extent, double *trace, struct q_err *e);
int cuda_wait(struct q_device *d, struct q_err *e);
int cuda_time(struct q_device *d, const struct q_list *list, const struct q_extent *extent, int times, double *us, struct q_err *e);
void cuda_forget(struct q_device *d, const struct q_list *list);
void cuda_graphs_close(struct cuda *c);

#endif
