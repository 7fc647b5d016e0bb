/* Which device a name stands for. device.h has the call that programs use; here is what tests put in its place. */
#ifndef Q_DEVICE_OPEN_H
#define Q_DEVICE_OPEN_H

#include "device.h"

/* Where the machine is looked at; NULL: the real places. */
struct device_places {
    const char *libcuda;       /* libcuda.so.1 */
    const char *pci;           /* /sys/bus/pci/devices */
};

int device_open_at(struct q_device **d, const char *which, int threads, const struct device_places *at, struct q_err *e);
int device_cuda_open_with(struct q_device **d, int index, const char *libcuda, struct q_err *e);
/* Whether `which` is "auto", "cpu", "cuda" or "cuda:N"; *index is N, 0 where none is given. */
int device_name_good(const char *which, int *index);

#endif
