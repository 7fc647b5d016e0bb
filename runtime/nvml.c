#include "nvml.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvmlDevice_st *nvml_device;
typedef int nvml_result;                     /* 0: good; an enum of nvml.h */

enum { CLOCK_SM = 1, CLOCK_MEM = 2, SENSOR_GPU = 0 };

struct nvml {
    void *library;
    nvml_device device;
    nvml_result (*init)(void);
    nvml_result (*shutdown)(void);
    nvml_result (*find)(const char *address, nvml_device *device);
    nvml_result (*clock)(nvml_device device, unsigned type, unsigned *mhz);
    nvml_result (*power)(nvml_device device, unsigned *milliwatts);
    nvml_result (*heat)(nvml_device device, unsigned sensor, unsigned *celsius);
    nvml_result (*reasons)(nvml_device device, unsigned long long *reasons);
};

static const struct {
    const char *symbol;
    size_t at;
} functions[] = {
    { "nvmlInit_v2", offsetof(struct nvml, init) },
    { "nvmlShutdown", offsetof(struct nvml, shutdown) },
    { "nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct nvml, find) },
    { "nvmlDeviceGetClockInfo", offsetof(struct nvml, clock) },
    { "nvmlDeviceGetPowerUsage", offsetof(struct nvml, power) },
    { "nvmlDeviceGetTemperature", offsetof(struct nvml, heat) },
    { "nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct nvml, reasons) },
};

static int find_functions(struct nvml *n, const char *library, struct q_err *e)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(n->library, functions[i].symbol);
        if (!f) return q_fail(e, Q_EUNSUP, "%s: this driver has no %s", library, functions[i].symbol);
        memcpy((char *)n + functions[i].at, &f, sizeof f);
    }
    return Q_OK;
}

static int find_card(struct nvml *n, const char *address, struct q_err *e)
{
    nvml_result bad = n->find(address, &n->device);
    if (!bad) return Q_OK;
    n->shutdown();
    return q_fail(e, Q_EMISS, "NVML knows no card at %.40s (error %d)", address, bad);
}

int nvml_open(struct nvml **out, const char *library, const char *address, struct q_err *e)
{
    struct nvml *n = calloc(1, sizeof *n);
    *out = NULL;
    if (!n) return q_fail(e, Q_EMEM, "no memory for NVML");
    if (!library) library = "libnvidia-ml.so.1";
    n->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int rc = n->library ? find_functions(n, library, e) : q_fail(e, Q_EMISS, "no NVML: %.600s", dlerror());
    int bad = rc ? 0 : n->init();
    if (bad) rc = q_fail(e, Q_EMISS, "NVML does not start (error %d)", bad);
    if (!rc) rc = find_card(n, address, e);
    if (!rc) return *out = n, Q_OK;
    if (n->library) dlclose(n->library);
    free(n);
    return rc;
}

void nvml_close(struct nvml *n)
{
    if (!n) return;
    n->shutdown();
    dlclose(n->library);
    free(n);
}

/* What lies beyond all cards is no value. */
static int value(nvml_result bad, const unsigned *v, unsigned most) { return bad || *v > most ? 0 : (int)*v; }

void nvml_read(const struct nvml *n, struct nvml_state *s)
{
    unsigned sm = 0, mem = 0, milliwatts = 0, celsius = 0;
    s->sm_mhz = value(n->clock(n->device, CLOCK_SM, &sm), &sm, 100000);
    s->mem_mhz = value(n->clock(n->device, CLOCK_MEM, &mem), &mem, 100000);
    s->watts = (value(n->power(n->device, &milliwatts), &milliwatts, 10000000) + 500) / 1000;
    s->celsius = value(n->heat(n->device, SENSOR_GPU, &celsius), &celsius, 1000);
    if (n->reasons(n->device, &s->reasons)) s->reasons = 0;
}

int nvml_is_slowed(const struct nvml_state *s) { return (s->reasons & (NVML_SLOWDOWN | NVML_HEAT | NVML_HEAT_HARD | NVML_BRAKE)) != 0; }

void nvml_words(const struct nvml_state *s, char *dst, size_t cap)
{
    static const struct {
        unsigned long long reasons;
        const char *word;
    } words[] = { { NVML_POWER, "power" }, { NVML_HEAT | NVML_HEAT_HARD, "heat" }, { NVML_SLOWDOWN, "hardware" }, { NVML_BRAKE, "brake" } };
    size_t at = 0;
    dst[0] = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words && at < cap; i++)
        if (s->reasons & words[i].reasons) at += (size_t)snprintf(dst + at, cap - at, "%s%s", at ? "," : "", words[i].word);
}
