/* libnvidia-ml.so.1 without a card: one card at 0000:01:00.0, whose state is what the variable FAKE_NVML holds when it is asked: a list
 * of words with ',' between them: sm=MHZ mem=MHZ mw=MILLIWATTS heat=CELSIUS reasons=BITS; what is not there the card does not tell.
 * broken: it does not start. slowed-once: the reasons are there for the first who asks. Built also without its last function (FAKE_NVML_OLD). */
#include <stdlib.h>
#include <string.h>

struct nvmlDevice_st;
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, struct nvmlDevice_st **device);
int nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, unsigned type, unsigned *mhz);
int nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned *milliwatts);
int nvmlDeviceGetTemperature(struct nvmlDevice_st *device, unsigned sensor, unsigned *celsius);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *device, unsigned long long *reasons);

enum { GOOD = 0, UNINITIALIZED = 1, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static int started, asked;

static int tell(const char *word, unsigned long long *v)
{
    const char *list = getenv("FAKE_NVML"), *at = list ? strstr(list, word) : NULL;
    if (!started) return UNINITIALIZED;
    if (!at) return NOT_SUPPORTED;
    *v = strtoull(at + strlen(word), NULL, 0);
    return GOOD;
}

static int tell_short(const char *word, unsigned *v)
{
    unsigned long long wide = 0;
    int bad = tell(word, &wide);
    *v = (unsigned)wide;
    return bad;
}

int nvmlInit_v2(void)
{
    const char *list = getenv("FAKE_NVML");
    started = !list || !strstr(list, "broken");
    asked = 0;
    return started ? GOOD : UNINITIALIZED;
}

int nvmlShutdown(void) { return started = 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, struct nvmlDevice_st **device)
{
    *device = (struct nvmlDevice_st *)&started;
    return strcmp(address, "0000:01:00.0") ? NOT_FOUND : GOOD;
}

int nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, unsigned type, unsigned *mhz)
{
    (void)device;
    return tell_short(type == 1 ? "sm=" : "mem=", mhz);
}

int nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned *milliwatts)
{
    (void)device;
    return tell_short("mw=", milliwatts);
}

int nvmlDeviceGetTemperature(struct nvmlDevice_st *device, unsigned sensor, unsigned *celsius)
{
    (void)device;
    return sensor ? NOT_SUPPORTED : tell_short("heat=", celsius);
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvmlDevice_st *device, unsigned long long *reasons)
{
    const char *list = getenv("FAKE_NVML");
    (void)device;
    if (asked++ && list && strstr(list, "slowed-once")) return *reasons = 0, GOOD;
    return tell("reasons=", reasons);
}
#endif
