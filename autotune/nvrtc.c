#define _GNU_SOURCE
#include "nvrtc.h"
#include "nvrtc_api.h"
#include "runtime/shared_object.h"
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- one library ------------------------------------------------------------------------------------------------------- */

typedef unsigned (*get_int)(int *);
typedef unsigned (*get_version)(int *, int *);

static void ask_archs(void *lib, struct nvrtc *v)
{
    get_int count, list;
    int n = 0;
    *(void **)&count = dlsym(lib, "nvrtcGetNumSupportedArchs");
    *(void **)&list = dlsym(lib, "nvrtcGetSupportedArchs");
    if (!count || !list || count(&n) || n < 1 || n > NVRTC_ARCHS || list(v->archs)) return;
    v->n_archs = n;
}

/* In a child: whatever the library does to the process is that child's alone. */
static int ask_library(void *lib, void *answer, struct q_err *e)
{
    struct nvrtc *v = answer;
    get_version version;
    struct link_map *map;
    *(void **)&version = dlsym(lib, "nvrtcVersion");
    if (!version || version(&v->major, &v->minor) || dlinfo(lib, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, v->path))
        return q_fail(e, Q_EMISS, "it is no NVRTC");
    ask_archs(lib, v);
    return Q_OK;
}

static int ask(const char *name, struct nvrtc *v, struct q_err *e)
{
    struct q_err why;
    memset(v, 0, sizeof *v);
    int rc = shared_object_try(name, SHARED_OBJECT_SECONDS, ask_library, v, sizeof *v, &why);
    return rc ? q_fail(e, rc, "%.600s", why.text) : Q_OK;
}

/* --- all of them ------------------------------------------------------------------------------------------------------- */

static int known(const struct nvrtc_list *l, const char *path)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->v[i].path, path)) return 1;
    return 0;
}

static int add(struct nvrtc_list *l, const char *name, struct q_err *e)
{
    char real[Q_PATH];
    if (l->n == NVRTC_MOST || (realpath(name, real) && known(l, real))) return Q_OK;
    struct nvrtc *v = &l->v[l->n];
    int rc = ask(name, v, e);
    if (!rc && !known(l, v->path)) l->n++;
    return rc;
}

/* e: the last that is none. */
static void add_pattern(struct nvrtc_list *l, const char *folder, const char *below, struct q_err *e)
{
    char pattern[Q_PATH + 200];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s%s/libnvrtc.so*", folder, below);
    if (!glob(pattern, 0, NULL, &g))
        for (size_t i = 0; i < g.gl_pathc; i++) add(l, g.gl_pathv[i], e);
    globfree(&g);
}

/* pip's wheels: nvidia/cuda_nvrtc up to CUDA 12, nvidia/cu13 and so on from there. */
static void add_python(struct nvrtc_list *l, const char *folder, const char *packages, struct q_err *e)
{
    char below[100];
    static const char *const wheels[] = { "nvidia/cuda_nvrtc/lib", "nvidia/cu[0-9]*/lib" };
    for (size_t i = 0; i < sizeof wheels / sizeof *wheels; i++) {
        snprintf(below, sizeof below, "/%s/%s", packages, wheels[i]);
        add_pattern(l, folder, below, e);
    }
}

static void add_system(struct nvrtc_list *l)
{
    static const char *const sonames[] = { "libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so" };
    static const char *const toolkits[] = { "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*-linux/lib", "/usr/local/cuda*/lib",
                                            "/opt/cuda*/lib64", "/usr/lib/cuda*/lib64" };
    for (size_t i = 0; i < sizeof sonames / sizeof *sonames; i++) add(l, sonames[i], NULL);
    for (size_t i = 0; i < sizeof toolkits / sizeof *toolkits; i++) add_pattern(l, toolkits[i], "", NULL);
    add_python(l, "/usr/lib", "python3*/*-packages", NULL);
    add_python(l, "/usr/local/lib", "python3*/*-packages", NULL);
}

/* A folder may be a toolkit's, a wheel's or a virtual environment's. */
static void add_folder(struct nvrtc_list *l, const char *folder, struct q_err *e)
{
    static const char *const below[] = { "", "/lib64", "/lib", "/targets/*-linux/lib" };
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) add_pattern(l, folder, below[i], e);
    add_python(l, folder, "lib/python3*/site-packages", e);
    add_python(l, folder, ".", e);
}

static void add_given(struct nvrtc_list *l, const char *given)
{
    char real[Q_PATH];
    struct stat st;
    struct q_err why = { 0 };
    snprintf(l->given, sizeof l->given, "%s", given);
    if (!stat(given, &st) && S_ISDIR(st.st_mode)) {
        add_folder(l, given, &why);
        if (!l->n && !why.code) q_fail(&why, Q_EMISS, "the folder holds no libnvrtc.so");
    } else add(l, shared_object_named(given, real), &why);
    size_t n = strlen(given);
    const char *line = n && !strncmp(why.text, given, n) && !strncmp(why.text + n, ": ", 2) ? why.text + n + 2 : why.text;   /* named once */
    if (!l->n) snprintf(l->refused, sizeof l->refused, "%.299s", line);
}

int nvrtc_search(struct nvrtc_list *l, const struct nvrtc_places *places, struct q_err *e)
{
    char local[Q_PATH];
    memset(l, 0, sizeof *l);
    if (!(l->v = calloc(NVRTC_MOST, sizeof *l->v))) return q_fail(e, Q_EMEM, "no memory for a list of compilers");
    if (places->given) {
        add_given(l, places->given);
        return Q_OK;
    }
    add_system(l);
    for (int i = 0; i < NVRTC_PREFIXES; i++)
        if (places->prefix[i]) add_folder(l, places->prefix[i], NULL);
    if (places->home && !path_join(local, NULL, places->home, ".local/lib", NULL)) add_python(l, local, "python3*/site-packages", NULL);
    return Q_OK;
}

void nvrtc_list_free(struct nvrtc_list *l)
{
    free(l->v);
    memset(l, 0, sizeof *l);
}

static int ask_driver(void *lib, void *answer, struct q_err *e)
{
    get_int version;
    *(void **)&version = dlsym(lib, "cuDriverGetVersion");
    return version && !version(answer) ? Q_OK : q_fail(e, Q_EMISS, "it is no driver");
}

int nvrtc_driver(void)
{
    int version = 0;
    return shared_object_try("libcuda.so.1", SHARED_OBJECT_SECONDS, ask_driver, &version, sizeof version, NULL) ? 0 : version;
}
