#include "cuda_api.h"
#include "shared_object.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { OLDEST = 11040 };   /* the 470 series */

enum presence { optional, required };

/* Where each function is kept, and under which symbol it is exported. */
static const struct entry {
    enum presence presence;
    const char *symbol;
    size_t at;
} entries[] = {
#define ENTRY(presence, name, symbol, parameters) {presence, #symbol, offsetof(struct cuda_api, name)},
    CUDA_FUNCTIONS(ENTRY)
#undef ENTRY
};

static int find_functions(struct cuda_api *cu, const char *library, struct q_err *e)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *f = dlsym(cu->library, entries[i].symbol);
        memcpy((char *)cu + entries[i].at, &f, sizeof f);
        if (!f && entries[i].presence == required)
            return q_fail(e, Q_EUNSUP, "%s: this driver has no %s: it is too old, install one of the 470 series or newer", library,
                          entries[i].symbol);
    }
    return Q_OK;
}

int cuda_open(struct cuda_api *cu, const char *library, struct q_err *e)
{
    memset(cu, 0, sizeof *cu);
    if (!library) library = "libcuda.so.1";
    struct q_err why;
    int rc = shared_object_try(library, SHARED_OBJECT_SECONDS, NULL, NULL, 0, &why);
    if (!rc && !(cu->library = dlopen(library, RTLD_NOW | RTLD_LOCAL))) rc = q_fail(&why, Q_EMISS, "%.600s", dlerror());
    if (rc) return q_fail(e, rc == Q_EINPUT ? Q_EMISS : rc, "no NVIDIA driver: %.400s; install the driver (its libcuda.so.1)", why.text);
    rc = find_functions(cu, library, e);
    if (rc) cuda_close(cu);
    return rc;
}

int cuda_start(struct cuda_api *cu, struct q_err *e)
{
    int rc = cuda_check(cu, cu->cuInit(0), "cuInit", e);
    if (!rc) rc = cuda_check(cu, cu->cuDriverGetVersion(&cu->version), "cuDriverGetVersion", e);
    if (!rc && cu->version < OLDEST)
        rc = q_fail(e, Q_EUNSUP, "the NVIDIA driver is too old: it stands for CUDA %d.%d and quarry needs 11.4; install one of the 470 "
                    "series or newer", cu->version / 1000, cu->version % 1000 / 10);
    return rc;
}

int cuda_count(const struct cuda_api *cu, int *n, struct q_err *e)
{
    *n = 0;
    int rc = cuda_check(cu, cu->cuDeviceGetCount(n), "cuDeviceGetCount", e);
    if (rc || *n >= 0) return rc;
    rc = q_fail(e, Q_EIO, "cuDeviceGetCount: the driver counts %d cards; install it again", *n);
    *n = 0;
    return rc;
}

/* A driver that has run keeps threads of its own: it stays. */
void cuda_close(struct cuda_api *cu)
{
    if (cu->library && !cu->version) dlclose(cu->library);
    memset(cu, 0, sizeof *cu);
}

/* --- the driver's own version ----------------------------------------------------------------------------------------- */

/* The line is "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  ..." or "... Open Kernel Module for x86_64  580.65.06  ...":
 * the version is the first word of digits and at least one dot. */
void cuda_driver_version(char *dst, size_t n, const char *file)
{
    char line[512];
    dst[0] = 0;
    FILE *f = fopen(file ? file : "/proc/driver/nvidia/version", "r");
    if (!f) return;
    char *got = fgets(line, sizeof line, f);
    fclose(f);
    for (char *word = got ? strtok(line, " \t\n") : NULL; word; word = strtok(NULL, " \t\n")) {
        size_t digits = strspn(word, "0123456789");
        if (!digits || word[digits] != '.' || strspn(word, "0123456789.") != strlen(word)) continue;
        snprintf(dst, n, "%s", word);
        return;
    }
}
