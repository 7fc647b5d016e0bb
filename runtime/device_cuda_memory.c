/* Memory of a card, and the way of bytes to and from it. */
#include "device_cuda.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Host memory beyond the program's own: 2 * STAGE + LANDING, all of it pinned. A write is cut into pieces, so that its first bytes
 * travel while the next are being gathered. */
enum { STAGE = 32 << 20, PIECE = 4 << 20, LANDING = 4 << 20 };

/* Left free for what the driver takes by itself while kernels run (stacks, printf buffers); code and graphs are in the plan (plan.h). */
#define RESERVE ((size_t)64 << 20)

static cu_address address(const void *p) { return (cu_address)(uintptr_t)p; }

/* --- taking and giving back ------------------------------------------------------------------------------------------- */

void *cuda_alloc(struct q_device *d, size_t bytes, struct q_err *e)
{
    struct cuda *c = (struct cuda *)d;
    cu_address p = 0;
    char call[64];
    if (cuda_enter(c, e)) return NULL;
    if (!bytes) bytes = 1;
    snprintf(call, sizeof call, "cuMemAlloc of %.1f MiB", (double)bytes / 1048576);
    if (cuda_result(c, c->api.cuMemAlloc(&p, bytes), call, NULL, e)) return NULL;
    if (!cuda_result(c, c->api.cuMemsetD8Async(p, 0, bytes, c->stream), "cuMemsetD8Async", NULL, e)) return (void *)(uintptr_t)p;
    c->api.cuMemFree(p);
    return NULL;
}

/* The driver waits for all work that may use the block. */
void cuda_release(struct q_device *d, void *p)
{
    struct cuda *c = (struct cuda *)d;
    if (!p) return;
    c->api.cuCtxSetCurrent(c->context);
    c->api.cuMemFree(address(p));
}

size_t cuda_available(struct q_device *d)
{
    struct cuda *c = (struct cuda *)d;
    size_t free = 0, total = 0;
    if (cuda_enter(c, NULL) || c->api.cuMemGetInfo(&free, &total)) return 0;
    return free > RESERVE ? free - RESERVE : 0;
}

/* --- to the card ------------------------------------------------------------------------------------------------------ */

int cuda_stages_open(struct cuda *c, struct q_err *e)
{
    int rc = cuda_result(c, c->api.cuMemHostAlloc((void **)&c->landing, LANDING, 0), "cuMemHostAlloc", NULL, e);
    for (int i = 0; i < 2 && !rc; i++) {
        rc = cuda_result(c, c->api.cuMemHostAlloc((void **)&c->stage[i].at, STAGE, 0), "cuMemHostAlloc", NULL, e);
        if (!rc) rc = cuda_result(c, c->api.cuEventCreate(&c->stage[i].copied, CU_EVENT_NO_TIMING), "cuEventCreate", NULL, e);
    }
    return rc;
}

void cuda_stages_close(struct cuda *c)
{
    for (int i = 0; i < 2; i++) {
        if (c->stage[i].copied) c->api.cuEventDestroy(c->stage[i].copied);
        if (c->stage[i].at) c->api.cuMemFreeHost(c->stage[i].at);
    }
    if (c->landing) c->api.cuMemFreeHost(c->landing);
}

/* Turns to the other stage: this one's copies are marked, the other's are waited for. */
static int turn(struct cuda *c, struct q_err *e)
{
    int rc = cuda_result(c, c->api.cuEventRecord(c->stage[c->filling].copied, c->stream), "cuEventRecord", NULL, e);
    c->filling ^= 1;
    c->stage[c->filling].used = 0;
    if (!rc) rc = cuda_result(c, c->api.cuEventSynchronize(c->stage[c->filling].copied), "cuEventSynchronize", NULL, e);
    return rc;
}

static int write_piece(struct cuda *c, cu_address to, const void *from, size_t bytes, struct q_err *e)
{
    int rc = c->stage[c->filling].used + bytes > STAGE ? turn(c, e) : Q_OK;
    if (rc) return rc;
    struct cuda_stage *s = &c->stage[c->filling];
    char *at = s->at + s->used;
    memcpy(at, from, bytes);
    s->used += bytes;
    return cuda_result(c, c->api.cuMemcpyHtoDAsync(to, at, bytes, c->stream), "cuMemcpyHtoDAsync", NULL, e);
}

/* `src` may be changed when this returns; the copies themselves are only on their way, and wait for nothing but a full stage. */
int cuda_write(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e)
{
    struct cuda *c = (struct cuda *)d;
    int rc = cuda_enter(c, e);
    for (size_t at = 0; at < bytes && !rc; at += PIECE)
        rc = write_piece(c, address(dst) + at, (const char *)src + at, bytes - at < PIECE ? bytes - at : PIECE, e);
    return rc;
}

/* --- from the card, and on it ----------------------------------------------------------------------------------------- */

int cuda_read(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e)
{
    struct cuda *c = (struct cuda *)d;
    int rc = cuda_enter(c, e);
    for (size_t at = 0; at < bytes && !rc; at += LANDING) {
        size_t n = bytes - at < LANDING ? bytes - at : LANDING;
        rc = cuda_result(c, c->api.cuMemcpyDtoHAsync(c->landing, address(src) + at, n, c->stream), "cuMemcpyDtoHAsync", NULL, e);
        if (!rc) rc = cuda_finish(c, NULL, e);
        if (!rc) memcpy((char *)dst + at, c->landing, n);
    }
    return rc;
}

/* What has landed goes to *dst, which moves on. */
static int land(struct cuda *c, char **dst, size_t *used, struct q_err *e)
{
    int rc = *used ? cuda_finish(c, NULL, e) : Q_OK;
    if (!rc) memcpy(*dst, c->landing, *used);
    *dst += *used;
    *used = 0;
    return rc;
}

int cuda_gather(struct q_device *d, void *dst, const struct q_run *runs, int n, struct q_err *e)
{
    struct cuda *c = (struct cuda *)d;
    char *to = dst;
    size_t used = 0;
    int rc = cuda_enter(c, e);
    for (int i = 0; i < n && !rc; i++)
        for (size_t at = 0, take; at < runs[i].bytes && !rc; at += take) {
            take = runs[i].bytes - at < LANDING - used ? runs[i].bytes - at : LANDING - used;
            rc = cuda_result(c, c->api.cuMemcpyDtoHAsync(c->landing + used, address(runs[i].at) + at, take, c->stream), "cuMemcpyDtoHAsync", NULL, e);
            used += take;
            if (!rc && used == LANDING) rc = land(c, &to, &used, e);
        }
    return rc ? rc : land(c, &to, &used, e);
}

int cuda_copy(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e)
{
    struct cuda *c = (struct cuda *)d;
    int rc = cuda_enter(c, e);
    if (rc || !bytes) return rc;
    return cuda_result(c, c->api.cuMemcpyDtoDAsync(address(dst), address(src), bytes, c->stream), "cuMemcpyDtoDAsync", NULL, e);
}
