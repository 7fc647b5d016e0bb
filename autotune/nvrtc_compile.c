/* A compiling child: one unit, one library, then it ends. Whatever the compiler does to the process is this child's alone. */
#define _GNU_SOURCE
#include "nvrtc.h"
#include "nvrtc_api.h"
#include "runtime/shared_object.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

extern char **environ;

enum { MOST_OPTIONS = 32, UNIT_BYTES = 8 << 20 };

#define MEMBER(name, result, arguments) result (*name) arguments;
struct api {
    NVRTC_FUNCTIONS(MEMBER)
};

/* Its other half is opened by the library itself, by name. Some wheels' libraries (13.0's) do not say that it lies beside them, but a name that
 * is open already is found. Where there is none, or it is none, the library tells. */
static void open_builtins(const struct api *a, const char *library)
{
    char name[64], folder[Q_PATH], path[Q_PATH];
    int major, minor;
    if (a->nvrtcVersion(&major, &minor) || path_dir(folder, library, NULL)) return;
    snprintf(name, sizeof name, "libnvrtc-builtins.so.%d.%d", major, minor);
    if (!path_join(path, NULL, folder, name, NULL) && !shared_object_check(path, NULL)) dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static int open_api(struct api *a, const char *library, struct q_err *e)
{
    int rc = shared_object_check(library, e);
    if (rc) return rc;
    void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!lib) return q_fail(e, Q_EMISS, "%.600s", dlerror());
    void *f;
#define LOOK_UP(name, result, arguments)                                                \
    if (!(f = dlsym(lib, #name))) return q_fail(e, Q_EMISS, "%.600s lacks " #name, library); \
    memcpy(&a->name, &f, sizeof f);
    NVRTC_FUNCTIONS(LOOK_UP)
    open_builtins(a, library);
    return Q_OK;
}

/* What the user's environment says of CUDA must not change an object whose name does not tell. */
static void forget_environment(void)
{
    char name[64];
    for (int i = 0; environ[i];) {
        size_t n = strcspn(environ[i], "=");
        int ours = !strncmp(environ[i], "NVRTC_", 6) || !strncmp(environ[i], "CUDA_", 5);
        if (!ours || n >= sizeof name) {
            i++;
            continue;
        }
        memcpy(name, environ[i], n);
        name[n] = 0;
        unsetenv(name);   /* the next one moves to i */
    }
}

static void print_log(const struct api *a, struct _nvrtcProgram *p)
{
    size_t n = 0;
    char *log = a->nvrtcGetProgramLogSize(p, &n) || !n ? NULL : malloc(n);
    if (log && !a->nvrtcGetProgramLog(p, log)) fwrite(log, 1, strnlen(log, n), stdout);
    free(log);
}

/* The unit's own options are all meant; the last two tell registers and keep no copy elsewhere, and a version may not know them. */
static unsigned compile(const struct api *a, struct _nvrtcProgram *p, int n, char **options)
{
    const char *all[MOST_OPTIONS + 2];
    unsigned rc = NVRTC_UNKNOWN_OPTION;
    for (int i = 0; i < n; i++) all[i] = options[i];
    all[n] = "--ptxas-options=-v";
    all[n + 1] = "--no-cache";
    for (int more = 2; more >= 0 && rc == NVRTC_UNKNOWN_OPTION; more--) rc = a->nvrtcCompileProgram(p, n + more, all);
    return rc;
}

static int write_result(const struct api *a, struct _nvrtcProgram *p, int ptx, const char *out, struct q_err *e)
{
    size_t n = 0;
    unsigned rc = ptx ? a->nvrtcGetPTXSize(p, &n) : a->nvrtcGetCUBINSize(p, &n);
    char *data = rc || !n ? NULL : malloc(n);
    if (data) rc = ptx ? a->nvrtcGetPTX(p, data) : a->nvrtcGetCUBIN(p, data);
    int failed = !data || rc ? q_fail(e, Q_EINTERNAL, "error: the compiler gives no object: %s", rc ? a->nvrtcGetErrorString(rc) : "it is empty")
                             : file_write(out, data, n, e);
    free(data);
    return failed;
}

static int run(const char *library, const char *in, const char *out, int n, char **options, struct q_err *e)
{
    struct api a = { 0 };
    struct _nvrtcProgram *p = NULL;
    char *text;
    size_t bytes;
    int ptx = 0, rc = open_api(&a, library, e);
    if (!rc) rc = file_read(in, UNIT_BYTES, &text, &bytes, e);
    if (rc) return rc;
    for (int i = 0; i < n; i++) ptx |= strstr(options[i], "=compute_") != NULL;
    const char *slash = strrchr(in, '/');
    unsigned failed = a.nvrtcCreateProgram(&p, text, slash ? slash + 1 : in, 0, NULL, NULL);
    free(text);
    if (!failed) {
        failed = compile(&a, p, n, options);
        print_log(&a, p);
    }
    rc = failed ? q_fail(e, Q_EINTERNAL, "error: %s", a.nvrtcGetErrorString(failed)) : write_result(&a, p, ptx, out, e);
    if (p) a.nvrtcDestroyProgram(&p);
    return rc;
}

int nvrtc_child(int n, char **argv)
{
    struct q_err e = { 0 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    forget_environment();
    if (n < 4 || n - 3 > MOST_OPTIONS) q_fail(&e, Q_EINPUT, "expected LIBRARY IN.cu OUT OPTION..");
    else run(argv[0], argv[1], argv[2], n - 3, argv + 3, &e);
    if (e.code) printf("%s\n", e.text);
    return fflush(stdout) || e.code ? 1 : 0;
}
