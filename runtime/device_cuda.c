/* Opening a card, and what happens when one of its kernels faults. */
#include "device_cuda.h"
#include "device_open.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_WITH_PDL = 90 };

/* --- calls and faults ------------------------------------------------------------------------------------------------- */

int cuda_enter(struct cuda *c, struct q_err *e)
{
    if (c->fault.code) return q_fail(e, c->fault.code, "%s", c->fault.text);
    return cuda_result(c, c->api.cuCtxSetCurrent(c->context), "cuCtxSetCurrent", NULL, e);
}

/* "matmul type=q8_0,.. (kernel matmul_q8_0_..)" */
static void name_launch(char *dst, size_t n, const struct cuda *c, const struct q_launch *l)
{
    const char *shape = l->shape ? l->shape : "";
    snprintf(dst, n, "%s%s%.200s (kernel %.160s)", l->op, *shape ? " " : "", shape, cuda_kernel_name(q_kernel_for(l->kernel, &c->extent)));
}

/* What was on its way when the driver told of a fault. */
static void name_running(char *dst, size_t n, const struct cuda *c)
{
    if (c->n_launched == 1) {
        name_launch(dst, n, c, c->first);
        return;
    }
    snprintf(dst, n, "one of %d kernels, %s to %s", c->n_launched, c->first->op, c->last->op);
}

int cuda_result(struct cuda *c, cu_result result, const char *call, const struct q_launch *launch, struct q_err *e)
{
    char what[512] = "";
    struct q_err why;
    if (result == CU_OK) return Q_OK;
    int code = cuda_check(&c->api, result, call, &why), fault = cuda_is_sticky(result);
    if (launch) name_launch(what, sizeof what, c, launch);
    else if (fault && c->n_launched) name_running(what, sizeof what, c);
    const char *hint = fault && !launch && c->n_launched > 1 ? " (--debug=launch tells which)" : "";
    q_fail(e, code, "%s%s%s%s", what, *what ? ": " : "", why.text, hint);
    if (fault && !c->fault.code) q_fail(&c->fault, code, "%s%s%s%s", what, *what ? ": " : "", why.text, hint);
    return code;
}

int cuda_finish(struct cuda *c, const struct q_launch *launch, struct q_err *e)
{
    int rc = cuda_result(c, c->api.cuStreamSynchronize(c->stream), "cuStreamSynchronize", launch, e);
    if (!rc) c->n_launched = 0;
    return rc;
}

/* --- the card --------------------------------------------------------------------------------------------------------- */

static int ask(const struct cuda *c, unsigned int attribute, int *value, struct q_err *e)
{
    return cuda_check(&c->api, c->api.cuDeviceGetAttribute(value, attribute, c->number), "cuDeviceGetAttribute", e);
}

static int detect(struct cuda *c, struct q_err *e)
{
    struct q_card *k = &c->device.card;
    int major = 0, minor = 0, l2 = 0, smem = 0;
    int rc = ask(c, CU_CC_MAJOR, &major, e);
    if (!rc) rc = ask(c, CU_CC_MINOR, &minor, e);
    if (!rc) rc = ask(c, CU_MULTIPROCESSORS, &k->sms, e);
    if (!rc) rc = ask(c, CU_L2_BYTES, &l2, e);
    if (!rc) rc = ask(c, CU_MEMORY_BUS_WIDTH, &k->bus, e);
    if (!rc) rc = ask(c, CU_SHARED_BYTES_OPTIN, &smem, e);
    if (rc) return rc;
    k->cc = 10 * major + minor;
    k->l2 = l2 / 1024;
    k->smem = smem / 1024;
    card_cuda_key(k);
    return Q_OK;
}

/* "NVIDIA H200 (sm_90), driver 580.159.03, CUDA 13.0" */
static int describe(struct cuda *c, struct q_err *e)
{
    char name[64] = "", driver[32];
    int rc = cuda_check(&c->api, c->api.cuDeviceGetName(name, sizeof name, c->number), "cuDeviceGetName", e);
    cuda_driver_version(driver, sizeof driver, NULL);
    int cc = c->device.card.cc, version = c->api.version;
    snprintf(c->device.about, sizeof c->device.about, "%.60s (sm_%d)%s%s, CUDA %d.%d", name, cc, *driver ? ", driver " : "", driver,
             version / 1000, version % 1000 / 10);
    if (!rc && cc < CARD_OLDEST_CC)
        rc = q_fail(e, Q_EUNSUP, "%.60s has compute capability %d.%d; quarry needs 6.0 or more", name, cc / 10, cc % 10);
    return rc;
}

/* --- opening and closing ---------------------------------------------------------------------------------------------- */

static int pick(struct cuda *c, int index, struct q_err *e)
{
    int n = 0;
    int rc = cuda_count(&c->api, &n, e);
    if (rc) return rc;
    if (!n) return cuda_check(&c->api, CU_NO_DEVICE, "cuDeviceGetCount", e);
    if (index < 0 || index >= n)
        return q_fail(e, Q_EINPUT, "cuda:%d is not there: the driver shows %d card%s, cuda:0%s; `quarry doctor` tells of them", index, n,
                      n == 1 ? "" : "s", n == 1 ? "" : " and up");
    return cuda_check(&c->api, c->api.cuDeviceGet(&c->number, index), "cuDeviceGet", e);
}

/* The host spins while it waits: a decode step is about as long as a wake-up of a sleeping thread is late. */
static int open_context(struct cuda *c, struct q_err *e)
{
    if (c->api.cuDevicePrimaryCtxSetFlags) c->api.cuDevicePrimaryCtxSetFlags(c->number, CU_CONTEXT_SCHED_SPIN);   /* a wish */
    int rc = cuda_check(&c->api, c->api.cuDevicePrimaryCtxRetain(&c->context, c->number), "cuDevicePrimaryCtxRetain", e);
    if (!rc) rc = cuda_enter(c, e);
    if (!rc) rc = cuda_check(&c->api, c->api.cuStreamCreate(&c->stream, CU_STREAM_NON_BLOCKING_FLAG), "cuStreamCreate", e);
    if (!rc) rc = cuda_check(&c->api, c->api.cuEventCreate(&c->begin, 0), "cuEventCreate", e);
    if (!rc) rc = cuda_check(&c->api, c->api.cuEventCreate(&c->end, 0), "cuEventCreate", e);
    return rc ? rc : cuda_stages_open(c, e);
}

/* After a fault the driver refuses its part of this, and the end of the process does it. */
static void cuda_device_close(struct q_device *d)
{
    struct cuda *c = (struct cuda *)d;
    if (c->context) {
        c->api.cuCtxSetCurrent(c->context);
        if (c->stream) c->api.cuStreamSynchronize(c->stream);
        cuda_graphs_close(c);
        cuda_stages_close(c);
        if (c->begin) c->api.cuEventDestroy(c->begin);
        if (c->end) c->api.cuEventDestroy(c->end);
        if (c->stream) c->api.cuStreamDestroy(c->stream);
        c->api.cuDevicePrimaryCtxRelease(c->number);
    }
    cuda_close(&c->api);
    free(c);
}

static const struct q_device_ops cuda_ops = {
    "cuda",     "cubin",     cuda_alloc,  cuda_release, cuda_available, cuda_write,  cuda_read, cuda_copy,
    cuda_load,  cuda_unload, cuda_submit, cuda_wait,    cuda_time,      cuda_forget, cuda_device_close, cuda_gather,
};

int device_cuda_open_with(struct q_device **out, int index, const char *library, struct q_err *e)
{
    struct cuda *c = calloc(1, sizeof *c);
    if (!c) return q_fail(e, Q_EMEM, "no memory for a device");
    c->device.ops = &cuda_ops;
    int rc = cuda_open(&c->api, library, e);
    if (!rc) rc = cuda_start(&c->api, e);
    if (!rc) rc = pick(c, index, e);
    if (!rc) rc = detect(c, e);
    if (!rc) rc = describe(c, e);
    if (!rc) rc = open_context(c, e);
    if (rc) {
        cuda_device_close(&c->device);
        return rc;
    }
    if (c->api.cuDeviceGetPCIBusId(c->device.address, sizeof c->device.address, c->number)) c->device.address[0] = 0;
    c->device.parts = c->device.card.sms;
    c->device.cuda = c->api.version;
    c->pdl = c->device.card.cc >= FIRST_WITH_PDL && c->api.cuLaunchKernelEx;
    c->capture = 1;
    *out = &c->device;
    return Q_OK;
}
