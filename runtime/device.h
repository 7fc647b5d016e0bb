/* A device: memory, copies and launches behind one small table of functions, so that nothing above it learns a new word when a
 * card joins. device_cpu.c fills it with a team of threads, device_cuda.c with a card and its driver.
 *
 * Work is given as launch lists. A list holds kernels with their arguments, in order; a kernel sees the results of those
 * before it. Arguments never change after a list was built (what changes lies in device memory), so a list is what a graph
 * capture is on a card. `submit` starts a list and returns; `wait` ends when all submitted work has. One thread uses a device.
 * Only host_memory devices have memory that the host may touch.
 */
#ifndef Q_DEVICE_H
#define Q_DEVICE_H

#include "card.h"
#include "err.h"
#include "launch.h"
#include <stddef.h>

struct record_cost;
struct q_launch {
    const struct q_kernel *kernel;   /* borrowed */
    const void *args;          /* owned by the list */
    size_t arg_bytes;
    const char *op;            /* for traces, as these two, which may be NULL and are borrowed from the kernel set: */
    const char *shape;
    const struct record_cost *cost;
    int with_next;             /* the next launch needs nothing of this one and overwrites nothing it reads: no barrier between them */
};

struct q_list {
    struct q_launch *launch;
    int n, cap;
    int stable;                /* 1: will not change until it is freed, so a device may keep what it makes of it (a graph) until `forget` */
};

/* Bytes that lie together on a device. */
struct q_run {
    void *at;
    size_t bytes;
};

struct q_device;
struct q_device_ops {
    const char *name;          /* "cpu", "cuda" */
    const char *object_kind;   /* of the objects it loads: "so", "cubin" */
    /* Zeroed, 64-byte aligned. */
    void *(*alloc)(struct q_device *d, size_t bytes, struct q_err *e);
    void (*release)(struct q_device *d, void *p);
    /* Bytes that alloc could hand out now without hurting the machine; SIZE_MAX when the system does not say. */
    size_t (*available)(struct q_device *d);
    /* Ordered with submitted lists: a write is seen by lists submitted after it. */
    int (*write)(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e);
    int (*read)(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e);
    int (*copy)(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e);
    /* The kernel `symbol` of an object file; phases: how it is launched, as its record has it (a GPU's). Q_EUNSUP: the driver refuses the object. */
    int (*load)(struct q_device *d, const char *path, const char *symbol, const struct q_phases *phases, struct q_kernel *k, struct q_err *e);
    void (*unload)(struct q_device *d, struct q_kernel *k);   /* a zeroed kernel is fine */
    /* extent: upper bounds of what the kernels will find in the step. trace: NULL, or where each launch's microseconds are added, [list->n]. */
    int (*submit)(struct q_device *d, const struct q_list *list, const struct q_extent *extent, double *trace, struct q_err *e);
    int (*wait)(struct q_device *d, struct q_err *e);
    /* Microseconds on the device of one pass over the list, run `times` times without a gap after one pass that does not count. */
    int (*time)(struct q_device *d, const struct q_list *list, const struct q_extent *extent, int times, double *us, struct q_err *e);
    /* A stable list is about to change or to go. */
    void (*forget)(struct q_device *d, const struct q_list *list);
    void (*close)(struct q_device *d);
    /* Reads runs to dst, one behind the other, and waits for many at once; NULL: to read them one by one costs no more (device_gather). */
    int (*gather)(struct q_device *d, void *dst, const struct q_run *runs, int n, struct q_err *e);
};

struct q_device {
    const struct q_device_ops *ops;
    struct q_card card;
    char about[128];           /* for people: "NVIDIA H200 (sm_90), driver 580.159, CUDA 13.0" */
    int host_memory;           /* 1: device memory is host memory, weights may be used where the file is mapped */
    int parts;                 /* most members a kernel's team has; on a GPU its multiprocessors */
    char address[32];          /* of a card, on the PCI bus: "0000:01:00.0"; "" where it is not known */
    int cuda;                  /* version of CUDA that the card's driver speaks, 13000; 0: no such card */
    int careful;               /* 1: a card's launches are waited for one by one, so that a fault names its kernel (--debug=launch) */
};

int device_gather(struct q_device *d, void *dst, const struct q_run *runs, int n, struct q_err *e);
/* Launches a list with a copy of `args` at its end. */
int list_push(struct q_list *l, const struct q_kernel *kernel, const char *op, const void *args, size_t bytes, struct q_err *e);
/* Appends copies of all launches of `from`. */
int list_append(struct q_list *l, const struct q_list *from, struct q_err *e);
void list_free(struct q_list *l);

/* which: "cpu", "cuda", "cuda:N", "cuda:N,without=mma" or "..=mma+dp4a" (the card as if it had no tensor cores, nor dp4a), or "auto" (also NULL):
 * the card when there is one, else the CPU; but where an NVIDIA device is on the bus and cannot be used, that is an error and not a silent run
 * on the CPU. */
int device_open(struct q_device **d, const char *which, int threads, struct q_err *e);
/* threads <= 0: all CPUs this process may use. */
int device_cpu_open(struct q_device **d, int threads, struct q_err *e);

#endif
