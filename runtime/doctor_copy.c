/* How fast bytes go between pinned memory and a card: the rate at which a model can load at best. */
#include "device_cuda.h"
#include "device_open.h"
#include "doctor.h"
#include <stdint.h>

enum { BYTES = 32 << 20, TIMES = 4 };

static int copy(struct cuda *c, void *block, int out, struct q_err *e)
{
    cu_address at = (cu_address)(uintptr_t)block;
    const struct cuda_api *cu = &c->api;
    if (out) return cuda_result(c, cu->cuMemcpyHtoDAsync(at, c->stage[0].at, BYTES, c->stream), "cuMemcpyHtoDAsync", NULL, e);
    return cuda_result(c, cu->cuMemcpyDtoHAsync(c->stage[0].at, at, BYTES, c->stream), "cuMemcpyDtoHAsync", NULL, e);
}

/* Bytes a second of the fastest of a few copies; 0 when it cannot be told. */
static double rate(struct cuda *c, void *block, int out)
{
    double best = 0;
    for (int i = 0; i < TIMES; i++) {
        float ms = 0;
        int rc = cuda_result(c, c->api.cuEventRecord(c->begin, c->stream), "cuEventRecord", NULL, NULL);
        if (!rc) rc = copy(c, block, out, NULL);
        if (!rc) rc = cuda_result(c, c->api.cuEventRecord(c->end, c->stream), "cuEventRecord", NULL, NULL);
        if (!rc) rc = cuda_finish(c, NULL, NULL);
        if (!rc) rc = cuda_result(c, c->api.cuEventElapsedTime(&ms, c->begin, c->end), "cuEventElapsedTime", NULL, NULL);
        if (!rc && ms > 0 && BYTES / ((double)ms * 1e-3) > best) best = BYTES / ((double)ms * 1e-3);
    }
    return best;
}

void doctor_copy(struct doctor_card *card, const char *libcuda)
{
    struct q_device *d;
    if (device_cuda_open_with(&d, card->index, libcuda, NULL)) return;
    void *block = d->ops->alloc(d, BYTES, NULL);
    if (block) {
        card->to_card = rate((struct cuda *)d, block, 1);
        card->from_card = rate((struct cuda *)d, block, 0);
    }
    d->ops->release(d, block);
    d->ops->close(d);
}
