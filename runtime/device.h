/* A device: memory, copies and launches behind one small table of functions, so that nothing above it learns a new word when a
 * card joins. device_cpu.c fills it with a team of threads.
 *
 * Work is given as launch lists. A list holds kernels with their arguments, in order; a kernel sees the results of those
 * before it. Arguments never change after a list was built (what changes lies in device memory), so a list is what a graph
 * capture is on a card. `submit` starts a list and returns; `wait` ends when all submitted work has. One thread uses a device.
 */
#ifndef Q_DEVICE_H
#define Q_DEVICE_H

#include "card.h"
#include "kset.h"
#include <stddef.h>

struct record_cost;
struct q_launch {
    q_kernel_fn fn;
    const void *args;          /* owned by the list */
    const char *op;            /* for traces, as these two, which may be NULL and are borrowed from the kernel set: */
    const char *shape;
    const struct record_cost *cost;
    int with_next;             /* the next launch needs nothing of this one and overwrites nothing it reads: no barrier between them */
};

struct q_list {
    struct q_launch *launch;
    int n, cap;
};

struct q_device;
struct q_device_ops {
    const char *name;
    /* Zeroed, 64-byte aligned. */
    void *(*alloc)(struct q_device *d, size_t bytes, struct q_err *e);
    void (*release)(struct q_device *d, void *p);
    /* Bytes that alloc could hand out now without hurting the machine; SIZE_MAX when the system does not say. */
    size_t (*available)(struct q_device *d);
    /* Ordered with submitted lists: a write is seen by lists submitted after it. */
    int (*write)(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e);
    int (*read)(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e);
    int (*copy)(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e);
    /* trace: NULL, or where each launch's microseconds are added, [list->n]. */
    int (*submit)(struct q_device *d, const struct q_list *list, double *trace, struct q_err *e);
    int (*wait)(struct q_device *d, struct q_err *e);
    void (*close)(struct q_device *d);
};

struct q_device {
    const struct q_device_ops *ops;
    struct q_card card;
    int host_memory;           /* 1: device memory is host memory, weights may be used where the file is mapped */
    int parts;                 /* most members a kernel's team has */
};

/* Launches a list with a copy of `args` at its end. */
int list_push(struct q_list *l, q_kernel_fn fn, const char *op, const void *args, size_t bytes, struct q_err *e);
void list_free(struct q_list *l);

/* threads <= 0: all CPUs this process may use. */
int device_cpu_open(struct q_device **d, int threads, struct q_err *e);

#endif
