#include "device.h"
#include <stdlib.h>
#include <string.h>

int list_push(struct q_list *l, const struct q_kernel *kernel, const char *op, const void *args, size_t bytes, struct q_err *e)
{
    if (l->n == l->cap) {
        int cap = l->cap ? l->cap * 2 : 64;
        struct q_launch *p = realloc(l->launch, (size_t)cap * sizeof *p);
        if (!p) return q_fail(e, Q_EMEM, "no memory for a launch list of %d kernels", cap);
        l->launch = p;
        l->cap = cap;
    }
    void *copy = malloc(bytes);
    if (!copy) return q_fail(e, Q_EMEM, "no memory for the arguments of %s", op);
    memcpy(copy, args, bytes);
    l->launch[l->n++] = (struct q_launch){.kernel = kernel, .args = copy, .arg_bytes = bytes, .op = op};
    return Q_OK;
}

int list_append(struct q_list *l, const struct q_list *from, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < from->n && !rc; i++) {
        const struct q_launch *one = &from->launch[i];
        rc = list_push(l, one->kernel, one->op, one->args, one->arg_bytes, e);
        if (rc) break;
        struct q_launch *to = &l->launch[l->n - 1];
        to->shape = one->shape;
        to->cost = one->cost;
        to->with_next = one->with_next;
    }
    return rc;
}

void list_free(struct q_list *l)
{
    for (int i = 0; i < l->n; i++) free((void *)l->launch[i].args);
    free(l->launch);
    memset(l, 0, sizeof *l);
}

int device_gather(struct q_device *d, void *dst, const struct q_run *runs, int n, struct q_err *e)
{
    if (d->ops->gather) return d->ops->gather(d, dst, runs, n, e);
    int rc = Q_OK;
    for (int i = 0; i < n && !rc; dst = (char *)dst + runs[i++].bytes) rc = d->ops->read(d, dst, runs[i].at, runs[i].bytes, e);
    return rc;
}
